"""What became of a run beside its numbers: what it left, and cells that it did not measure itself.

Those are taken from an earlier run, or its budget had no room for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

from eagle_bench.comparison import Warning
from eagle_bench.grid import Grid
from eagle_bench.results import CellResult
from eagle_bench.units import conjunction, count, levels

BUDGET: Literal["budget"] = "budget"
"""Kind of a cell's failure, and code of its warning, where the run's time was used up."""


def not_deleted(grid: Grid) -> Iterator[Warning]:
    """Each resource that the run could not delete when its variant was measured."""
    for said in grid.plan.left:
        yield Warning(code="not_deleted", text=f"could not be deleted when its variant was measured: {said}")


def earlier_run(grid: Grid) -> Iterator[Warning]:
    """One warning for all levels of a variant that come from the same earlier run."""
    this, taken = grid.plan.run.get("run"), defaultdict[tuple[str, str], list[CellResult]](list)
    for cell in _cells(grid):
        if this and cell.run_id and cell.run_id != this:
            taken[cell.variant, cell.run_id].append(cell)
    for (variant, run), cells in taken.items():
        days = sorted({cell.started_at[:10] for cell in cells if cell.started_at})
        text = (
            f"its results at concurrency {levels([cell.concurrency for cell in cells])} are those of the earlier run {run}"
            f"{f' of {conjunction(days)}' if days else ''}. Machines of one type differ, and so do days: measure both "
            "sides anew where a small difference decides."
        )
        yield Warning(code="earlier_run", variant=variant, text=text)


def budget(grid: Grid) -> Iterator[Warning]:
    """That the run ended at its budget, and what the answer lacks for it."""
    cells = list(_cells(grid))
    missing = sum(cell.failure is not None and cell.failure.kind == BUDGET for cell in cells)
    cut = sum(cell.metrics is not None and any(w.startswith(f"{BUDGET}:") for w in cell.warnings) for cell in cells)
    if not missing and not cut:
        return
    lacking = [f"{count(missing, 'cell')} of {len(list(grid.planned()))} not measured"] if missing else []
    lacking += [f"{count(cut, 'cell')} cut short"] if cut else []
    text = (
        f"the run's budget (`max_hours`) was used up: {conjunction(lacking)}. The answer is from what there is; "
        "`--resume` with this run measures the rest."
    )
    yield Warning(code=BUDGET, text=text)


def _cells(grid: Grid) -> list[CellResult]:
    return [grid.cells[key] for key in grid.planned() if key in grid.cells]
