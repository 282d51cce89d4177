"""What people are told to do about a refused deploy: the quota, the role, the page, the field of their own case."""

from __future__ import annotations

import pytest

from eagle_bench.adapters.deploy_advice import advice, advised
from eagle_bench.adapters.vertex_address import Place
from eagle_bench.errors import ServiceError
from eagle_bench.serving import Accelerator, Serving
from eagle_bench.variants import VariantSpec

PLACE = Place("my-project", "europe-west9")
SERVING = Serving(
    image="us-docker.pkg.dev/p/r/i:1",
    machine_type="a3-highgpu-8g",
    accelerator=Accelerator(type="NVIDIA_H100_80GB", count=8),
)
GARDEN = VariantSpec(id="eagle3", model="meta/llama4@llama-4-scout-17b-16e-instruct", serving=SERVING)
HUB = VariantSpec(id="eagle3", model="meta-llama/Llama-3.1-8B-Instruct", serving=SERVING)


@pytest.mark.parametrize(
    ("kind", "message", "spec", "words"),
    [
        (
            "quota",
            "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_serving_nvidia_h100_gpus",
            GARDEN,
            ["aiplatform.googleapis.com/custom_model_serving_nvidia_h100_gpus", "8 NVIDIA_H100_80GB", "my-project"],
        ),
        (
            "quota",
            "The following quotas are exceeded: CustomModelServingH100GPUsPerProjectPerRegion",
            GARDEN,
            ["CustomModelServingH100GPUsPerProjectPerRegion in europe-west9"],
        ),
        (
            "quota",
            "Resource exhausted: insufficient capacity",
            GARDEN,
            ["is free in europe-west9", "serving.reservation"],
        ),
        (
            "permission",
            "Permission 'aiplatform.models.upload' denied on resource",
            GARDEN,
            ["roles/aiplatform.user on projects/my-project", "aiplatform.models.upload", "eagle-bench plan"],
        ),
        ("permission", "Permission 'storage.objects.create' denied", GARDEN, ["roles/storage.objectUser"]),
        ("permission", "Forbidden", GARDEN, ["roles/aiplatform.user"]),
        ("eula", "accept the EULA", GARDEN, ["publishers/meta/model-garden/llama4", "serving.accept_eula: true"]),
        ("gated-model", "gated", HUB, ["https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct", "`hf_token_secret`"]),
        ("image", "manifest unknown", GARDEN, ["us-docker.pkg.dev/p/r/i:1", "roles/artifactregistry.reader"]),
        ("region", "Machine type is not supported", GARDEN, ["a3-highgpu-8g", "`location` is europe-west9"]),
        ("not-found", "Publisher Model is not found", GARDEN, ["meta/llama4@llama-4-scout", "model-garden/llama4"]),
        ("unavailable", "DNS resolution failed for europe-west99-aiplatform", GARDEN, ["Check `location`"]),
    ],
)
def test_the_advice_is_of_this_case(kind, message, spec, words):
    told = advice(kind, message, PLACE, spec)
    for word in words:
        assert word in told


def test_a_token_that_is_named_is_not_asked_for():
    with_token = HUB.model_copy(update={"hf_token_secret": "projects/p/secrets/s/versions/1"})
    assert "hf_token_secret" not in advice("gated-model", "gated", PLACE, with_token)


def test_where_nothing_more_is_known_the_kinds_own_hint_stays():
    assert advice("timeout", "too slow", PLACE, GARDEN) is None
    assert advice("unavailable", "busy", PLACE, GARDEN) is None
    assert advice("not-found", "the secret is not there", PLACE, GARDEN) is None

    @advised
    def deploy(place, run_id, spec):
        raise ServiceError("refused.", kind=run_id, hint="the kind's own")

    for kind, expected in (("timeout", "the kind's own"), ("region", "Take a region that has a3-highgpu-8g")):
        with pytest.raises(ServiceError) as caught:
            deploy(PLACE, kind, GARDEN)
        assert caught.value.hint.startswith(expected)
