"""`plan` of a run on this machine: what is here is looked at, and the cloud is not asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from eagle_bench import cli
from eagle_bench.adapters.vertex_address import VARIABLE
from eagle_bench.builtin import engine as builtin
from servers.tokenizers import SMOL, write_tokenizer

OWN = {
    "model": builtin.MODEL_ID,
    "tokenizer": builtin.MODEL_ID,
    "serving": {"image": "vllm-cpu"},
    "variants": [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}],
    "workload": {"dataset": "builtin", "prompts_per_level": 50},
    "concurrency": [1],
}
PLACE = {"project": "p", "location": "us-central1", "pipeline_root": "gs://b/x"}


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """Plan a config; the exit status and all that is said come back. There is no engine yet, and no account."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("EAGLE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    monkeypatch.setenv("COLUMNS", "500")
    path = tmp_path / "own.yaml"

    def plan(config, *arguments):
        path.write_text(yaml.safe_dump(config))
        with pytest.raises(SystemExit) as ended:
            cli.main(["plan", str(path), *map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code, " ".join((said.out + said.err).split())

    yield plan
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "config", [OWN, {**OWN, **PLACE, "serving": {**OWN["serving"], "machine_type": "this-machine"}}]
)
def test_of_the_built_in_engine_what_is_here_is_checked(plan, config):
    status, said = plan(config)
    assert status == 0, said
    assert f"the built-in engine serves {builtin.MODEL_ID} on this machine; `run` makes it first, once." in said
    assert f"{builtin.MODEL_ID} comes with the engine." in said
    assert "not needed google-cloud nothing of this run is there" in said
    assert said.endswith("Nothing was found against it.")
    assert "this-machine" in said
    for word in ("a3-highgpu-8g", "price_per_hour", "credentials", "bucket", "quota", "Hugging Face"):
        assert word not in said, word


def test_the_built_in_engine_is_reckoned_with_at_the_pace_of_a_cpu(plan):
    assert "Assumed, not measured: 30 to 110 ms a token, 150 to 1 000 ms to the first one" in plan(OWN)[1]
    assert "Assumed, not measured: 8 to 12 ms a token, " in plan(OWN, "--ms-per-token", "8-12")[1]


def test_a_config_for_vertex_ai_is_asked_about_there(plan):
    status, said = plan({**OWN, **PLACE, "model": "meta/llama@1"})
    assert status == 0, said
    assert "credentials" in said and "engine" not in said
    assert "Assumed, not measured: 5 to 20 ms a token, " in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "a/b"}, "'a/b' is not on this machine; the built-in engine serves"),
        (
            {"serving": {"image": "sglang:1"}},
            "the built-in engine stands for vLLM's images (*vllm*), not for 'sglang:1'",
        ),
        ({"serving": {}}, "`variants[1].args` is given without `serving.image`"),
        ({"concurrency": [1, 64]}, "are needed"),
    ],
)
def test_what_run_would_refuse_is_refused(plan, change, words):
    status, said = plan({**OWN, **change})
    assert status == 2
    assert words in said
    assert ("set `project`, `location` and `pipeline_root`" in said) is (
        "engine" in said.rpartition("It may not run")[2]
    )
    assert "It may not run: " in said


def test_a_file_of_engines_is_looked_at(plan, tmp_path):
    engines, folder = tmp_path / "engines.yaml", write_tokenizer(tmp_path / "model", SMOL)
    known = {
        "engines": {"*sglang*": {"command": [sys.executable, "-m", "x", "{model}"]}},
        "models": {"a/b": str(folder)},
    }
    engines.write_text(yaml.safe_dump(known))
    mine = {**OWN, **PLACE, "model": "a/b", "tokenizer": "a/b", "serving": {"image": "sglang:1"}}
    status, said = plan(mine, "--engines", engines)
    assert status == 0, said
    assert f"{engines} serves a/b on this machine." in said and f"a/b can be read in {folder}." in said

    for change, words in (
        ({"serving": {"image": "other:1"}}, "`engines` has no command for 'other:1': it names *sglang*."),
        ({"model": "a/c"}, "`models` has no folder for 'a/c': it names a/b. Did you mean `a/b`?"),
    ):
        status, said = plan({**mine, **change}, "--engines", engines)
        assert status == 2 and words in said, said
    engines.write_text(yaml.safe_dump({**known, "engines": {"*sglang*": {"command": ["no-such-command"]}}}))
    status, said = plan(mine, "--engines", engines)
    assert status == 2 and "there is no command 'no-such-command' on this machine" in said
    (Path(folder) / "tokenizer.json").write_text("{}")
    engines.write_text(yaml.safe_dump(known))
    status, said = plan(mine, "--engines", engines)
    assert status == 2 and "It may not run: tokenizer refused." in said
    status, said = plan(mine, "--engines", engines, "--image", "r/x:1")
    assert status == 2 and "leave out --template and --image" in said


def test_a_job_of_local_vertex_is_planned_for_this_machine(plan, monkeypatch):
    """Whatever machine the config names: this one stands for it."""
    local = {**OWN, **PLACE}
    _, elsewhere = plan({**local, "serving": {**OWN["serving"], "machine_type": "a3-highgpu-8g"}})
    assert "a3-highgpu-8g" in elsewhere and "10 to 30 min to deploy" in elsewhere
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:9")
    for machine in ({}, {"machine_type": "this-machine"}, {"machine_type": "a3-highgpu-8g"}):
        _, said = plan({**local, "serving": {**OWN["serving"], **machine}})
        assert "this machine stands for it" in said and "this-machine" in said
        assert "0.3 to 5 min to deploy" in said
        assert "a3-highgpu-8g" not in said and "10 to 30 min" not in said


def test_what_a_job_needs_is_named_where_one_is_meant(plan):
    status, said = plan(OWN, "--image", "registry.example.com/bench:1")
    assert status == 2
    assert "`project` is missing: id of the Google Cloud project" in said and "`location` is missing" in said


def test_where_jobs_go_to_local_vertex_it_is_said_why_a_job_is_meant(plan, monkeypatch):
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:9")
    status, said = plan(OWN)
    assert status == 2
    assert "`project` is missing" in said
    assert f"{VARIABLE} is set, so this plans a job on Local Vertex. For `run`, plan in a shell without it." in said
