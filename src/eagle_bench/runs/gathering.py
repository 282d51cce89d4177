"""What a run left, brought together in one folder: cells, the answer, the report.

Every cell that was measured is kept, whatever happened to the run after it: where the run could not compare
them any more, they are compared here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eagle_bench.adapters.earlier_cells import read_earlier
from eagle_bench.adapters.earlier_results import set_aside
from eagle_bench.adapters.whole_files import write_files
from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison
from eagle_bench.errors import InputError
from eagle_bench.report.answer_files import answer_files
from eagle_bench.report.names import COMPARISON, REPORT, SUMMARY
from eagle_bench.results import CellResult
from eagle_bench.resuming import Kept, whole
from eagle_bench.tasks.compare import planned
from eagle_bench.units import count
from eagle_bench.unreadable import reason

RUN, RESULTS = "run.json", "results"


@dataclass(frozen=True)
class Gathered:
    """What stands in the folder now: `cells` were measured, `whole` of them to their end, so that another run can take them.

    `answer` is None where no cell came in at all.
    """

    answer: Comparison | None
    cells: int
    planned: int
    whole: int = 0

    @property
    def kept(self) -> str:
        """How much there is, in words."""
        if not self.cells:
            return f"none of {count(self.planned, 'cell')} was measured"
        cells = f"all {self.cells} cells" if self.cells == self.planned else f"{self.cells} of {self.planned} cells"
        part = self.cells - self.whole
        how = "" if not part else ", in part" if part == self.cells else f", {part} of them in part"
        return f"{cells} {'was measured and is' if self.cells == 1 else 'were measured and are'} kept{how}"


def order_of(paths: Iterable[Path]) -> tuple[str, ...]:
    """The order that variants have in the configs of the runs whose results these are; empty where none is told."""
    folders = (path if path.is_dir() else path.parent for path in paths)
    noted = dict.fromkeys(place / RUN for folder in folders for place in (folder, folder.resolve().parent))
    found: dict[str, None] = {}
    for path in noted:
        # An order is never worth a failure: what can't be read, or is another program's, tells none.
        with suppress(OSError, ValueError, TypeError, KeyError):
            variants = json.loads(path.read_bytes())["parameters"]["variants"]
            found |= dict.fromkeys(str(variant["id"]) for variant in variants)
    return tuple(found)


def make_room(out: Path, say: Callable[[str], None]) -> Path:
    """Set aside what an earlier run left in a folder, and say so: nothing is lost or mixed up.

    Returns:
        Where the earlier run is now; `out` itself where there was none.

    Raises:
        InputError: it can't be moved.
    """
    try:
        moved = set_aside(out, (COMPARISON, REPORT, SUMMARY, RUN, RESULTS))
    except OSError as error:
        raise InputError(
            f"{error.filename}: the results of an earlier run can't be moved there: {error.strerror}.",
            hint="Give another --out.",
        ) from None
    if moved is None:
        return out
    say(f"the results of an earlier run were moved to {moved}")
    return moved


def gather(
    artifacts: Path,
    run_id: str,
    parameters: Mapping[str, Any],
    out: Path,
    *,
    ended: bool = True,
    earlier: Sequence[Kept] | None = None,
    equipment: Mapping[str, Any] | None = None,
) -> Gathered:
    """Copy results out of a run's artifact folder, comparing them where the run itself did not get to it.

    Args:
        artifacts: what the run's tasks wrote: a pipeline root, of this machine or fetched.
        parameters: what the run was told.
        ended: False while the run goes on: what is missing may still come.
        earlier: the cells that the run took from an earlier one; None to read them where the parameters say they lie.
        equipment: what this machine measured it with; None for a job.

    Raises:
        InputError: the parameters are not those of a run of ours, or the folder can't be written.
    """
    plan = planned(run_id, parameters)
    note(run_id, parameters, out, equipment)
    size = len(plan.variants) * len(plan.levels)
    taken = read_earlier(parameters.get("earlier") or {}) if earlier is None else earlier
    cells = [kept.cell for kept in (*kept_in(artifacts), *taken)]
    if not cells:
        return Gathered(None, 0, size)
    write_files(
        {out / RESULTS / f"{cell.variant}-c{cell.concurrency}.json": cell.model_dump_json(indent=1) for cell in cells}
    )
    measured, whole_ones = sum(cell.metrics is not None for cell in cells), sum(map(whole, cells))
    compared = next(iter(sorted(artifacts.glob("**/compare*/comparison"))), None)
    if compared:
        folder = compared.parent
        sources = {COMPARISON: compared, REPORT: folder / "report", SUMMARY: folder / "summary"}
        write_files({out / name: source.read_text(encoding="utf-8") for name, source in sources.items()})
        return Gathered(Comparison.model_validate_json(compared.read_bytes()), measured, size, whole_ones)
    if not ended:
        plan = plan.model_copy(
            update={"run": {**plan.run, "state": f"still running: {measured} of {size} cells so far"}}
        )
    answer = compare(plan, cells)
    if not ended:
        answer = _so_far(answer)
    write_files(answer_files(answer, out))
    return Gathered(answer, measured, size, whole_ones)


def note(run_id: str, parameters: Mapping[str, Any], out: Path, equipment: Mapping[str, Any] | None = None) -> None:
    """Write down which run this is, what it was told, and what this machine measured it with.

    Raises:
        InputError: the folder can't be written.
    """
    noted: dict[str, Any] = {"run": run_id, "parameters": dict(parameters)}
    if equipment is not None:
        noted["equipment"] = dict(equipment)
    write_files({out / RUN: json.dumps(noted, indent=1)})


def _so_far(answer: Comparison) -> Comparison:
    """The answer of a run that goes on: no cell has failed to come in yet."""
    warnings = (
        one.model_copy(update={"text": "has not been measured yet."}) if one.code == "missing_cell" else one
        for one in answer.warnings
    )
    return answer.model_copy(update={"warnings": tuple(warnings)})


def kept_in(artifacts: Path, on_damage: Callable[[Path, str], None] = lambda path, why: None) -> list[Kept]:
    """The cells of a run, measured or given up before, each with its file; one that was cut short is no cell.

    Args:
        on_damage: hears of each file that holds something else, and why it can't be read.
    """
    found = []
    for path in sorted((*artifacts.glob("**/benchmark*/cell"), *artifacts.glob("**/smoke-test*/checked"))):
        for line in path.read_bytes().splitlines():
            try:
                found.append(Kept(str(path), CellResult.model_validate_json(line)))
            except ValidationError as error:
                on_damage(path, reason(error))
    return found
