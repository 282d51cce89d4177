"""What came in, held against the plan: every planned cell once, or it is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eagle_bench.comparison import Plan
from eagle_bench.rates import never_held
from eagle_bench.results import CellResult
from eagle_bench.units import count, percent

Key = tuple[str, int]
"""A cell's place: variant and concurrency."""
_INTERRUPTED = "interrupted"
_CUT_SHORT = (f"{_INTERRUPTED}:", "budget:")


def cut_short(cell: CellResult) -> bool:
    """Whether a cell was ended before its time, by a signal or the run's budget."""
    return any(warning.startswith(_CUT_SHORT) for warning in cell.warnings)


def interrupted(cell: CellResult) -> bool:
    """Whether a signal ended a cell, before or after its first answer."""
    told = any(warning.startswith(_CUT_SHORT[0]) for warning in cell.warnings)
    return told or (cell.failure is not None and cell.failure.kind == _INTERRUPTED)


@dataclass(frozen=True)
class Grid:
    """Planned cells by (variant, concurrency), and what did not fit."""

    plan: Plan
    cells: dict[tuple[str, int], CellResult]
    twice: frozenset[tuple[str, int]]
    unplanned: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, plan: Plan, cells: Iterable[CellResult]) -> Grid:
        found: dict[tuple[str, int], CellResult] = {}
        twice: set[tuple[str, int]] = set()
        unplanned: list[tuple[str, int]] = []
        for cell in cells:
            key = cell.variant, cell.concurrency
            if cell.variant not in plan.variants or cell.concurrency not in plan.levels:
                unplanned.append(key)
            elif key in found:
                twice.add(key)
            else:
                found[key] = cell
        return cls(plan, found, frozenset(twice), tuple(unplanned))

    def planned(self) -> Iterator[tuple[str, int]]:
        """All planned cells, variants in the plan's order, levels rising."""
        for variant in self.plan.variants:
            for level in sorted(self.plan.levels):
                yield variant, level

    def good(self) -> Iterator[CellResult]:
        """Cells that were planned, came in once and measured something."""
        for key in self.planned():
            cell = self.cells.get(key)
            if cell is not None and cell.metrics is not None and key not in self.twice:
                yield cell

    def whole(self) -> Iterator[CellResult]:
        """The good ones that nothing ended before their time: of the others it says enough that they were."""
        return (cell for cell in self.good() if not cut_short(cell))

    def against_baseline(self) -> Iterator[tuple[CellResult, CellResult]]:
        """The baseline's cell and a variant's at the same level, both good."""
        for cell in self.good():
            baseline = self.cells.get((self.plan.baseline, cell.concurrency))
            if cell.variant != self.plan.baseline and baseline is not None and baseline.metrics is not None:
                yield baseline, cell

    def _interrupted(self) -> bool:
        """Whether a signal ended the measurement, as far as its cells can tell."""
        return any(map(interrupted, self.cells.values()))

    def problem(self, variant: str, level: int) -> str | None:
        """Why a cell can't be part of a verdict, in words; None where it can."""
        if (variant, level) in self.twice:
            return f"{variant} came in more than once, and none of its results is guessed to be the right one"
        cell = self.cells.get((variant, level))
        if cell is None:
            return f"{variant} has no result{': the measurement was interrupted' if self._interrupted() else ''}"
        if cell.failure is not None and cell.failure.kind == _INTERRUPTED:
            return f"{variant} was interrupted before a request was sent"
        if cell.failure is not None:
            return f"{variant}: {cell.failure.stage.replace('_', ' ')} failed: {cell.failure.message.removesuffix('.')}"
        counts = cell.counts
        if counts.completed == 0 or cell.metrics is None:
            return f"{variant}: none of {count(counts.requested, 'request')} was answered{_cause(cell)}"
        rate = counts.failed / counts.requested if counts.requested else 0.0
        if rate > self.plan.max_failure_rate:
            return (
                f"{variant}: {counts.failed} of {count(counts.requested, 'request')} failed "
                f"({percent(rate)}; {percent(self.plan.max_failure_rate)} are allowed){_cause(cell)}"
            )
        if cell.environment.get("request_rate", "inf") != "inf":
            return f"{variant} was sent {cell.environment['request_rate']} requests a second: that holds no concurrency"
        if never_held(cell):
            return f"{variant} never had {count(level, 'request')} in flight at once: what it measured is of a lower concurrency"
        if cell.token_source == "mixed":
            return f"{variant}: its tokens were counted in two ways, by the server's usage and by the tokenizer"
        return None


def _cause(cell: CellResult) -> str:
    """The most frequent error of a cell, to be put behind a sentence."""
    errors = [request.error for request in cell.requests if request.error is not None]
    if not errors:
        return ""
    names = [f"{error.kind} {error.status}" if error.status else error.kind for error in errors]
    most = max(sorted(set(names)), key=names.count)
    return f": {'mostly ' if len(set(names)) > 1 else ''}{most}"
