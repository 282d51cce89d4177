"""What can be deployed, and what serves already: Model Garden's models, and the settings behind an endpoint."""

from __future__ import annotations

from typing import Any

from eagle_bench.adapters.vertex_address import Place, address
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S
from eagle_bench.errors import ServiceError
from eagle_bench.serving import Accelerator, Serving
from eagle_bench.variants import VariantSpec


def publisher_model_name(model: str) -> str:
    """`owner/name@version`, as a config names a model of Model Garden, as its resource name."""
    owner, _, version = model.partition("/")
    return f"publishers/{owner}/models/{version}"


def check_publisher_model(place: Place, model: str) -> None:
    """Make sure that Model Garden has a model.

    Raises:
        ServiceError: kind "not-found", or it can't be asked.
    """
    from google.cloud import aiplatform_v1

    with told(f"find the model {model} in Model Garden"):
        client = aiplatform_v1.ModelGardenServiceClient(**address(place.location).client_options())
        client.get_publisher_model(name=publisher_model_name(model), timeout=CALL_TIMEOUT_S)


def served_at(endpoint: str, variant_id: str) -> VariantSpec:
    """What an existing endpoint serves, as if a variant of ours had deployed it; its `model` is left out.

    Raises:
        ServiceError: kind "not-found" where endpoint or deployed model are not there, or it can't be asked.
    """
    from google.cloud import aiplatform_v1

    options = address(Place.of(endpoint).location).client_options()
    with told(f"find the endpoint {endpoint}"):
        found = aiplatform_v1.EndpointServiceClient(**options).get_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S)
    if not found.deployed_models:
        raise ServiceError(
            f"The endpoint {endpoint} serves no model.", kind="not-found", hint="Deploy one to it first."
        )
    deployed = found.deployed_models[0]
    with told(f"look up the model of {endpoint}"):
        models = aiplatform_v1.ModelServiceClient(**options)
        model = models.get_model(name=deployed.model, timeout=CALL_TIMEOUT_S)
    serving = _serving(model.container_spec, deployed.dedicated_resources, dedicated=found.dedicated_endpoint_enabled)
    return VariantSpec.model_construct(id=variant_id, serving=serving, endpoint=endpoint)


def _serving(spec: Any, resources: Any, *, dedicated: bool) -> Serving:
    """Not validated: what runs already may have what a config may not."""
    machine = resources.machine_spec
    accelerator = None
    if machine.accelerator_count:
        accelerator = Accelerator.model_construct(type=machine.accelerator_type.name, count=machine.accelerator_count)
    affinity = machine.reservation_affinity
    return Serving.model_construct(
        image=spec.image_uri or None,
        machine_type=machine.machine_type,
        accelerator=accelerator,
        command=tuple(spec.command),
        args=tuple(spec.args),
        env={pair.name: pair.value for pair in spec.env},
        port=spec.ports[0].container_port if spec.ports else None,
        health_route=spec.health_route or None,
        predict_route=spec.predict_route or None,
        shared_memory_mb=spec.shared_memory_size_mb or None,
        dedicated_endpoint=dedicated,
        spot=resources.spot,
        reservation=affinity.values[0] if affinity and affinity.values else None,
    )
