"""Takes away what a run made: endpoint and model. Idempotent; says what it could not take away."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from eagle_bench.adapters.vertex_address import Place, address
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_names import PREFIX, RUN_LABEL, VARIANT_LABEL, endpoint_id, label_value, run_digest
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S, cancel, deploys_under_way, wait
from eagle_bench.errors import ServiceError
from eagle_bench.units import conjunction

UNDEPLOY_TIMEOUT_S = 1800.0
HOPELESS = frozenset({"authentication", "permission"})


@dataclass(frozen=True)
class Left:
    """A resource that could not be deleted, why, and the command that does it."""

    resource: str
    why: str
    command: str

    @property
    def said(self) -> str:
        return f"{self.resource} ({self.why}): {self.command}"


@dataclass(frozen=True)
class TeardownReport:
    """What became of an endpoint and a model: deleted now, or left. What was gone before is in neither."""

    deleted: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing is left."""
        return not self.left

    @property
    def given_back(self) -> str:
        """What was deleted, in words: "endpoint and model"; empty where there was nothing."""
        kinds = [resource.split("/")[-2].removesuffix("s") for resource in self.deleted]
        return conjunction(kinds) if kinds else ""


@dataclass(frozen=True)
class Made:
    """An endpoint or a model that a run of ours made. `run` and `variant` are labels, None where they are missing."""

    resource: str
    id: str
    run: str | None
    variant: str | None
    created: datetime


def teardown(
    place: Place, run_id: str, variant_id: str, *, retry_delays_s: Sequence[float] | None = None
) -> TeardownReport:
    """Delete the endpoint and the model of one variant of a run, whatever state they are in.

    Only for variants that are deployed: what a variant uses (`endpoint`, `url`) has another name and is not found.

    Args:
        retry_delays_s: between attempts at what can't be deleted; None for those that suit the place.
    """
    return teardown_id(place, endpoint_id(run_id, variant_id), retry_delays_s=retry_delays_s)


def teardown_id(place: Place, name: str, *, retry_delays_s: Sequence[float] | None = None) -> TeardownReport:
    """Delete the endpoint and the model with one id (see `leftovers`)."""
    from google.cloud import aiplatform_v1

    there = address(place.location)
    endpoint, model = f"{place}/endpoints/{name}", f"{place}/models/{name}"
    try:
        endpoints = aiplatform_v1.EndpointServiceClient(**there.client_options())
        models = aiplatform_v1.ModelServiceClient(**there.client_options())
    except ServiceError as error:
        return TeardownReport(left=tuple(_left(resource, error) for resource in (endpoint, model)))

    def finish(client: Any, doing: str, begin: Callable[[], Any]) -> bool:
        begun = _unless_gone(doing, begin)
        if begun is None:
            return False
        wait(client, begun.operation.name, doing=doing, poll_s=there.poll_s, timeout_s=UNDEPLOY_TIMEOUT_S)
        return True

    def remove_endpoint() -> bool:
        for operation in deploys_under_way(endpoints, place, name):  # what it makes would come after the teardown
            cancel(endpoints, operation)
        found = _unless_gone(
            f"find the endpoint {endpoint}", lambda: endpoints.get_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S)
        )
        if found is None:
            return False
        for deployed in found.deployed_models:
            what = {"endpoint": endpoint, "deployed_model_id": deployed.id, "timeout": CALL_TIMEOUT_S}
            finish(endpoints, f"undeploy from {endpoint}", functools.partial(endpoints.undeploy_model, **what))
        delete = functools.partial(endpoints.delete_endpoint, name=endpoint, timeout=CALL_TIMEOUT_S)
        return finish(endpoints, f"delete the endpoint {endpoint}", delete)

    def remove_model() -> bool:
        delete = functools.partial(models.delete_model, name=model, timeout=CALL_TIMEOUT_S)
        return finish(models, f"delete the model {model}", delete)

    deleted, left = [], []
    for resource, remove in ((endpoint, remove_endpoint), (model, remove_model)):
        try:
            if _persist(remove, there.retry_delays_s if retry_delays_s is None else retry_delays_s):
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


def not_deleted(left: Iterable[Left]) -> ServiceError:
    """The error that names what is left and the commands that delete it."""
    return ServiceError(
        "could not be deleted: " + "; ".join(item.said for item in left),
        hint="Run the commands named, or `eagle-bench cleanup`.",
    )


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


def _unless_gone(doing: str, call: Callable[[], Any]) -> Any:
    """The call's answer, or None where the resource is not there (any more)."""
    try:
        with told(doing):
            return call()
    except ServiceError as error:
        if error.kind == "not-found":
            return None
        raise


def _persist(remove: Callable[[], bool], delays_s: Sequence[float]) -> bool:
    """Try until it is gone; False when it was gone already."""
    for delay_s in delays_s:
        try:
            return remove()
        except ServiceError as error:
            if error.kind in HOPELESS:
                raise
            time.sleep(delay_s)
    return remove()


def _left(resource: str, error: ServiceError) -> Left:
    place, (kind, name) = Place.of(resource), resource.split("/")[-2:]
    where = f"--project={place.project} --region={place.location}"
    command = f"gcloud ai {kind} delete {name} {where}"
    if kind == "endpoints":
        undeploy = f"gcloud ai endpoints undeploy-model {name} {where} --deployed-model-id=ID"
        command = f"{command}  (if it is refused for a deployed model, first: {undeploy})"
    return Left(resource, error.message, command)
