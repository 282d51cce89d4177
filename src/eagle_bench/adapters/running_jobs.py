"""Pipeline jobs that were submitted: how they stand, following them to their end, cancelling them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from eagle_bench.adapters.google_rest import call
from eagle_bench.adapters.job_tasks import TaskState, tasks_of
from eagle_bench.adapters.vertex import Left, Place, address, leftovers, not_deleted, teardown_id
from eagle_bench.adapters.vertex_address import on_this_machine
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S
from eagle_bench.errors import ServiceError

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "PAUSED"})
PASSING = frozenset({"unavailable", "timeout", "quota"})  # a lost connection, a busy API: they say nothing of the job
POLL_S = 10.0
LONGEST_PAUSE_S = 60.0
CANCEL_TIMEOUT_S = 900.0
JOB_ID = re.compile(r"[a-z0-9][-a-z0-9]{0,127}")
ADDED = re.compile(r";?\s*(Job \(project_id = |Failed to handle the job: )")
CONSOLE = "https://console.cloud.google.com/vertex-ai"


@dataclass(frozen=True)
class JobState:
    """A job at one moment. States are without Vertex AI's prefixes: RUNNING, SUCCEEDED, …"""

    name: str
    state: str
    error: str | None
    tasks: tuple[TaskState, ...]

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def reason(self) -> str | None:
        """The error without what Vertex AI adds to each: that the job with this id failed due to it."""
        return reason(self.error)


def reason(error: str | None) -> str | None:
    """A job's error without what Vertex AI adds to each: that the job with this id failed due to it."""
    return ADDED.split(error, maxsplit=1)[0] or None if error else None


def state_of(job_name: str) -> JobState:
    """How a job stands now.

    Raises:
        ServiceError: it can't be looked up.
    """
    with told(f"look up {job_name}"):
        job = client_of(job_name).get_pipeline_job(name=job_name, timeout=CALL_TIMEOUT_S)
    return job_state(job, job_name)


def running(place: Place, run_id: str) -> JobState | None:
    """The job of a run that has not ended; None where it has ended, or is nowhere to be found any more.

    Raises:
        ServiceError: it can't be looked up, so that nobody knows.
    """
    state = found(place, run_id)
    return None if state is None or state.ended else state


def found(place: Place, run_id: str) -> JobState | None:
    """The job of a run, ended or not; None where it is nowhere to be found, or not any more.

    Raises:
        ServiceError: it can't be looked up, so that nobody knows.
    """
    if not JOB_ID.fullmatch(run_id):
        return None  # no job can have this id
    try:
        return state_of(f"{place}/pipelineJobs/{run_id}")
    except ServiceError as error:
        if error.kind == "not-found":
            return None
        raise


def job_state(job: Any, job_name: str) -> JobState:
    """The state that an answer of the API holds."""
    return JobState(
        name=job_name,
        state=job.state.name.removeprefix("PIPELINE_STATE_"),
        error=job.error.message or None if job.error else None,
        tasks=tasks_of(job),
    )


def watch(
    job_name: str,
    *,
    poll_s: float | None = None,
    patience_s: float = 0.0,
    on_trouble: Callable[[ServiceError], None] = lambda error: None,
) -> Iterator[JobState]:
    """The job's state again and again, the last one when it has ended.

    Args:
        patience_s: how long a lost connection is borne; `on_trouble` hears of each attempt that failed.

    Raises:
        ServiceError: it can't be looked up, and patience is at its end or would not help.
    """
    usual_s = poll_s if poll_s is not None else min(POLL_S, address(Place.of(job_name).location).poll_s)
    heard, pause_s = time.monotonic(), usual_s
    while True:
        try:
            state = state_of(job_name)
        except ServiceError as error:
            if not passing(error) or time.monotonic() - heard >= patience_s:
                raise
            on_trouble(error)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        else:
            yield state
            if state.ended:
                return
            heard, pause_s = time.monotonic(), usual_s
        time.sleep(pause_s)


def passing(error: ServiceError) -> bool:
    """Whether trying again may help: the connection was lost, the API is busy, or the token server is."""
    return error.kind in PASSING or bool(getattr(error.__cause__, "retryable", False))


def cancel(job_name: str) -> None:
    """Ask for the end of a job. No new task starts then, teardown neither: see `cancel_and_give_back`.

    Raises:
        ServiceError: it can't be cancelled.
    """
    with told(f"cancel {job_name}"):
        client_of(job_name).cancel_pipeline_job(name=job_name, timeout=CALL_TIMEOUT_S)


def cancel_and_wait(job_name: str, *, timeout_s: float = CANCEL_TIMEOUT_S, poll_s: float | None = None) -> JobState:
    """Cancel a job, where it has not ended, and wait until nothing of it runs any more; not longer than the time-out.

    Raises:
        ServiceError: it can't be cancelled, or can't be looked up any more.
    """
    state = state_of(job_name)
    if state.ended:
        return state
    cancel(job_name)
    deadline = time.monotonic() + timeout_s
    for now in watch(job_name, poll_s=poll_s, patience_s=timeout_s):
        state = now
        if time.monotonic() > deadline:
            break
    return state


def cancel_and_give_back(job_name: str, say: Callable[[str], None]) -> JobState:
    """Cancel a job, wait for its end, and delete the endpoints and models that it left.

    Raises:
        ServiceError: it can't be cancelled, or something could not be deleted: the message has the commands.
    """
    state = cancel_and_wait(job_name)
    place, run_id = Place.of(job_name), job_name.rsplit("/", 1)[-1]
    left: list[Left] = []
    for name, variant in {made.id: made.variant for made in leftovers(place, run_id)}.items():
        report = teardown_id(place, name)
        if report.deleted:
            say(f"{variant or name}: given back: {report.given_back}")
        left += report.left
    if left:
        raise not_deleted(left)
    return state


def console_link(job_name: str) -> str | None:
    """The job's page in the console; None for a job of Local Vertex, which has none."""
    if on_this_machine():
        return None
    place = Place.of(job_name)
    run_id = job_name.rsplit("/", 1)[-1]
    return f"{CONSOLE}/locations/{place.location}/pipelines/runs/{run_id}?project={place.project}"


def artifacts_folder(job_name: str) -> str | None:
    """Where a job of Local Vertex leaves its results on this machine; None where that can't be told."""
    return _local_folder("artifacts", job_name)


def logs(job_name: str) -> str | None:
    """Where a person finds the logs of a job's tasks: a folder of this machine, or the job's page."""
    return _local_folder("logs", job_name) or console_link(job_name)


def _local_folder(kind: str, job_name: str) -> str | None:
    if not on_this_machine():
        return None
    try:
        state = call("aiplatform", "GET", "local/state", doing="ask Local Vertex for its folders")
    except ServiceError:
        return None
    found = state.get(kind, {}).get(job_name)
    return str(found) if found else None


def schedules_link(place: Place) -> str | None:
    """Where a person sees, pauses and deletes schedules; None for those of Local Vertex."""
    if on_this_machine():
        return None
    return f"{CONSOLE}/pipelines/schedules?project={place.project}"


def client_of(job_name: str) -> Any:
    """A client of the service that knows the job."""
    from google.cloud import aiplatform_v1

    return aiplatform_v1.PipelineServiceClient(**address(Place.of(job_name).location).client_options())
