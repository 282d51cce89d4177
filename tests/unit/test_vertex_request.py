"""The request that deploys: every setting of `serving` is in it."""

from __future__ import annotations

import pytest
from google.cloud import aiplatform_v1

from eagle_bench.adapters.vertex_address import Place
from eagle_bench.adapters.vertex_names import endpoint_id
from eagle_bench.adapters.vertex_request import deploy_request
from eagle_bench.errors import InputError
from eagle_bench.serving import Accelerator, Probe, Serving
from eagle_bench.variants import VariantSpec

PLACE = Place("my-project", "asia-southeast1")
SERVING = Serving(
    image="us-docker.pkg.dev/p/r/sglang-serve:1",
    machine_type="a3-highgpu-8g",
    accelerator=Accelerator(type="NVIDIA_H100_80GB", count=8),
    command=("python", "-m", "server"),
    args=("--tp=8", "--context-length=131072"),
    env={"MODEL_ID": "meta-llama/x", "DEPLOY_SOURCE": "UI_NATIVE_MODEL"},
    port=30000,
    health_route="/health",
    predict_route="/vertex_generate",
    shared_memory_mb=65536,
    startup_probe=Probe(path="/health", period_s=20, timeout_s=5, failure_threshold=90),
    health_probe=Probe(command=("true",)),
    deploy_timeout_s=5400,
    reservation="projects/my-project/zones/z/reservations/r",
    accept_eula=True,
)


def request(model="meta/llama4@llama-4-scout-17b-16e-instruct", serving=SERVING, **details):
    return deploy_request(PLACE, "run", VariantSpec(id="eagle3", model=model, serving=serving), **details)


def test_a_whole_request():
    name = endpoint_id("run", "eagle3")
    assert aiplatform_v1.DeployRequest.to_dict(
        request(),
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=False,
        use_integers_for_enums=False,
    ) == {
        "publisher_model_name": "publishers/meta/models/llama4@llama-4-scout-17b-16e-instruct",
        "destination": "projects/my-project/locations/asia-southeast1",
        "model_config": {
            "accept_eula": True,
            "model_user_id": name,
            "model_display_name": name,
            "container_spec": {
                "image_uri": "us-docker.pkg.dev/p/r/sglang-serve:1",
                "command": ["python", "-m", "server"],
                "args": ["--tp=8", "--context-length=131072"],
                "env": [
                    {"name": "MODEL_ID", "value": "meta-llama/x"},
                    {"name": "DEPLOY_SOURCE", "value": "UI_NATIVE_MODEL"},
                ],
                "ports": [{"container_port": 30000}],
                "predict_route": "/vertex_generate",
                "health_route": "/health",
                "deployment_timeout": "5400s",
                "shared_memory_size_mb": "65536",
                "startup_probe": {
                    "http_get": {"path": "/health", "port": 30000},
                    "period_seconds": 20,
                    "timeout_seconds": 5,
                    "failure_threshold": 90,
                },
                "health_probe": {
                    "exec_": {"command": ["true"]},
                    "period_seconds": 10,
                    "timeout_seconds": 10,
                    "failure_threshold": 3,
                },
            },
        },
        "endpoint_config": {"endpoint_user_id": name, "endpoint_display_name": name},
        "deploy_config": {
            "dedicated_resources": {
                "machine_spec": {
                    "machine_type": "a3-highgpu-8g",
                    "accelerator_type": "NVIDIA_H100_80GB",
                    "accelerator_count": 8,
                    "reservation_affinity": {
                        "reservation_affinity_type": "SPECIFIC_RESERVATION",
                        "key": "compute.googleapis.com/reservation-name",
                        "values": ["projects/my-project/zones/z/reservations/r"],
                    },
                },
                "min_replica_count": 1,
                "max_replica_count": 1,
            }
        },
    }


def test_a_model_of_hugging_face():
    made = request(model="meta-llama/Llama-3.1-8B-Instruct", hf_token="planted")
    assert made.hugging_face_model_id == "meta-llama/Llama-3.1-8B-Instruct"
    assert not made.publisher_model_name
    assert made.model_config.hugging_face_access_token == "planted"


def test_the_image_may_be_model_gardens_choice():
    made = request(serving=Serving(machine_type="g2-standard-12"))
    assert not made.model_config.container_spec.image_uri
    assert made.deploy_config.dedicated_resources.machine_spec.machine_type == "g2-standard-12"


@pytest.mark.parametrize("field", [{"args": ("--x",)}, {"env": {"A": "b"}}, {"command": ("x",)}, {"port": 1}])
def test_what_model_garden_would_drop_without_an_image_is_refused(field):
    with pytest.raises(InputError, match=rf"`serving.{next(iter(field))}` is given without `serving.image`"):
        request(serving=Serving(**field))


def test_machines_may_be_spot():
    resources = request(serving=Serving(image="i", spot=True)).deploy_config.dedicated_resources
    assert resources.spot
    assert not resources.machine_spec.reservation_affinity.values


def test_the_endpoint_may_be_shared_and_all_routes_open():
    made = request(serving=Serving(image="i", dedicated_endpoint=False, invoke_route=True))
    assert made.endpoint_config.dedicated_endpoint_disabled
    assert made.model_config.container_spec.invoke_route_prefix == "/*"


def test_a_probe_needs_something_to_do():
    with pytest.raises(InputError, match="neither `path` nor `command`"):
        request(serving=Serving(image="i", health_probe=Probe()))


def test_a_variant_that_is_used_is_never_deployed():
    with pytest.raises(InputError, match="'mine' is not one to be deployed"):
        deploy_request(PLACE, "run", VariantSpec(id="mine", url="http://x/v1"))
