"""What is said of a job that is not there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from google.api_core.exceptions import Forbidden, NotFound

from eagle_bench.adapters import job_results
from eagle_bench.errors import ServiceError

JOB = "projects/p/locations/us-central1/pipelineJobs/nosuch"


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        (NotFound(f"GET https://host/v1/{JOB}?%24alt=json: nothing"), "not-found", "no job nosuch in p, us-central1"),
        (Forbidden("GET https://host/v1: denied"), "permission", f"look up {JOB}"),
    ],
)
def test_a_job_that_is_not_there_is_said_in_words(refusal, kind, words, monkeypatch):
    def get_pipeline_job(**_):
        raise refusal

    monkeypatch.setattr(job_results, "client_of", lambda name: SimpleNamespace(get_pipeline_job=get_pipeline_job))
    with pytest.raises(ServiceError) as caught:
        job_results.look_up(JOB)
    assert caught.value.kind == kind
    assert words in caught.value.message
    assert "alt=json" not in str(caught.value)
