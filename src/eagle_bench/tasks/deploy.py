"""One variant's endpoint: deployed, or found where the variant names one."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from eagle_bench.adapters import vertex
from eagle_bench.adapters.vertex_deploy import WAITS_FOR_MACHINE
from eagle_bench.progress import now_and_then, say
from eagle_bench.results import CellFailure
from eagle_bench.tasks.budget import Budget, budget_of
from eagle_bench.tasks.failures import failure_of, write_failure
from eagle_bench.tasks.teardown import give_back
from eagle_bench.variants import MACHINES, VariantSpec

PROGRESS_EVERY_S = 60.0


def deploy(
    project: str, location: str, run_id: str, variant: dict[str, Any], prompts: Any, endpoint: Any, gcp_resources: str
) -> None:
    """Fill the endpoint's artifact: its resource name and address, or the failure to deploy it.

    A variant without a level to measure is not deployed. The wait ends with the run's budget.

    `gcp_resources` gets the long-running operation as soon as it has a name, so that the console links it
    and a task that is killed leaves a trace of it.
    """
    spec = VariantSpec.model_validate(variant)
    place = vertex.Place(project, location)
    _write_resources(gcp_resources, None)
    if spec.url:
        endpoint.uri = spec.url
        endpoint.metadata["url"] = spec.url
        say(spec.id, f"runs at {spec.url}")
        return
    if spec.endpoint:
        _fill(endpoint, spec.endpoint)
        say(spec.id, f"uses the endpoint {spec.endpoint}")
        return
    if not spec.to_measure:
        return
    failure = _deploy(place, run_id, spec, budget_of(prompts), endpoint, gcp_resources)
    if failure is not None:  # the other variants are still to be measured
        write_failure(endpoint, failure)
        say(spec.id, f"could not be deployed: {failure.message}")
        give_back(place, run_id, spec)


def _deploy(
    place: vertex.Place, run_id: str, spec: VariantSpec, budget: Budget | None, endpoint: Any, gcp_resources: str
) -> CellFailure | None:
    if budget is not None and budget.spent:
        return budget.failure("deploy", "not begun")
    started = time.monotonic()
    say(spec.id, f"deploying {spec.model}")
    try:
        deployed = vertex.deploy(
            place,
            run_id,
            spec,
            on_operation=lambda name: _write_resources(gcp_resources, _uri(name)),
            on_progress=now_and_then(spec.id, PROGRESS_EVERY_S, about=lambda text: WAITS_FOR_MACHINE in str(text)),
            timeout_s=None if budget is None else budget.left_s,
        )
    except Exception as error:
        if budget is not None and budget.spent:
            return budget.failure("deploy", "given up")
        return failure_of("deploy", error)
    _fill(endpoint, deployed.endpoint)
    endpoint.metadata["model"] = deployed.model
    seconds = time.monotonic() - started - deployed.waited_s
    endpoint.metadata["deploySeconds"] = round(seconds, 1)
    waited = f", and {deployed.waited_s:.0f} s of waiting for the machine" if deployed.waited_s else ""
    say(spec.id, f"deployed after {seconds:.0f} s{waited}")
    return None


def _fill(endpoint: Any, name: str) -> None:
    endpoint.uri = _uri(name)
    endpoint.metadata["resourceName"] = name
    endpoint.metadata["machines"] = MACHINES[vertex.machine_sharing(name)]


def _uri(resource: str) -> str:
    return vertex.address(vertex.Place.of(resource).location).resource_url(resource)


def _write_resources(path: str, operation_uri: str | None) -> None:
    """The `gcp_resources` of Google's own components: the operations that a task started."""
    resources = [{"resourceType": "VertexLro", "resourceUri": operation_uri}] if operation_uri else []
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"resources": resources}), encoding="utf-8")
