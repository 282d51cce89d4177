"""`eagle-bench cleanup`: what runs left behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import click

from eagle_bench.commands import json_output
from eagle_bench.errors import InputError
from eagle_bench.nearest import did_you_mean

if TYPE_CHECKING:
    from eagle_bench.adapters.vertex_address import Place
    from eagle_bench.adapters.vertex_teardown import Made, TeardownReport
    from eagle_bench.outcomes import CleanupOutcome

UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@click.command()
@click.argument("run_id", required=False)
@click.option("--older-than", metavar="AGE", help="All runs' leftovers of at least this age: 30m, 6h, 2d.")
@click.option("--project", required=True, envvar="GOOGLE_CLOUD_PROJECT", help="Project of the endpoints.")
@click.option("--location", default="us-central1", show_default=True, help="Region of the endpoints.")
@click.option("--cancel", is_flag=True, help="With --yes: cancel the run's job first, and wait for its end.")
@click.option("--yes", is_flag=True, help="Delete them; without it they are only listed.")
@json_output.option
def command(
    run_id: str | None,
    older_than: str | None,
    project: str,
    location: str,
    cancel: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Find endpoints and models that runs left, by RUN_ID or by age, and delete them with --yes.

    What a job that has not ended uses is shown, and deleted only with --cancel.
    """
    if (run_id is None) == (older_than is None):
        raise click.UsageError("Give a RUN_ID or --older-than, one of them.")
    if cancel and run_id is None:
        raise click.UsageError("--cancel needs a RUN_ID: its job is the one to cancel.")
    least = age(older_than) if older_than else timedelta(0)
    from eagle_bench.adapters import vertex
    from eagle_bench.commands.states import in_words

    place = vertex.Place(project, location)
    if cancel and yes:
        from eagle_bench.adapters.running_jobs import cancel_and_give_back

        say = partial(click.echo, err=as_json)
        state = cancel_and_give_back(f"{place}/pipelineJobs/{run_id}", say)
        say(f"the job {run_id} is {in_words(state.state)}")
    found = [made for made in vertex.leftovers(place, run_id) if datetime.now(UTC) - made.created >= least]
    # With --cancel it was seen to its end, or waited for as long as anybody should.
    jobs = {} if cancel and yes else _running(place, [run_id] if run_id else [made.run for made in found])
    in_use = {made.resource: jobs[run] for made in found if (run := run_id or made.run) in jobs}
    free = [made for made in found if made.resource not in in_use]
    with json_output.json_only(as_json) as tell:
        for made in found:
            job = f", its job is {in_words(in_use[made.resource])}" if made.resource in in_use else ""
            click.echo(f"{made.resource}  run {made.run or 'unknown'}, made {made.created:%Y-%m-%d %H:%M} UTC{job}")
        if not found:
            if run_id is None or (cancel and yes) or run_id in jobs:
                click.echo(f"nothing{f' of {run_id}' if run_id else ''} is left in {place}")
            else:
                click.echo(_none_of(place, run_id))
        elif not yes:
            click.echo(f"{len(found)} found, nothing deleted{f': --yes deletes {_them(free, found)}' if free else ''}")
        if in_use:
            click.echo(f"{len(in_use)} in use by jobs that have not ended: only RUN_ID with --cancel deletes those")
        reports = _delete(place, free) if yes else []
        tell(_outcome(found, in_use, reports))
    if run_id in jobs and yes:
        raise InputError(
            f"nothing was deleted: the job {run_id} is {in_words(jobs[run_id])} and needs its endpoints.",
            hint=f"Wait for its end, or cancel it and give everything back: eagle-bench cleanup {run_id} "
            f"--project {place.project} --location {place.location} --cancel --yes",
        )
    left = [item for report in reports for item in report.left]
    if left:
        raise vertex.not_deleted(left)


def _running(place: Place, runs: Iterable[str | None]) -> dict[str | None, str]:
    """Runs whose job has not ended, each with its job's state.

    Raises:
        ServiceError: a job can't be looked up.
    """
    from eagle_bench.adapters.running_jobs import running

    return {run: job.state for run in set(runs) if run and (job := running(place, run))}


def _none_of(place: Place, run_id: str) -> str:
    """What to say of a run of which nothing is left: whether there was one of this name is another matter.

    Raises:
        ServiceError: its job can't be looked up.
    """
    from eagle_bench.adapters import vertex
    from eagle_bench.adapters.running_jobs import found

    near = did_you_mean(run_id, [made.run for made in vertex.leftovers(place) if made.run])
    if found(place, run_id):
        return f"nothing of {run_id} is left in {place}{near.replace(' Did', '. Did')}"
    return f"no job and no resource of {run_id} was found in {place}: check the name.{near}"


def _them(free: Sequence[Made], found: Sequence[Made]) -> str:
    return "them" if len(free) == len(found) else f"{len(free)} of them"


def _delete(place: Place, found: Sequence[Made]) -> list[TeardownReport]:
    from eagle_bench.adapters import vertex

    reports = []
    for name in dict.fromkeys(made.id for made in found):
        reports.append(vertex.teardown_id(place, name))
        for resource in reports[-1].deleted:
            click.echo(f"deleted {resource}")
    return reports


def _outcome(found: Sequence[Made], in_use: Mapping[str, str], reports: Sequence[TeardownReport]) -> CleanupOutcome:
    from eagle_bench.outcomes import CleanupOutcome, Leftover, Undeleted

    return CleanupOutcome(
        found=tuple(
            Leftover(resource=made.resource, run=made.run, created=made.created, job=in_use.get(made.resource))
            for made in found
        ),
        deleted=tuple(resource for report in reports for resource in report.deleted),
        left=tuple(
            Undeleted(resource=item.resource, why=item.why, command=item.command)
            for report in reports
            for item in report.left
        ),
    )


def age(text: str) -> timedelta:
    """30m, 6h or 2d as a duration.

    Raises:
        InputError: it is none of these.
    """
    match = re.fullmatch(r"(\d+)([mhd])", text)
    if not match:
        raise InputError(f"--older-than {text!r}: it must be a number and m, h or d, such as 6h.")
    try:
        return timedelta(**{UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise InputError(f"--older-than {text[:30]!r}: too long ago.") from None
