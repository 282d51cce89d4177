"""`eagle-bench submit`: the pipeline as a job on Vertex AI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from eagle_bench import config_file
from eagle_bench.commands import json_output
from eagle_bench.commands.choices import Choice
from eagle_bench.commands.job_whereabouts import (
    job_may_be,
    next_steps,
    schedule_may_be,
    told_if_interrupted,
    whereabouts,
)
from eagle_bench.errors import InputError, ServiceError

if TYPE_CHECKING:
    from eagle_bench.adapters.pipeline_jobs import FailurePolicy
    from eagle_bench.adapters.vertex_address import Place
    from eagle_bench.config import Config
    from eagle_bench.outcomes import SubmitOutcome
    from eagle_bench.resuming import EarlierRun

LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--template",
    help="Compiled pipeline: a file, or its https:// address in Artifact Registry. Compiled afresh when absent.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="[NAME=]ADDRESS",
    help="Address of the image `bench` or `slim`, as for `compile`; only without --template.",
)
@click.option("--experiment", help="Vertex AI Experiment that the run's metrics are added to.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of the job; may be repeated.")
@click.option(
    "--failure-policy",
    type=Choice(["slow", "fast"]),
    default="slow",
    show_default=True,
    help="Once a task has failed: slow starts those that don't need it, fast starts none.",
)
@click.option("--resume", metavar="RUN", help="Id or name of a job that ended: only what it lacks is measured.")
@click.option(
    "--schedule", "cron", metavar="CRON", help="Run again and again: '0 3 * * 1', 'TZ=Europe/Berlin 0 3 * * 1'."
)
@click.option("--wait", is_flag=True, help="Wait for the end, showing the tasks' states as they change.")
@click.option("--skip-checks", is_flag=True, help="Don't look first for servers, data, tokenizer and images.")
@click.option("--dry-run", is_flag=True, help="Print the request and send nothing.")
@json_output.option
def command(
    config: Path,
    template: str | None,
    images: tuple[str, ...],
    experiment: str | None,
    labels: tuple[str, ...],
    failure_policy: FailurePolicy,
    resume: str | None,
    cron: str | None,
    wait: bool,
    skip_checks: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Submit the pipeline to Vertex AI with the settings of CONFIG."""
    from eagle_bench.adapters import pipeline_jobs, submissions
    from eagle_bench.adapters.running_jobs import schedules_link
    from eagle_bench.adapters.vertex_address import place_of
    from eagle_bench.config import ON_VERTEX_AI

    given = config_file.load(config, needs=ON_VERTEX_AI)
    if template is not None and images:
        raise click.UsageError("--image goes into a template that is compiled now: leave out --template.")
    if cron is not None:
        submissions.check_cron(cron)
        if wait or experiment or resume or as_json:
            raise click.UsageError("--schedule makes no run now: leave out --wait, --experiment, --resume and --json.")
    checked = not (dry_run or skip_checks)
    if checked:
        _preflight(given)
    if dry_run and template is None and not images:
        click.echo("no --image: the request names images that are in no registry", err=True)
    place = place_of(given)
    earlier = _earlier(resume, given, place) if resume else None
    if experiment and not dry_run:
        submissions.check_experiment(place, experiment)
    with _template(template, images) as source:
        job = pipeline_jobs.prepare(
            given,
            source,
            pipeline_jobs.new_run_id(),
            {},
            earlier=earlier,
            labels=_labels(labels),
            failure_policy=failure_policy,
            credentials_needed=not dry_run,
        )
        if dry_run:
            click.echo(json.dumps(pipeline_jobs.request_of(job), indent=2))
            return 0
        if checked:
            _check_images(job)
        if cron is not None:
            title = f"eagle-bench {config.stem}"
            with told_if_interrupted(schedule_may_be(title, place)):
                name = submissions.schedule(job, cron, title, service_account=given.service_account)
            seen = schedules_link(place) or "Local Vertex keeps it, and starts no job by it: Vertex AI would."
            click.echo(f"scheduled {name}: {cron}\n{seen}")
            return 0
        with told_if_interrupted(job_may_be(f"{place}/pipelineJobs/{job.job_id}")):
            name = submissions.submit(
                job,
                service_account=given.service_account,
                experiment=experiment,
                on_trouble=lambda text: click.echo(text, err=True),
            )
            where = whereabouts(name)
    with json_output.json_only(as_json) as tell:
        click.echo("\n".join(filter(None, (f"submitted {name}", where))))
        try:
            if not wait:
                click.echo(next_steps(name))
                return 0
            from eagle_bench.commands import waiting

            return waiting.wait(name)
        finally:
            tell(_outcome(name, ended=wait))


def _preflight(given: Config) -> None:
    """Look for servers, data and tokenizer before anything is made; what may be otherwise for the job is only said.

    Raises:
        InputError, ServiceError: they can't be had, or can't be reached from here, which says nothing of the job.
    """
    from eagle_bench.adapters.vertex_address import on_this_machine
    from eagle_bench.planning.quick_checks import heed, host_checks, machine_checks, require_image, server_checks
    from eagle_bench.tasks.stage_data import preflight

    require_image(given)
    heed(
        (*machine_checks(given), *server_checks(given, reached_from_here=False), *host_checks(given)),
        lambda text: click.echo(text, err=True),
    )
    try:
        preflight(given, job_of="Local Vertex" if on_this_machine() else "Vertex AI")
    except ServiceError as error:
        if error.kind == "permission" and given.hf_token_secret and given.hf_token_secret in error.message:
            # Only the job's account must read the secret, and without the token a refusal of the hub proves nothing.
            click.echo(f"data and tokenizer: not looked for. {error.message}", err=True)
            return
        if error.kind == "unavailable":
            error.hint = f"{error.hint or ''} Or leave the check to the job: --skip-checks.".strip()
        raise


def _outcome(name: str, *, ended: bool) -> SubmitOutcome:
    from eagle_bench.adapters.running_jobs import console_link, state_of
    from eagle_bench.outcomes import SubmitOutcome

    try:
        state = state_of(name) if ended else None
    except ServiceError:  # it was said when it was waited for
        state = None
    return SubmitOutcome(
        run_id=name.rsplit("/", 1)[-1],
        job=name,
        console=console_link(name),
        state=state.state if state else None,
        error=state.error if state else None,
    )


def _earlier(run: str, config: Config, place: Place) -> EarlierRun:
    """The run to go on with, once it is known that this config can."""
    from eagle_bench.adapters.pipeline_template import parameters
    from eagle_bench.commands.fetch import job_name
    from eagle_bench.resuming import resume, taken_and_left
    from eagle_bench.runs.earlier_runs import run_of

    earlier = run_of(job_name(run, place.project, place.location), lambda text: click.echo(text, err=True))
    taken, left = taken_and_left(resume(parameters(config, {}), earlier))
    click.echo(
        f"taken from {earlier.run_id}: {taken}; measured now: {left}; the new job has the results of both", err=True
    )
    return earlier


@contextmanager
def _template(given: str | None, images: tuple[str, ...]) -> Iterator[Path | str]:
    """The template: where it was said to be, or compiled now. A tag in Artifact Registry is pinned to its version."""
    from eagle_bench.adapters.artifact_registry import pinned_template
    from eagle_bench.adapters.pipeline_template import compile_template, images_of

    if given is not None and "://" in given:
        yield pinned_template(given)
    elif given is not None:
        if not Path(given).is_file():
            raise InputError(f"--template {given!r}: there is no such file.")
        yield Path(given)
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "eagle-benchmark.yaml"
            compile_template(path, images=images_of(images))
            yield path


def _check_images(job: Any) -> None:
    """Look for the images that a job names, unless its components run on this machine without any.

    Raises:
        InputError, ServiceError: one can't be had; nothing was made yet.
    """
    from eagle_bench.adapters import pipeline_jobs
    from eagle_bench.adapters.artifact_registry import check_images
    from eagle_bench.adapters.vertex_address import on_this_machine

    if not on_this_machine():
        for image in check_images(pipeline_jobs.images_of(job)):
            click.echo(f"{image}: not looked for, its registry is not Artifact Registry", err=True)


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    labels = {}
    for label in given:
        key, equals, value = label.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--label {label!r}: it must be KEY=VALUE.")
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise click.UsageError(f"--label {label[:60]!r}: keys and values take a-z, 0-9, _ and -, 63 at most.")
        if key in labels:
            raise click.UsageError(f"--label {key} is given twice.")
        labels[key] = value
    return labels
