"""Throughput by the clock, of two cells over the same rounds, and whether a cell's concurrency was ever held."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eagle_bench.intervals import Floats
from eagle_bench.metrics import mean_rate
from eagle_bench.results import CellResult, RoundWindow


@dataclass(frozen=True)
class Rates:
    """Output tokens per second of two cells over the rounds that both have, and the log ratio of each such round."""

    one: float
    other: float
    by_round: Floats

    @property
    def ratio(self) -> float:
        """How many times as much the first gives."""
        return self.one / self.other


def rates(one: CellResult, other: CellResult) -> Rates | None:
    """Rates of two cells that can be held against each other; None where one has none.

    A cell that ended early lacks the prompts of its last rounds: its rate is of other work than the whole rate of the
    other. So only rounds that both have count. Files that know no rounds give the rate of all they measured.
    """
    windows = [{w.round: w for w in cell.rounds if w.output_tokens_per_s} for cell in (one, other)]
    both = sorted(windows[0].keys() & windows[1].keys())
    if not both and one.rounds and other.rounds:
        return None
    logs = np.array([_log(windows[0][r]) - _log(windows[1][r]) for r in both])
    if windows[0].keys() == windows[1].keys() or not both:
        means = [cell.metrics.output_tokens_per_s if cell.metrics else None for cell in (one, other)]
    else:
        means = [mean_rate((side[r].output_tokens_per_s, side[r]) for r in both) for side in windows]
    return Rates(means[0], means[1], logs) if means[0] and means[1] else None


def never_held(cell: CellResult) -> bool:
    """Whether the requests' own times show that fewer of them ran at once than the concurrency says, in all rounds."""
    return bool(cell.rounds) and all(window.requests_per_s is None for window in cell.rounds)


def _log(window: RoundWindow) -> float:
    return math.log(window.output_tokens_per_s or math.nan)
