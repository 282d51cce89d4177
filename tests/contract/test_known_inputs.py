"""Inputs that broke other systems of this kind: tokenizers that are not to be had, and more cells than one task may be fed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import yaml

from contract.conftest import bearer
from eagle_bench import cli
from eagle_bench.adapters.pipeline_template import compile_template
from eagle_bench.tasks.collect import collect
from eagle_bench.tasks.compare import compare
from eagle_bench.variants import VariantSpec
from servers.hub import Repo
from servers.tokenizers import SMOL, write_tokenizer
from simulated_cells import cell

MOST_ARTIFACTS = 100  # that may feed one task on Vertex AI
ENDPOINT = "projects/local-project/locations/us-central1/endpoints/1234567890"
CONFIG = {
    "project": "local-project",
    "location": "us-central1",
    "pipeline_root": "gs://local-bucket/eagle-bench",
    "variants": [{"id": "baseline", "endpoint": ENDPOINT}, {"id": "eagle3", "endpoint": f"{ENDPOINT}1"}],
    "workload": {"prompts_per_level": 50},
    "concurrency": [1],
}


@pytest.fixture
def hub(hub):
    hub.repos["models/meta/gated"] = Repo({"tokenizer.json": b"{}", "config.json": b"{}"}, gated=True)
    return hub


@pytest.fixture
def submit(server, tmp_path, capsys):
    """Submit with this tokenizer to Local Vertex; the exit status, what was said, and the jobs that there are then."""

    def submit(**fields):
        path = tmp_path / "bench.yaml"
        path.write_text(yaml.safe_dump(CONFIG | fields))
        with pytest.raises(SystemExit) as ended:
            cli.main(["submit", str(path)])
        listed = httpx.get(
            f"{server.url}/v1/projects/local-project/locations/us-central1/pipelineJobs", headers=bearer()
        ).json()
        return ended.value.code, capsys.readouterr().err, listed.get("pipelineJobs", [])

    return submit


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "`tokenizer` is missing: a Vertex AI endpoint sends no token counts"),
        ({"tokenizer": "1234567890"}, "`tokenizer`: '1234567890' is neither a folder nor a name"),
        ({"tokenizer": ENDPOINT}, "is neither a folder nor a name"),
    ],
    ids=["not given", "the endpoint's id", "the endpoint's name"],
)
def test_an_endpoints_id_stands_for_no_tokenizer(submit, fields, words):
    status, said, jobs = submit(**fields)
    assert (status, jobs) == (2, [])
    assert words in said


def test_a_gated_tokenizer_without_access_is_refused_before_there_is_a_job(submit, hub):
    status, said, jobs = submit(tokenizer="meta/gated")
    assert (status, jobs) == (1, [])
    assert "meta/gated is gated" in said
    assert f"Accept its conditions at {hub.url}/meta/gated" in said
    assert "gs:// folder" in said
    assert hub.downloads() == []


@pytest.mark.parametrize("where", ["a folder", "gs://"])
def test_a_tokenizer_of_ones_own_needs_no_hub(server, submit, tmp_path, monkeypatch, where):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    address = "gs://local-bucket/tokenizers/smol"
    folder = server.bucket_folder(address) if where == "gs://" else tmp_path / "tokenizer"
    write_tokenizer(folder, SMOL)
    status, said, jobs = submit(tokenizer=address if where == "gs://" else str(folder))
    assert (status, len(jobs)) == (0, 1), said


def test_more_cells_than_one_task_may_be_fed_are_one_comparison(tmp_path):
    variants = [f"v{number}" for number in range(7)]
    levels = range(1, 17)
    assert len(variants) * len(levels) > MOST_ARTIFACTS

    def artifact(name: str, text: str = "") -> SimpleNamespace:
        path = tmp_path / name
        path.write_text(text)
        return SimpleNamespace(path=str(path), metadata={})

    summaries = []
    for variant in variants:
        cells = [
            artifact(f"{variant}-{level}", json.dumps(cell(variant, level, prompts=50, rounds=1))) for level in levels
        ]
        summaries.append(artifact(variant))
        assert len(cells) + 1 <= MOST_ARTIFACTS
        collect(cells, artifact("checked"), summaries[-1])
    files = {name: artifact(name) for name in ("comparison", "report", "summary")}
    specs = [VariantSpec(id=variant, url="http://a/v1").as_parameter() for variant in variants]
    nothing = SimpleNamespace(log_metric=lambda *_: None)
    compare("run", {}, specs, levels, "v0", {}, {}, summaries, [], **files, metrics=nothing)
    answer = json.loads(Path(files["comparison"].path).read_text())
    assert len(answer["cells"]) == len(variants) * len(levels)
    assert len(answer["comparisons"]) == (len(variants) - 1) * len(levels)
    assert "missing_cell" not in {warning["code"] for warning in answer["warnings"]}


def test_no_task_is_fed_by_every_cell(tmp_path):
    """Levels meet in one artifact for each variant, and only those meet in the comparison."""
    compile_template(tmp_path / "template.yaml")
    components = yaml.safe_load((tmp_path / "template.yaml").read_text())["components"]
    variant, guarded = components["comp-benchmark-variant"]["dag"], components["comp-exit-handler-1"]["dag"]
    (cells,) = [
        given
        for given in variant["tasks"]["collect"]["inputs"]["artifacts"].values()
        if given["taskOutputArtifact"]["producerTask"].startswith("for-loop")
    ]
    assert cells
    summaries = guarded["tasks"]["compare"]["inputs"]["artifacts"]["summaries"]["taskOutputArtifact"]
    assert summaries["producerTask"].startswith("for-loop")
    assert set(guarded["tasks"]["compare"]["inputs"]["artifacts"]) == {"summaries"}
