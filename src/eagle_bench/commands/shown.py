"""What `run`, `fetch` and `compare` show of the results that they put into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eagle_bench.comparison import Comparison
from eagle_bench.plain_text import plain_line
from eagle_bench.report.names import COMPARISON, REPORT
from eagle_bench.runs.gathering import RESULTS

if TYPE_CHECKING:
    from eagle_bench.adapters.vertex import Left
    from eagle_bench.outcomes import RunOutcome
    from eagle_bench.results import CellResult
    from eagle_bench.runs.gathering import Gathered


def outcome(
    run_id: str, state: str, error: str | None, gathered: Gathered, folder: Path, left: Sequence[Left] = ()
) -> RunOutcome:
    """How a run ended, for scripts."""
    from eagle_bench.outcomes import Answer, RunOutcome, Undeleted

    answer = gathered.answer
    return RunOutcome(
        run_id=run_id,
        state=state,
        error=error,
        cells=gathered.cells,
        planned=gathered.planned,
        out=str(folder),
        report=str(folder / REPORT) if answer else None,
        comparison=str(folder / COMPARISON) if answer else None,
        answer=Answer.of(answer) if answer else None,
        left=tuple(Undeleted(resource=item.resource, why=item.why, command=item.command) for item in left),
    )


def show_files(report: str, *results: str) -> None:
    """Say where an answer is, for people and for machines; last, so that it stays in sight."""
    click.echo(f"\nreport:  {plain_line(report)}\nresults: {', '.join(map(plain_line, results))}")


def show_results(answer: Comparison, folder: Path, *, name_missing: bool = True) -> None:
    """Print the answer, where its files are, and each cell that failed or had failures.

    Args:
        name_missing: whether each cell that did not come in is named; False where it is known why, and how many they are.
    """
    from rich.console import Console

    from eagle_bench.report.findings import Finding, together
    from eagle_bench.report.terminal import print_comparison

    named = tuple(one for one in answer.warnings if name_missing or one.code != "missing_cell")
    print_comparison(answer.model_copy(update={"warnings": named}), Console())
    show_files(str(folder / REPORT), str(folder / COMPARISON), f"{folder / RESULTS}/")
    failed = [cell for cell in answer.cells if cell.failure or cell.counts.failed]
    for where, text in together(Finding("failed", cell.variant, cell.concurrency, _failed(cell)) for cell in failed):
        click.echo(plain_line(f"{where}: {text}"), err=True)


def _failed(cell: CellResult) -> str:
    why = cell.failure.message[:200] if cell.failure else "the report shows what the server said"
    share = f"{cell.counts.failed} of {cell.counts.requested} requests failed: " if cell.counts.requested else ""
    return f"{share}{why}"
