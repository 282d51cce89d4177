"""What `run` and `fetch` show of the results that they put into a folder."""

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
    from eagle_bench.runs.gathering import Gathered


FAILED_TASKS = "The failed tasks are: ["


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


def shown_reason(error: str | None, *, said: bool = True) -> str | None:
    """A job's error as it is shown: whole with --debug; else nothing, where it only names tasks whose errors were said.

    Args:
        said: whether the tasks' own errors stand above.
    """
    from eagle_bench.adapters.running_jobs import reason

    context = click.get_current_context(silent=True)
    if context and context.find_root().params.get("debug"):
        return error
    return None if said and error and FAILED_TASKS in error else reason(error)


def show_results(answer: Comparison, folder: Path, *, name_missing: bool = True) -> None:
    """Print the answer, where its files are, and each cell that failed or had failures.

    Args:
        name_missing: whether each cell that did not come in is named; False where it is known why, and how many they are.
    """
    from rich.console import Console

    from eagle_bench.report.terminal import print_comparison

    named = tuple(one for one in answer.warnings if name_missing or one.code != "missing_cell")
    print_comparison(answer.model_copy(update={"warnings": named}), Console())
    click.echo(f"\nreport:  {folder / REPORT}\nresults: {folder / COMPARISON}, {folder / RESULTS}/")
    for cell in answer.cells:
        if cell.failure or cell.counts.failed:
            why = cell.failure.message if cell.failure else "the report shows what the server said"
            share = (
                f"{cell.counts.failed} of {cell.counts.requested} requests failed: " if cell.counts.requested else ""
            )
            click.echo(plain_line(f"{cell.variant} at concurrency {cell.concurrency}: {share}{why[:200]}"), err=True)
