"""The budget of a run: a moment, set as the run starts, past which nothing begins and what runs is cut short.

It travels with the staged prompts, which every task that costs money waits for anyway.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from eagle_bench.provenance import BUDGET
from eagle_bench.results import CellFailure
from eagle_bench.tasks.failures import Stage

HOURS, DEADLINE = "maxHours", "deadline"


@dataclass(frozen=True)
class Budget:
    """`hours` from the start of the run; they end at `deadline_s` (seconds since 1970)."""

    hours: float
    deadline_s: float

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline_s - time.time())

    @property
    def spent(self) -> bool:
        return self.left_s <= 0

    def failure(self, stage: Stage, doing: str) -> CellFailure:
        """Why something was not done, or not to its end."""
        return CellFailure(
            stage=stage, kind=BUDGET, message=f"{doing}: the run's budget of {self.hours:g} h (`max_hours`) was used up"
        )


def start_budget(prompts: Any, max_hours: float) -> None:
    """Write into the artifact when the budget that begins now ends; 0 hours are no budget."""
    if max_hours:
        prompts.metadata[HOURS] = max_hours
        deadline = datetime.fromtimestamp(time.time() + max_hours * 3600, UTC)
        prompts.metadata[DEADLINE] = deadline.isoformat(timespec="milliseconds")


def budget_of(prompts: Any) -> Budget | None:
    """The budget of the run that these prompts were staged for; None without one."""
    if DEADLINE not in prompts.metadata:
        return None
    deadline = datetime.fromisoformat(prompts.metadata[DEADLINE])
    return Budget(float(prompts.metadata[HOURS]), deadline.timestamp())
