"""Pipeline jobs on Vertex AI: submitting one, watching it, cancelling it."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from eagle_bench import __version__
from eagle_bench.adapters.artifact_registry import reading_template
from eagle_bench.adapters.pipeline_template import images_in, parameters, sha256_of
from eagle_bench.adapters.vertex import Place, address
from eagle_bench.adapters.vertex_address import sdk_options
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.config import Config
from eagle_bench.errors import InputError

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "PAUSED"})
POLL_S = 10.0
CONSOLE = "https://console.cloud.google.com/vertex-ai"


@dataclass(frozen=True)
class JobState:
    """A job at one moment. States are without Vertex AI's prefixes: RUNNING, SUCCEEDED, …"""

    name: str
    state: str
    error: str | None
    tasks: tuple[tuple[str, str, str], ...]  # id, name, state

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def new_run_id(now: datetime | None = None) -> str:
    """An id that sorts by time and that no other run has; valid as a pipeline job's id."""
    moment = now or datetime.now(UTC)
    return f"eagle-benchmark-{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def prepare(
    config: Config,
    template: Path | str,
    run_id: str,
    environment: dict[str, str],
    *,
    labels: dict[str, str] | None = None,
    credentials_needed: bool = True,
) -> Any:
    """The job, ready for `submit`; `request_of` shows it.

    Args:
        template: a compiled file, or its https:// address in Artifact Registry (`pinned_template`).
        credentials_needed: False to look at the request of a file only.

    Raises:
        InputError: the config has no `pipeline_root`, the region is none, or the template can't be used.
        ServiceError: there are no credentials, or Artifact Registry does not give the template.
    """
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import aiplatform

    if not config.pipeline_root:
        raise InputError("`pipeline_root` is missing: a gs:// folder for the artifacts of the run.")
    if not re.match(r"^gs://[^/]+", config.pipeline_root):
        raise InputError(f"`pipeline_root`: {config.pipeline_root!r} can't be used: it must be a gs:// folder.")
    options: dict[str, Any] = {"project": config.project, "location": config.location}
    if credentials_needed or not isinstance(template, Path):
        options = sdk_options(Place(config.project, config.location))
    else:
        options["credentials"] = AnonymousCredentials()
    try:
        aiplatform.init(**options)
    except ValueError as error:  # the client knows the regions
        raise InputError(f"`location`: {config.location!r} can't be used: {error}") from None
    shown = {"eagle-bench": __version__, **environment}
    if isinstance(template, Path):
        shown["pipeline template"] = f"sha256:{sha256_of(template)}"
    else:
        shown["pipeline template"] = template
    arguments = {
        "display_name": run_id,
        "job_id": run_id,
        "template_path": str(template),
        "pipeline_root": config.pipeline_root,
        "parameter_values": parameters(config, shown),
        "labels": labels or {},
        # None: each task says itself whether it may be cached; True or False would override them all.
        "enable_caching": None,
    }
    try:
        if isinstance(template, Path):
            return aiplatform.PipelineJob(**arguments)
        with reading_template(template):
            return aiplatform.PipelineJob(**arguments)
    except (KeyError, ValueError, TypeError, yaml.YAMLError) as error:
        raise InputError(f"{template}: not a pipeline template that can be used: {error}.") from None


def request_of(job: Any) -> dict[str, Any]:
    """What `submit` sends: the body of CreatePipelineJob, with the id that goes into its address."""
    from google.protobuf import json_format

    # The client shows a job only after it was created; the request stands ready before.
    body = json_format.MessageToDict(job._gca_resource._pb)
    # What a person wants to check first, the compiled pipeline last, and the same order each time.
    body = {key: body[key] for key in sorted(body, key=lambda key: (key == "pipelineSpec", key))}
    body["runtimeConfig"] = json.loads(json.dumps(body["runtimeConfig"], sort_keys=True))
    return {"pipelineJobId": body["displayName"], "pipelineJob": body}


def images_of(job: Any) -> frozenset[str]:
    """Every image that the job's components run in."""
    return images_in(request_of(job)["pipelineJob"]["pipelineSpec"])


def submit(job: Any, *, service_account: str | None = None, experiment: str | None = None) -> str:
    """Send the job; its resource name comes back.

    Raises:
        ServiceError: Vertex AI refused it; `kind` and hint say why.
    """
    # The client's own lines would stand between ours; what it logs as an exception, the service says again.
    logging.getLogger("google.cloud.aiplatform.pipeline_jobs").setLevel(logging.CRITICAL)
    with told("submit the pipeline job"):
        job.submit(service_account=service_account, experiment=experiment)
    return str(job.resource_name)


def state_of(job_name: str) -> JobState:
    """How a job stands now.

    Raises:
        ServiceError: it can't be looked up.
    """
    with told(f"look up {job_name}"):
        job = _client(job_name).get_pipeline_job(name=job_name)
    tasks = tuple((str(task.task_id), task.task_name, task.state.name) for task in job.job_detail.task_details)
    return JobState(
        name=job_name,
        state=job.state.name.removeprefix("PIPELINE_STATE_"),
        error=job.error.message or None if job.error else None,
        tasks=tasks,
    )


def watch(
    job_name: str, *, poll_s: float | None = None, sleep: Callable[[float], None] = time.sleep
) -> Iterator[JobState]:
    """The job's state again and again, the last one when it has ended."""
    pause = poll_s if poll_s is not None else min(POLL_S, address(Place.of(job_name).location).poll_s)
    while True:
        state = state_of(job_name)
        yield state
        if state.ended:
            return
        sleep(pause)


def cancel(job_name: str) -> None:
    """Ask for the end of a job. No new task starts then, teardown neither: call `cleanup` afterwards.

    Raises:
        ServiceError: it can't be cancelled.
    """
    with told(f"cancel {job_name}"):
        _client(job_name).cancel_pipeline_job(name=job_name)


def console_link(job_name: str) -> str:
    """Where a person sees the job."""
    place = Place.of(job_name)
    run_id = job_name.rsplit("/", 1)[-1]
    return f"{CONSOLE}/locations/{place.location}/pipelines/runs/{run_id}?project={place.project}"


def _client(job_name: str) -> Any:
    from google.cloud import aiplatform_v1

    return aiplatform_v1.PipelineServiceClient(**address(Place.of(job_name).location).client_options())
