"""Deploys a variant from Model Garden or Hugging Face to an endpoint of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eagle_bench.adapters.deploy_advice import advised
from eagle_bench.adapters.vertex_address import Address, Place, address
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_machines import Ahead
from eagle_bench.adapters.vertex_names import endpoint_id, labels
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S, cancelled_unless_done, deploys_under_way, wait
from eagle_bench.adapters.vertex_request import deploy_request
from eagle_bench.adapters.vertex_secrets import read_secret
from eagle_bench.adapters.vertex_teardown import teardown_id
from eagle_bench.errors import ServiceError
from eagle_bench.units import conjunction
from eagle_bench.variants import VariantSpec

DEFAULT_INFERENCE_TIMEOUT_S = 600
WAITING_MARGIN_S = 600
WAITS_FOR_MACHINE = "waits for the machine"


@dataclass(frozen=True)
class Deployed:
    """Resource names of what a deploy made, and for how long it waited for a machine that others used."""

    endpoint: str
    model: str
    waited_s: float = 0.0


@advised
def deploy(
    place: Place,
    run_id: str,
    spec: VariantSpec,
    *,
    on_operation: Callable[[str], None] = lambda name: None,
    on_progress: Callable[[str], None] = lambda text: None,
    timeout_s: float | None = None,
) -> Deployed:
    """Deploy a variant and wait until it serves.

    A deploy of the same run and variant that is under way, or done, is found and gone on with. SIGTERM, Ctrl-C and
    the time-out cancel the operation; what it left (an endpoint and a model without a machine) is for `teardown`.

    Args:
        on_operation: gets the operation's resource name before the wait for it.
        on_progress: gets a line for people, now and then.
        timeout_s: of the whole wait, where it is shorter than `serving.deploy_timeout_s` and ten minutes for making
            machines ready.

    Raises:
        ServiceError: with `kind` (quota, permission, image, eula, gated-model, not-found, timeout, …) and a hint.
        InputError: the variant can't be deployed as it stands.
    """
    from google.cloud import aiplatform_v1

    there = address(place.location)
    name = endpoint_id(run_id, spec.id)
    doing = f"deploy variant {spec.id!r}"
    client = aiplatform_v1.ModelGardenServiceClient(**there.client_options())
    labelled = _Labels(place, there, name, labels(run_id, spec.id))

    operation = next(iter(deploys_under_way(client, place, name)), None)
    if operation is None:
        found = _found(place, there, name, on_progress)
        if found:
            on_progress(f"{spec.id}: already deployed as {found.endpoint}")
            labelled.put()
            return found
        token = read_secret(spec.hf_token_secret) if spec.hf_token_secret else None
        request = deploy_request(place, run_id, spec, hf_token=token)
        operation = _begin(client, place, name, request, doing)
    else:
        on_progress(f"{spec.id}: going on with the deploy that is under way")

    ahead, waited_s = Ahead(run_id), 0.0

    def on_poll(elapsed_s: float, now: Any) -> None:
        nonlocal waited_s
        labelled.put()
        if others := ahead.of(now):
            waited_s = elapsed_s
            use = "uses" if len(others) == 1 else "use"
            on_progress(
                f"{spec.id}: {WAITS_FOR_MACHINE} that {conjunction(list(others))} {use}, {elapsed_s:.0f} s so far"
            )
        else:
            on_progress(f"{spec.id}: waiting for the endpoint to serve, {elapsed_s - waited_s:.0f} s so far")

    own_timeout_s = (spec.serving.deploy_timeout_s if spec.serving else 7200) + WAITING_MARGIN_S
    with cancelled_unless_done(client, operation):
        on_operation(operation)
        done = wait(
            client,
            operation,
            doing=doing,
            poll_s=there.poll_s,
            timeout_s=own_timeout_s if timeout_s is None else min(timeout_s, own_timeout_s),
            on_poll=on_poll,
        )
    response = aiplatform_v1.DeployResponse()
    if not done.response.Unpack(response._pb) or not response.endpoint:
        raise ServiceError(
            f"Vertex AI ended the operation to {doing} with an answer that is no deploy's ({operation}).",
            hint="Look at the endpoint in the console; `eagle-bench cleanup` removes it.",
        )
    if not labelled.put():
        on_progress(f"{spec.id}: the endpoint could not be labelled; cleanup finds it by its id")
    _set_inference_timeout(there, response.endpoint, spec, on_progress)
    return Deployed(endpoint=response.endpoint, model=response.model, waited_s=waited_s)


def _begin(client: Any, place: Place, name: str, request: Any, doing: str) -> str:
    """Send the request; where an earlier attempt left the model (an endpoint was looked for), remove it first."""
    from google.api_core.exceptions import Conflict

    try:
        with told(doing):
            return str(client.deploy(request, timeout=CALL_TIMEOUT_S).operation.name)
    except ServiceError as error:
        if not isinstance(error.__cause__, Conflict):
            raise
    if others := deploys_under_way(client, place, name):  # an attempt that was quicker by a moment
        return others[0]
    teardown_id(place, name)
    with told(doing):
        return str(client.deploy(request, timeout=CALL_TIMEOUT_S).operation.name)


def _found(place: Place, there: Address, name: str, on_progress: Callable[[str], None]) -> Deployed | None:
    """What an earlier attempt deployed; the remains of one that failed are removed."""
    from google.api_core.exceptions import NotFound
    from google.cloud import aiplatform_v1

    endpoints = aiplatform_v1.EndpointServiceClient(**there.client_options())
    endpoint = f"{place}/endpoints/{name}"
    try:
        with told(f"look for the endpoint {endpoint}"):
            found = endpoints.get_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S)
    except ServiceError as error:
        if isinstance(error.__cause__, NotFound):
            return None
        raise
    if found.deployed_models:
        return Deployed(endpoint=endpoint, model=found.deployed_models[0].model)
    on_progress(f"removing what an earlier attempt left of {name}")
    teardown_id(place, name)
    return None


class _Labels:
    """Puts labels on endpoint and model as soon as they are there: deploy itself takes none."""

    def __init__(self, place: Place, there: Address, name: str, values: dict[str, str]) -> None:
        from google.cloud import aiplatform_v1

        self._endpoint, self._model = f"{place}/endpoints/{name}", f"{place}/models/{name}"
        self._values = values
        self._endpoints = aiplatform_v1.EndpointServiceClient(**there.client_options())
        self._models = aiplatform_v1.ModelServiceClient(**there.client_options())
        self._left = {"endpoint", "model"}

    def put(self) -> bool:
        """Try what is left to do; False while something is. A label is never worth a failed deploy."""
        from google.cloud import aiplatform_v1
        from google.protobuf.field_mask_pb2 import FieldMask

        mask, options = FieldMask(paths=["labels"]), {"timeout": CALL_TIMEOUT_S}
        try:
            with told("label what was made"):
                if "endpoint" in self._left:
                    endpoint = aiplatform_v1.Endpoint(name=self._endpoint, labels=self._values)
                    self._endpoints.update_endpoint(endpoint=endpoint, update_mask=mask, **options)
                    self._left.remove("endpoint")
                if "model" in self._left:
                    model = aiplatform_v1.Model(name=self._model, labels=self._values)
                    self._models.update_model(model=model, update_mask=mask, **options)
                    self._left.remove("model")
        except ServiceError:
            return False
        return True


def _set_inference_timeout(
    there: Address, endpoint: str, spec: VariantSpec, on_progress: Callable[[str], None]
) -> None:
    """Allow long answers: deploy can't set it, and only the long-running update of an endpoint can."""
    from google.cloud import aiplatform_v1
    from google.protobuf.duration_pb2 import Duration

    timeout_s = spec.serving.request_timeout_s if spec.serving else DEFAULT_INFERENCE_TIMEOUT_S
    if timeout_s == DEFAULT_INFERENCE_TIMEOUT_S:
        return
    client = aiplatform_v1.EndpointServiceClient(**there.client_options())
    wanted = aiplatform_v1.Endpoint(
        name=endpoint,
        client_connection_config=aiplatform_v1.ClientConnectionConfig(inference_timeout=Duration(seconds=timeout_s)),
    )
    doing = f"set the inference time-out of {endpoint}"
    try:
        with told(doing):
            begun = client.update_endpoint_long_running(endpoint=wanted, timeout=CALL_TIMEOUT_S)
        wait(client, begun.operation.name, doing=doing, poll_s=there.poll_s, timeout_s=600)
    except ServiceError as error:
        on_progress(f"{spec.id}: requests are cut after {DEFAULT_INFERENCE_TIMEOUT_S} s, not {timeout_s} s: {error}")
