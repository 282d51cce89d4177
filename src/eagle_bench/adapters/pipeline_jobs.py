"""Pipeline jobs on Vertex AI: from a config to a job that is ready to be submitted."""

from __future__ import annotations

import json
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import yaml

from eagle_bench import __version__
from eagle_bench.adapters.artifact_registry import reading_template
from eagle_bench.adapters.pipeline_template import images_in, parameters, sha256_of
from eagle_bench.adapters.template_version import fetch_template, read_template
from eagle_bench.adapters.vertex_address import place_of, sdk_options
from eagle_bench.config import Config
from eagle_bench.errors import InputError, because
from eagle_bench.resuming import EarlierRun, resume

FailurePolicy = Literal["slow", "fast"]


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
    earlier: EarlierRun | None = None,
    labels: dict[str, str] | None = None,
    failure_policy: FailurePolicy = "slow",
    credentials_needed: bool = True,
) -> Any:
    """The job, ready for `submissions`; `request_of` shows it.

    Args:
        template: a compiled file, or its https:// address in Artifact Registry (`pinned_template`).
        earlier: a run whose whole cells are taken, so that only the others are measured.
        failure_policy: whether, once a task has failed, those that don't need it still start ("slow") or not ("fast").
        credentials_needed: False to look at the request of a file only.

    Raises:
        InputError: the config does not say where it runs, the region is none, the template can't be used, or the earlier
            run is another one's.
        ServiceError: there are no credentials, or Artifact Registry does not give the template.
    """
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import aiplatform

    place = place_of(config)
    if not config.pipeline_root:
        raise InputError("`pipeline_root` is missing: a gs:// folder for the artifacts of the run.")
    if not re.match(r"^gs://[^/]+", config.pipeline_root):
        raise InputError(f"`pipeline_root`: {config.pipeline_root!r} can't be used: it must be a gs:// folder.")
    options: dict[str, Any] = {"project": place.project, "location": place.location}
    if credentials_needed or not isinstance(template, Path):
        options = sdk_options(place)
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
    if earlier:
        shown["goes on with"] = earlier.run_id
    values = parameters(config, shown)
    arguments = {
        "display_name": run_id,
        "job_id": run_id,
        "template_path": str(template),
        "pipeline_root": config.pipeline_root,
        "parameter_values": resume(values, earlier) if earlier else values,
        "labels": labels or {},
        "failure_policy": failure_policy,
        # None: each task says itself whether it may be cached; True or False would override them all.
        "enable_caching": None,
    }
    # Google's client takes for a template whatever is YAML.
    _ = read_template(template) if isinstance(template, Path) else fetch_template(template)
    try:
        if isinstance(template, Path):
            return aiplatform.PipelineJob(**arguments)
        with reading_template(template):
            return aiplatform.PipelineJob(**arguments)
    except (KeyError, ValueError, TypeError, yaml.YAMLError) as error:
        raise InputError(because(f"{template}: not a pipeline template that can be used", error)) from None


def parameters_of(job: Any) -> dict[str, Any]:
    """What a prepared job tells the pipeline."""
    from google.protobuf import json_format

    runtime: dict[str, Any] = json_format.MessageToDict(job._gca_resource.runtime_config._pb)
    return dict(runtime["parameterValues"])


def request_of(job: Any) -> dict[str, Any]:
    """What is sent to submit it: the body of CreatePipelineJob, with the id that goes into its address."""
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
