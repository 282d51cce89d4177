"""Sending a prepared job to Vertex AI: once, or on a schedule, and into an experiment."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from eagle_bench.adapters.google_rest import call
from eagle_bench.adapters.pipeline_jobs import parameters_of
from eagle_bench.adapters.running_jobs import client_of, passing, state_of
from eagle_bench.adapters.vertex import Place, address, endpoint_id
from eagle_bench.adapters.vertex_address import on_this_machine, sdk_options
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S
from eagle_bench.errors import InputError, ServiceError
from eagle_bench.variants import VariantSpec

EXPERIMENT = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
_FIELD = r"[0-9A-Za-z*,/-]+"
CRON = re.compile(rf"((CRON_)?TZ=[\w+-]+(/[\w+-]+)*\s+)?{_FIELD}(\s+{_FIELD}){{4}}", re.ASCII)
CONTEXT_TIMEOUT_S = 60.0


def submit(
    job: Any,
    *,
    service_account: str | None = None,
    experiment: str | None = None,
    on_trouble: Callable[[str], None] = lambda text: None,
) -> str:
    """Send the job; its resource name comes back.

    Args:
        experiment: one that `check_experiment` has seen.
        on_trouble: hears what went wrong after the job was made: it runs, and must not be taken for one that doesn't.

    Raises:
        ServiceError: Vertex AI refused it; `kind` and hint say why.
    """
    # The client's own lines would stand between ours; what it logs as an exception, the service says again.
    logging.getLogger("google.cloud.aiplatform.pipeline_jobs").setLevel(logging.CRITICAL)
    name = f"{Place(job.project, job.location)}/pipelineJobs/{job.job_id}"
    if on_this_machine():
        _let_baseline_come_first(job)
    try:
        with told("submit the pipeline job"):
            job.submit(service_account=service_account)
    except ServiceError as error:
        if not passing(error) or not _is_there(name):
            raise
        on_trouble(f"the answer was lost, but the job was made: {error.message}")
    else:
        name = str(job.resource_name)
    if experiment:
        try:
            _add_to_experiment(name, experiment)
        except ServiceError as error:
            on_trouble(f"the job runs, but is not in the experiment {experiment!r}: {error}")
    return name


def _let_baseline_come_first(job: Any) -> None:
    """Ask Local Vertex to keep a machine for the baseline: the variants of a job ask for theirs all at once."""
    parameters = parameters_of(job)
    for variant in parameters.get("variants", ()):
        spec = VariantSpec.model_validate(variant)
        if spec.id == parameters["baseline"] and spec.deployed and spec.to_measure:
            endpoint = f"{Place(job.project, job.location)}/endpoints/{endpoint_id(job.job_id, spec.id)}"
            with suppress(ServiceError):  # the job itself will say what is wrong
                call("aiplatform", "POST", "local/first", doing="ask for a machine", body={"endpoint": endpoint})


def check_experiment(place: Place, experiment: str) -> None:
    """Make sure, before a job is made, that there is an experiment of this name; it is made where there is none.

    Raises:
        InputError: the name can't be used, or belongs to something else.
        ServiceError: it can't be looked up or made.
    """
    from google.cloud import aiplatform

    if not EXPERIMENT.fullmatch(experiment):
        raise InputError(
            f"--experiment {experiment[:60]!r}: it takes a-z, 0-9 and -, begins with a letter or a digit, 128 at most."
        )
    logging.getLogger("google.cloud.aiplatform").setLevel(logging.CRITICAL)
    aiplatform.init(**sdk_options(place))
    try:
        with told(f"look up the experiment {experiment!r}"):
            aiplatform.Experiment.get_or_create(experiment)
    except ValueError as error:
        raise InputError(f"--experiment {experiment!r}: can't be used: {error}") from None


def schedule(job: Any, cron: str, title: str, *, service_account: str | None = None) -> str:
    """Run a job again and again, one run at a time, each with an id of its own; the schedule's name comes back.

    Args:
        title: how people see the schedule.

    Raises:
        InputError: the times are no cron line.
        ServiceError: Vertex AI refused it.
    """
    from google.cloud import aiplatform

    check_cron(cron)
    logging.getLogger("google.cloud.aiplatform.pipeline_job_schedules").setLevel(logging.CRITICAL)
    made = aiplatform.PipelineJobSchedule(pipeline_job=job, display_name=title)
    with told("make the schedule"):
        made.create(cron=cron, max_concurrent_run_count=1, service_account=service_account)
    return str(made.resource_name)


def check_cron(cron: str) -> None:
    """Refuse what is no cron line: five fields, with a time zone before them where it is not UTC.

    Raises:
        InputError: it is none.
    """
    if not CRON.fullmatch(cron):
        raise InputError(
            f"--schedule {cron[:60]!r}: it must be a cron line of five fields, such as '0 3 * * 1' (Mondays at 3:00 UTC) "
            "or 'TZ=Europe/Berlin 0 3 * * 1'."
        )


def _is_there(job_name: str) -> bool:
    try:
        state_of(job_name)
    except ServiceError:
        return False
    return True


def _add_to_experiment(job_name: str, experiment: str) -> None:
    """Google's client does this while it submits, and fails as if the job had not been made: so it is done here."""
    from google.cloud import aiplatform_v1

    there = address(Place.of(job_name).location)
    deadline = time.monotonic() + CONTEXT_TIMEOUT_S
    with told(f"add the job to the experiment {experiment!r}"):
        # A job's context is made a little later than the job.
        while not (context := _context_of(job_name)):
            if time.monotonic() > deadline:
                raise ServiceError("its metadata context did not appear in time.", kind="timeout")
            time.sleep(there.poll_s)
        store, _, _ = context.rpartition("/contexts/")
        aiplatform_v1.MetadataServiceClient(**there.client_options()).add_context_children(
            context=f"{store}/contexts/{experiment}", child_contexts=[context], timeout=CALL_TIMEOUT_S
        )


def _context_of(job_name: str) -> str:
    """The metadata context of a job's run; empty while there is none."""
    job = client_of(job_name).get_pipeline_job(name=job_name, timeout=CALL_TIMEOUT_S)
    return str(job.job_detail.pipeline_run_context.name)
