"""What `plan` says of a run before it: endpoints, hours, dollars, and what was checked. The form of `plan --json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from eagle_bench.config import Config
from eagle_bench.estimate import Assumptions, Estimate, Range, estimate, prompts_needed
from eagle_bench.results import SCHEMA_VERSION, Record
from eagle_bench.variants import VariantSpec, resolve

Status = Literal["ok", "refused", "not checked"]


class Check(Record):
    """One thing that was looked at. `name` is stable; `hint` says what to do."""

    name: str
    status: Status
    text: str
    hint: str | None = None


class PlannedEndpoint(Record):
    """One variant: what serves it, on what, how long it is needed and what that costs. None: not known."""

    variant: str
    kind: Literal["deployed", "endpoint", "url"]
    what: str = Field(description="model, endpoint or address")
    machine: str | None = None
    accelerators: str | None = None
    image: str | None = None
    price_per_hour: float | None = None
    hours: Range
    cost: Range | None = Field(None, description="dollars")


class RunPlan(Record):
    """The whole of it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    project: str
    location: str
    endpoints: tuple[PlannedEndpoint, ...]
    levels: tuple[int, ...]
    prompts_needed: int
    estimate: Estimate
    assumptions: Assumptions
    checks: tuple[Check, ...]
    may_run: bool = Field(description="nothing is refused; what could not be checked may still fail")


def run_plan(config: Config, assumed: Assumptions, checks: Sequence[Check]) -> RunPlan:
    """The plan of a config with the checks that were made.

    Raises:
        InputError: a level has fewer requests than rounds.
    """
    expected = estimate(config, assumed)
    return RunPlan(
        project=config.project,
        location=config.location,
        endpoints=tuple(_endpoint(spec, config, expected) for spec in resolve(config)),
        levels=tuple(sorted(config.concurrency)),
        prompts_needed=prompts_needed(config),
        estimate=expected,
        assumptions=assumed,
        checks=tuple(checks),
        may_run=all(check.status != "refused" for check in checks),
    )


def _endpoint(spec: VariantSpec, config: Config, expected: Estimate) -> PlannedEndpoint:
    if spec.url:
        return PlannedEndpoint(variant=spec.id, kind="url", what=spec.url, hours=expected.sweep_h)
    if spec.endpoint:
        return PlannedEndpoint(variant=spec.id, kind="endpoint", what=spec.endpoint, hours=expected.sweep_h)
    serving = spec.serving
    assert serving is not None and spec.model is not None
    accelerator = serving.accelerator
    return PlannedEndpoint(
        variant=spec.id,
        kind="deployed",
        what=spec.model,
        machine=f"{serving.machine_type} (spot)" if serving.spot else serving.machine_type,
        accelerators=f"{accelerator.count} × {accelerator.type}" if accelerator else None,
        image=serving.image,
        price_per_hour=config.price_per_hour,
        hours=expected.endpoint_h,
        cost=expected.endpoint_cost,
    )
