"""Where Vertex AI is, and what its refusals mean."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError

from eagle_bench.adapters.running_jobs import artifacts_folder, console_link, schedules_link
from eagle_bench.adapters.vertex_address import Place, address
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.errors import ServiceError


def test_the_real_address_without_the_variable(monkeypatch):
    monkeypatch.delenv("EAGLE_BENCH_VERTEX_API", raising=False)
    there = address("europe-west4")
    assert (there.api, there.transport) == ("europe-west4-aiplatform.googleapis.com", "grpc")
    assert there.resource_url("projects/p/x") == "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/x"


def test_the_local_address_with_it(monkeypatch):
    monkeypatch.setenv("EAGLE_BENCH_VERTEX_API", "http://127.0.0.1:1234/")
    there = address("europe-west4")
    assert (there.api, there.transport) == ("http://127.0.0.1:1234", "rest")
    assert there.resource_url("projects/p/x") == "http://127.0.0.1:1234/v1/projects/p/x"


def test_only_what_runs_on_vertex_ai_has_a_page_in_the_console(monkeypatch):
    job, place = "projects/p/locations/l/pipelineJobs/j", Place("p", "l")
    monkeypatch.delenv("EAGLE_BENCH_VERTEX_API", raising=False)
    assert console_link(job) == "https://console.cloud.google.com/vertex-ai/locations/l/pipelines/runs/j?project=p"
    assert schedules_link(place) == "https://console.cloud.google.com/vertex-ai/pipelines/schedules?project=p"
    assert artifacts_folder(job) is None
    monkeypatch.setenv("EAGLE_BENCH_VERTEX_API", "http://127.0.0.1:1234/")
    assert (console_link(job), schedules_link(place)) == (None, None)


def test_a_place_from_a_resource_name():
    assert Place.of("projects/p/locations/l/endpoints/e") == Place("p", "l")
    with pytest.raises(ValueError, match="not a resource name"):
        Place.of("endpoints/e")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.TooManyRequests("Quota exceeded for CustomModelServingH100GPUs"), "quota"),
        (exceptions.ResourceExhausted("insufficient capacity in the region"), "quota"),
        (exceptions.BadRequest("Machine type a3-highgpu-8g is not supported in europe-west9"), "region"),
        (exceptions.BadRequest("Please provide a valid Hugging Face access token"), "gated-model"),
        (exceptions.Forbidden("The EULA of the model is not accepted"), "eula"),
        (exceptions.TooManyRequests("quota metrics exceed limits: the region is not supported"), "quota"),
        (exceptions.BadRequest("The EULA of the model has to be accepted"), "eula"),
        (exceptions.FailedPrecondition("Failed to pull the container image x: manifest unknown"), "image"),
        (exceptions.Forbidden("Access to this gated model is restricted"), "gated-model"),
        (exceptions.Forbidden("Permission 'aiplatform.endpoints.create' denied"), "permission"),
        (exceptions.Unauthorized("invalid credentials"), "authentication"),
        (exceptions.NotFound("Publisher Model publishers/x is not found"), "not-found"),
        (exceptions.ServiceUnavailable("try again; quota"), "unavailable"),
        (exceptions.DeadlineExceeded("too slow"), "timeout"),
        (exceptions.Conflict("exists already"), "other"),
        (RefreshError("invalid_grant"), "authentication"),
        (DefaultCredentialsError("none found"), "authentication"),
        (ConnectionRefusedError("refused"), "unavailable"),
    ],
)
def test_the_cause_of_a_refusal(error, kind):
    with pytest.raises(ServiceError) as caught, told("do a thing"):
        raise error
    assert caught.value.kind == kind
    assert "do a thing" in caught.value.message or isinstance(error, DefaultCredentialsError)  # nothing was asked yet
    assert caught.value.__cause__ is error
    assert kind == "other" or caught.value.hint


def test_other_faults_stay_what_they_are():
    with pytest.raises(KeyError), told("do a thing"):
        raise KeyError("x")
