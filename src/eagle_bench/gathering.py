"""What a run left, brought together in one folder: cells, the answer, the report.

Every cell that was measured is kept, whatever happened to the run after it: where the run could not compare
them any more, they are compared here.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, Plan
from eagle_bench.results import CellResult
from eagle_bench.tasks.compare import write

COMPARISON, REPORT, SUMMARY, RESULTS, EARLIER = (
    "comparison.json",
    "report.html",
    "summary.md",
    "results",
    "earlier",
)


@dataclass(frozen=True)
class Gathered:
    """What stands in the folder now: `cells` were measured. `answer` is None where no cell came in at all."""

    answer: Comparison | None
    cells: int
    planned: int


def make_room(out: Path) -> None:
    """Move what an earlier run left in a folder into `earlier/`, so that nothing is lost or mixed up."""
    mine = [out / name for name in (COMPARISON, REPORT, SUMMARY, RESULTS) if (out / name).exists()]
    if not mine:
        return
    when = datetime.fromtimestamp(max(path.stat().st_mtime for path in mine))
    folder = out / EARLIER / f"{when:%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True, exist_ok=True)
    for path in mine:
        path.rename(folder / path.name)


def gather(artifacts: Path, plan: Plan, out: Path) -> Gathered:
    """Copy results out of a run's artifact folder, comparing them where the run itself did not get to it.

    Args:
        artifacts: the pipeline root of the run, as the local runner lays it out.
        plan: what was to be measured.
    """
    planned = len(plan.variants) * len(plan.levels)
    cells = list(_cells(artifacts))
    if not cells:
        return Gathered(None, 0, planned)
    results = out / RESULTS
    results.mkdir(parents=True, exist_ok=True)
    for cell in cells:
        name = f"{cell.variant}-c{cell.concurrency}.json"
        (results / name).write_text(cell.model_dump_json(indent=1), encoding="utf-8")
    measured = sum(cell.metrics is not None for cell in cells)
    compared = next(iter(sorted(artifacts.glob("**/compare/comparison"))), None)
    if compared:
        folder = compared.parent
        for source, name in ((compared, COMPARISON), (folder / "report", REPORT), (folder / "summary", SUMMARY)):
            shutil.copyfile(source, out / name)
        return Gathered(Comparison.model_validate_json(compared.read_bytes()), measured, planned)
    answer = compare(plan, cells)
    write(answer, out / COMPARISON, out / REPORT, out / SUMMARY)
    return Gathered(answer, measured, planned)


def _cells(artifacts: Path) -> list[CellResult]:
    """The cells of a run; a file that was cut short is no cell."""
    found = []
    for path in sorted(artifacts.glob("**/benchmark/cell")):
        try:
            found.append(CellResult.model_validate_json(path.read_bytes()))
        except ValidationError:
            continue
    return found
