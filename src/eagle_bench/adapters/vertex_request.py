"""The request that deploys a variant: everything of `serving`, as Model Garden's API takes it. Pure."""

from __future__ import annotations

from typing import Any

from eagle_bench.adapters.vertex_address import Place
from eagle_bench.adapters.vertex_names import endpoint_id
from eagle_bench.errors import InputError
from eagle_bench.serving import Probe, Serving
from eagle_bench.variants import VariantSpec

ONLY_WITH_IMAGE = ("command", "args", "env", "port", "predict_route")


def deploy_request(place: Place, run_id: str, spec: VariantSpec, *, hf_token: str | None = None) -> Any:
    """An `aiplatform_v1.DeployRequest`.

    Raises:
        InputError: the variant is none that is deployed, or asks for what the API has no place for.
    """
    from google.cloud import aiplatform_v1

    if not spec.deployed or spec.model is None or spec.serving is None:
        raise InputError(f"Variant {spec.id!r} is not one to be deployed: it has no `model` or no `serving`.")
    serving, name = spec.serving, endpoint_id(run_id, spec.id)
    request = aiplatform_v1.DeployRequest(
        destination=str(place),
        model_config=aiplatform_v1.DeployRequest.ModelConfig(
            accept_eula=serving.accept_eula,
            model_user_id=name,
            model_display_name=name,
            hugging_face_access_token=hf_token or "",
            container_spec=_container(serving),
        ),
        endpoint_config=aiplatform_v1.DeployRequest.EndpointConfig(
            endpoint_user_id=name,
            endpoint_display_name=name,
            dedicated_endpoint_disabled=not serving.dedicated_endpoint,
        ),
        deploy_config=aiplatform_v1.DeployRequest.DeployConfig(dedicated_resources=_machine(serving)),
    )
    if "@" in spec.model:
        owner, _, version = spec.model.partition("/")
        request.publisher_model_name = f"publishers/{owner}/models/{version}"
    else:
        request.hugging_face_model_id = spec.model
    return request


def require_image(serving: Serving) -> None:
    """Make sure that an image is named where something is set that only a named one gets.

    Raises:
        InputError: none is.
    """
    given = [field for field in ONLY_WITH_IMAGE if getattr(serving, field)]
    if given and serving.image is None:
        raise no_image(f"serving.{given[0]}")


def no_image(field: str) -> InputError:
    """The refusal of a field, named as people write it, that only a named image gets."""
    return InputError(
        f"`{field}` is given without `serving.image`: Model Garden would take its own image and drop it. "
        "Name the image."
    )


def _container(serving: Serving) -> Any:
    from google.cloud import aiplatform_v1
    from google.protobuf.duration_pb2 import Duration

    if serving.image is None:
        require_image(serving)
        return None
    return aiplatform_v1.ModelContainerSpec(
        image_uri=serving.image,
        command=list(serving.command),
        args=list(serving.args),
        env=[aiplatform_v1.EnvVar(name=name, value=value) for name, value in serving.env.items()],
        ports=[aiplatform_v1.Port(container_port=serving.port)] if serving.port else [],
        predict_route=serving.predict_route or "",
        invoke_route_prefix="/*" if serving.invoke_route else "",
        health_route=serving.health_route or "",
        deployment_timeout=Duration(seconds=serving.deploy_timeout_s),
        shared_memory_size_mb=serving.shared_memory_mb or 0,
        startup_probe=_probe(serving.startup_probe, serving.port),
        health_probe=_probe(serving.health_probe, serving.port),
    )


def _probe(probe: Probe | None, port: int | None) -> Any:
    from google.cloud import aiplatform_v1

    if probe is None:
        return None
    action: dict[str, Any] = {}
    if probe.command:
        action["exec_"] = aiplatform_v1.Probe.ExecAction(command=list(probe.command))
    elif probe.path:
        action["http_get"] = aiplatform_v1.Probe.HttpGetAction(path=probe.path, port=port or 0)
    else:
        raise InputError("A probe of `serving` has neither `path` nor `command`: give one.")
    return aiplatform_v1.Probe(
        period_seconds=probe.period_s,
        timeout_seconds=probe.timeout_s,
        failure_threshold=probe.failure_threshold,
        **action,
    )


def _machine(serving: Serving) -> Any:
    from google.cloud import aiplatform_v1

    machine: dict[str, Any] = {"machine_type": serving.machine_type}
    if serving.accelerator:
        machine["accelerator_type"] = aiplatform_v1.AcceleratorType[serving.accelerator.type]
        machine["accelerator_count"] = serving.accelerator.count
    if serving.reservation:
        machine["reservation_affinity"] = aiplatform_v1.ReservationAffinity(
            reservation_affinity_type=aiplatform_v1.ReservationAffinity.Type.SPECIFIC_RESERVATION,
            key="compute.googleapis.com/reservation-name",
            values=[serving.reservation],
        )
    return aiplatform_v1.DedicatedResources(
        machine_spec=aiplatform_v1.MachineSpec(**machine),
        min_replica_count=1,
        max_replica_count=1,
        spot=serving.spot,
    )
