"""A trial: one run of the pipeline, and what goes wrong in it, where, and what people are to be told."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any, Literal

Act = Literal["kill", "terminate", "cancel", "restart", "disk-full", "order"]
Kept = Literal["whole", "in part", "nothing"]

SIGNALS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}
EVER: dict[str, Any] = {"times": None}


@dataclass(frozen=True)
class Order:
    """A fault that Local Vertex is told of, for the row's variant alone unless it is `anybody`'s."""

    kind: str
    details: dict[str, Any] = field(default_factory=dict)
    anybody: bool = False


@dataclass(frozen=True)
class Moment:
    """When to act: a task runs, and by then its engine was asked so often, and a line was said (`{}`: the row's id)."""

    task: str
    asked: int = 0
    line: str = ""


@dataclass(frozen=True)
class Row:
    """One fault.

    Args:
        id: of the row, and of the variant that it hits.
        fault, stage: as the table says them.
        says: a pattern that what people see must hold; its groups, or all of it, stand in the table.
        kept: what there is of the variant's cell in the end; the baseline's is whole.
        args: of the variant's engine.
        orders: told to Local Vertex before the run.
        until: a line at which all orders are taken back; who waits for them goes on.
        act, at, then: what is done by hand, when, and with which orders.
        by: what gives the machines back: the run's own teardown, the command where no task runs any more, or the end of
            Local Vertex itself.
        or_less: a slow machine may come to keep nothing: the clock decides.
    """

    id: str
    fault: str
    stage: str
    says: str
    kept: Kept = "nothing"
    args: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()
    until: str = ""
    act: Act | None = None
    at: Moment | None = None
    then: tuple[Order, ...] = ()
    by: Literal["the run", "cleanup", "its end"] = "the run"
    or_less: bool = False


@dataclass(frozen=True)
class Trial:
    """One run of the pipeline.

    Args:
        ends: the job's last state, or two that it may be; LOST where nobody knows of it any more.
        baseline: what there is of the baseline's cell in the end; None where it depends on who was quicker.
        config: fields beyond the usual ones.
    """

    id: str
    rows: tuple[Row, ...]
    ends: str = "SUCCEEDED"
    baseline: Kept | None = "whole"
    config: dict[str, Any] = field(default_factory=dict)


def lasting(kind: str, **details: Any) -> Order:
    return Order(kind, {**EVER, **details})
