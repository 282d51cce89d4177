"""Takes away what a run made: endpoint and model. Idempotent; says what it could not take away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from eagle_bench.adapters.vertex_address import Place, address
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_names import PREFIX, RUN_LABEL, VARIANT_LABEL, endpoint_id, label_value, run_digest
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S, cancel, wait
from eagle_bench.errors import ServiceError

RETRY_DELAYS_S = (2.0, 5.0, 15.0, 30.0)
UNDEPLOY_TIMEOUT_S = 1800.0
HOPELESS = frozenset({"authentication", "permission", "not-found"})


@dataclass(frozen=True)
class Left:
    """A resource that could not be deleted, why, and the command that does it."""

    resource: str
    why: str
    command: str


@dataclass(frozen=True)
class TeardownReport:
    """What became of an endpoint and a model: deleted now, or left. What was gone before is in neither."""

    deleted: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing is left."""
        return not self.left


@dataclass(frozen=True)
class Made:
    """An endpoint or a model that a run of ours made. `run` and `variant` are labels, None where they are missing."""

    resource: str
    id: str
    run: str | None
    variant: str | None
    created: datetime


def teardown(
    place: Place, run_id: str, variant_id: str, *, retry_delays_s: Sequence[float] = RETRY_DELAYS_S
) -> TeardownReport:
    """Delete the endpoint and the model of one variant of a run, whatever state they are in.

    Only for variants that are deployed: what a variant uses (`endpoint`, `url`) has another name and is not found.
    """
    return teardown_id(place, endpoint_id(run_id, variant_id), retry_delays_s=retry_delays_s)


def teardown_id(place: Place, name: str, *, retry_delays_s: Sequence[float] = RETRY_DELAYS_S) -> TeardownReport:
    """Delete the endpoint and the model with one id (see `leftovers`)."""
    from google.cloud import aiplatform_v1

    there = address(place.location)
    endpoint, model = f"{place}/endpoints/{name}", f"{place}/models/{name}"
    try:
        endpoints = aiplatform_v1.EndpointServiceClient(**there.client_options())
        models = aiplatform_v1.ModelServiceClient(**there.client_options())
    except ServiceError as error:
        return TeardownReport(left=tuple(_left(resource, error) for resource in (endpoint, model)))

    def finish(client: Any, begun: Any, doing: str) -> None:
        wait(client, begun.operation.name, doing=doing, poll_s=there.poll_s, timeout_s=UNDEPLOY_TIMEOUT_S)

    def remove_endpoint() -> None:
        _cancel_deploys(endpoints, place, name)
        with told(f"find the endpoint {endpoint}"):
            found = endpoints.get_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S)
        for deployed in found.deployed_models:
            doing = f"undeploy from {endpoint}"
            with told(doing):
                begun = endpoints.undeploy_model(
                    endpoint=endpoint, deployed_model_id=deployed.id, timeout=CALL_TIMEOUT_S
                )
            finish(endpoints, begun, doing)
        doing = f"delete the endpoint {endpoint}"
        with told(doing):
            begun = endpoints.delete_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S)
        finish(endpoints, begun, doing)

    def remove_model() -> None:
        doing = f"delete the model {model}"
        with told(doing):
            begun = models.delete_model(name=model, timeout=CALL_TIMEOUT_S)
        finish(models, begun, doing)

    deleted, left = [], []
    for resource, remove in ((endpoint, remove_endpoint), (model, remove_model)):
        try:
            if _persist(remove, retry_delays_s):
                deleted.append(resource)
        except ServiceError as error:
            left.append(_left(resource, error))
    return TeardownReport(tuple(deleted), tuple(left))


def leftovers(place: Place, run_id: str | None = None) -> tuple[Made, ...]:
    """Endpoints and models that runs of ours made and that are still there, oldest first; of one run, or of all.

    They are known by their label, or by their id where a deploy ended before it could be labelled.

    Raises:
        ServiceError: they can't be listed.
    """
    from google.cloud import aiplatform_v1

    there = address(place.location)
    with told(f"list endpoints and models in {place.location}"):
        endpoints = aiplatform_v1.EndpointServiceClient(**there.client_options())
        models = aiplatform_v1.ModelServiceClient(**there.client_options())
        found = [*endpoints.list_endpoints(parent=str(place)), *models.list_models(parent=str(place))]
    made = [_made(resource) for resource in found]
    ours = [one for one in made if one.run is not None or one.id.startswith(PREFIX)]
    if run_id is not None:
        label, digest = label_value(run_id), run_digest(run_id)
        ours = [
            one
            for one in ours
            if one.run == label or (one.run is None and one.id.rsplit("-", 1)[-1].startswith(digest))
        ]
    return tuple(sorted(ours, key=lambda one: one.created))


def _made(resource: Any) -> Made:
    labels = dict(resource.labels)
    name = str(resource.name)
    return Made(
        resource=name,
        id=name.rsplit("/", 1)[-1],
        run=labels.get(RUN_LABEL),
        variant=labels.get(VARIANT_LABEL),
        created=resource.create_time,
    )


def _cancel_deploys(client: Any, place: Place, name: str) -> None:
    """Stop a deploy that is still under way: what it makes would come after the teardown."""
    from google.cloud import aiplatform_v1

    with told("list operations"):
        listed = client.list_operations({"name": str(place)}, timeout=CALL_TIMEOUT_S)
    for operation in listed.operations:
        metadata = aiplatform_v1.DeployOperationMetadata()
        if not operation.done and operation.metadata.Unpack(metadata._pb) and metadata.model_id == name:
            cancel(client, operation.name)


def _persist(remove: Callable[[], None], delays_s: Sequence[float]) -> bool:
    """Try until it is gone; False when it was gone already."""
    for delay_s in (*delays_s, None):
        try:
            remove()
        except ServiceError as error:
            if error.kind == "not-found":
                return False
            if error.kind in HOPELESS or delay_s is None:
                raise
            time.sleep(delay_s)
        else:
            break
    return True


def _left(resource: str, error: ServiceError) -> Left:
    place, (kind, name) = Place.of(resource), resource.split("/")[-2:]
    where = f"--project={place.project} --region={place.location}"
    command = f"gcloud ai {kind} delete {name} {where}"
    if kind == "endpoints":
        undeploy = f"gcloud ai endpoints undeploy-model {name} {where} --deployed-model-id=ID"
        command = f"{command}  (if it is refused for a deployed model, first: {undeploy})"
    return Left(resource, error.message, command)
