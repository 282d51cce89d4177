"""`eagle-bench fetch`: what a job left, in a folder of this machine."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from eagle_bench.commands import json_output
from eagle_bench.errors import NoUsableResult

if TYPE_CHECKING:
    from eagle_bench.adapters.job_results import JobResults
    from eagle_bench.commands.json_output import Tell


@click.command()
@click.argument("job")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for them, by default JOB's id; what was fetched before is moved into earlier/ there.",
)
@click.option("--project", envvar="GOOGLE_CLOUD_PROJECT", help="Project of the job, where JOB is only its id.")
@click.option("--location", default="us-central1", show_default=True, help="Region of the job, likewise.")
@json_output.option
def command(job: str, out: Path | None, project: str | None, location: str, as_json: bool) -> int:
    """Get report, comparison and all cell results of JOB, also of one that failed or was cancelled.

    JOB is its id or its resource name, as `submit` printed it. Where the job did not come to compare its cells, they
    are compared here; of a job that still runs, those that there are so far.
    """
    from eagle_bench.adapters import job_results

    found = job_results.look_up(job_name(job, project, location))
    with json_output.json_only(as_json) as tell:
        _fetch(found, (out or Path(found.run_id)).resolve(), tell)
    return 0


def _fetch(found: JobResults, folder: Path, tell: Tell) -> None:
    from eagle_bench.adapters import job_results
    from eagle_bench.adapters.running_jobs import logs
    from eagle_bench.commands.shown import outcome, show_results
    from eagle_bench.commands.states import in_words, shown_reason
    from eagle_bench.runs.gathering import gather, make_room
    from eagle_bench.tasks.compare import require_usable

    state = found.state
    failed = [task for task in state.tasks if task.error]
    why = shown_reason(state.error, said=bool(failed))
    click.echo(f"{found.run_id}: {in_words(state.state)}{f': {why}' if why else ''}")
    for task in failed:
        click.echo(f"{task.label}: {in_words(task.state)}: {task.reason}", err=True)
    with TemporaryDirectory() as scratch:
        job_results.download(found, Path(scratch))
        make_room(folder, lambda text: click.echo(text, err=True))
        gathered = gather(Path(scratch), found.run_id, found.parameters, folder, ended=state.ended)
    so_far = f"still running: {gathered.cells} of {gathered.planned} cells so far"
    tell(outcome(found.run_id, state.state, state.error, gathered, folder))
    if gathered.answer is None:
        if not state.ended:
            raise NoUsableResult(f"{so_far}, so there is nothing to report yet.", hint="Fetch it again later.")
        where = logs(state.name)
        hint = f"Its tasks' logs say why{f': {where}' if where else '.'}"
        raise NoUsableResult(f"{found.run_id} left no result of any cell.", hint=hint)
    show_results(gathered.answer, folder)
    if not state.ended:
        click.echo(f"{so_far}; fetch it again for the rest", err=True)
        return
    click.echo(gathered.kept, err=True)
    require_usable(gathered.answer)


def job_name(job: str, project: str | None, location: str) -> str:
    """The resource name of a job that is given by its id or its name."""
    if re.fullmatch(r"projects/[^/\s]+/locations/[^/\s]+/pipelineJobs/[^/\s]+", job):
        return job
    if "/" in job or not job.strip():
        raise click.UsageError(f"JOB {job!r}: it must be an id, or projects/…/locations/…/pipelineJobs/….")
    if not project:
        raise click.UsageError("--project is missing: JOB is only an id. Give it, or the job's resource name.")
    return f"projects/{project}/locations/{location}/pipelineJobs/{job}"
