"""Faults on order: what goes wrong, where, how often. For tests of everything that talks to Vertex AI."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal[
    "deploy-quota",  # deploy is refused: 429 RESOURCE_EXHAUSTED
    "deploy-permission",  # …403 PERMISSION_DENIED
    "deploy-eula",  # …400 FAILED_PRECONDITION
    "deploy-gated-model",  # …403, the hub refuses the weights
    "deploy-region",  # …400, the region has no such machine
    "deploy-image",  # …400, the serving image can't be pulled
    "operation-fails",  # the operation ends with an error
    "operation-hangs",  # …never ends
    "operation-garbage",  # …answers something that is no operation
    "slow-start",  # the engine is started `seconds` later
    "api-status",  # a call of the API answers `status`; `match` is a part of "METHOD path"
    "undeploy-fails",  # undeployModel answers `status`
    "delete-endpoint-fails",
    "delete-model-fails",
    "traffic-status",  # a request to an endpoint answers `status`
    "traffic-cut",  # a stream is dropped after `chunks` chunks
    "token-server-down",  # the token server answers `status`
    "token-revoked",  # as a request to an endpoint comes, no token given out by then works any longer
]


class Fault(BaseModel):
    """One fault: of the calls that `match`, `skip` pass, then every `every`-th goes wrong, `times` times."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    match: str = Field("", description="a part of the resource's name; empty: any")
    skip: int = Field(0, ge=0)
    every: int = Field(1, ge=1)
    times: int | None = Field(1, ge=1, description="null: for ever")
    status: int = Field(503, ge=400, le=599)
    seconds: float = Field(0.0, ge=0)
    chunks: int = Field(1, ge=0)
    message: str = "ordered for a test"


@dataclass
class _Order:
    fault: Fault
    seen: int = 0
    done: int = 0

    def strikes(self) -> bool:
        self.seen += 1
        late = self.seen - self.fault.skip
        if (
            late < 1
            or (late - 1) % self.fault.every
            or (self.fault.times is not None and self.done >= self.fault.times)
        ):
            return False
        self.done += 1
        return True


class Faults:
    """The faults ordered and not yet used up."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._orders = [_Order(fault) for fault in faults]

    def order(self, fault: Fault) -> None:
        self._orders.append(_Order(fault))

    def clear(self) -> None:
        self._orders.clear()

    def strike(self, kind: Kind, name: str) -> Fault | None:
        """The fault that hits this call, counting the call for each order that it matches."""
        for order in self._orders:
            if order.fault.kind == kind and order.fault.match in name and order.strikes():
                return order.fault
        return None
