"""The file of engines: what can't serve a config is refused by file and entry, before anything starts."""

from __future__ import annotations

import sys

import pytest
import yaml

from eagle_bench import config_file
from eagle_bench.builtin import engine as builtin_engine
from eagle_bench.errors import InputError
from eagle_bench.local_vertex.jobs import Jobs
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.runs.local_engines import in_containers, settings_for, with_whole_paths

SERVE = [sys.executable, "-m", "server", "{port}"]
CONFIG = {
    "project": "p",
    "location": "us-central1",
    "model": "some/model",
    "tokenizer": "some/model",
    "serving": {"image": "registry/vllm:1"},
    "variants": [{"id": "baseline"}, {"id": "other"}],
}


def settings(tmp_path, content):
    path = tmp_path / "engines.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return settings_for(config_file.validate(CONFIG), tmp_path / "state", path, 1, print)


def test_a_file_with_an_engine_for_every_variant_is_taken(tmp_path):
    (tmp_path / "m").mkdir()
    engines = {"*vllm*": {"command": [*SERVE, "{model}"]}}
    found = settings(tmp_path, {"engines": engines, "models": {"some/model": str(tmp_path / "m")}})
    assert found.engine_for("registry/vllm:1").command[0] == sys.executable


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "there is no engine in it"),
        ("engines: {}", "there is no engine in it"),
        ("engines:", "there is no engine in it"),
        ("models: {some/model: /m}", "there is no engine in it"),
        ("- a\n- b", "there is no engine in it"),
        ("engines: {a: [}", "line 1: not YAML"),
        ("engines: {vllm: {command: []}}", "`engines.vllm.command`: is empty: it needs a program"),
        ("engines: {vllm: {command: ['']}}", "`engines.vllm.command`: is empty: it needs a program"),
        ("engines: {vllm: {}}", "`engines.vllm.command`: field required"),
        ("engines: {vllm: {command: python3 -m server}}", "`engines.vllm.command`: it must be a list"),
        ("engines: {vllm: {command: [python3], port: 1}}", "`engines.vllm.port`: it is not a known key"),
        ("engines: [vllm]", "`engines`: it must be a mapping"),
        ("engines: {vllm: {command: [python3]}}\n1: 2", "`1`: keys should be strings"),
        ("engines: {sglang: {command: [python3]}}", "`engines` has no command for 'registry/vllm:1': it names sglang."),
        (
            "engines: {'*vllm*': {command: ['no-such-program']}}",
            "there is no command 'no-such-program' on this machine",
        ),
        (
            "engines: {'*vllm*': {command: [./serve]}}",
            "the command './serve' is no whole path. Engines run in a folder of their own.",
        ),
        ("engines: {'*vllm*': {command: [python3, '{model}']}}", "`models` has no folder for 'some/model'"),
        (
            "engines: {'*vllm*': {command: [python3, '{model}']}}\nmodels: {some/model: /nowhere/m}",
            "`models.some/model`: /nowhere/m is not a folder of this machine",
        ),
    ],
)
def test_what_can_not_serve_is_refused_by_file_and_entry(tmp_path, content, words):
    with pytest.raises(InputError) as refused:
        settings(tmp_path, content)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / 'engines.yaml'}")
    assert words in said
    assert "\n" not in said
    assert "errors.pydantic.dev" not in said


def test_a_file_that_is_not_there_or_is_no_text_is_named(tmp_path):
    path = tmp_path / "none.yaml"
    for content, words in ((None, "No such file or directory"), (b"\xff\xfe\xff", "it is not text in UTF-8")):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError, match=words) as refused:
            settings_for(config_file.validate(CONFIG), tmp_path, path, 1, print)
        assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("version", "system", "machine"),
    [((3, 13), "Linux", "x86_64"), ((3, 11), "Darwin", "arm64"), ((3, 11), "Linux", "aarch64")],
)
def test_the_builtin_engine_is_refused_where_its_packages_do_not_fit(version, system, machine):
    builtin_engine.require_platform((3, 11), "Linux", "x86_64")
    with pytest.raises(InputError, match=rf"this is Python 3\.{version[1]} on {system} on {machine}\. Give an engine"):
        builtin_engine.require_platform(version, system, machine)


def test_only_what_is_here_becomes_a_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.jsonl", "builtin", "sharegpt"):
        (tmp_path / name).write_text("")
    for given, found in (
        ("mine.jsonl", str(tmp_path / "mine.jsonl")),
        ("builtin", "builtin"),
        ("hf://a/b", "hf://a/b"),
    ):
        config = config_file.validate({**CONFIG, "workload": {"dataset": given}}, source="x")
        ready = with_whole_paths(config)
        assert (ready.workload.dataset, ready.tokenizer) == (found, CONFIG["tokenizer"])


def test_tasks_in_containers_see_the_prompts_and_the_tokenizer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.jsonl").write_text("")
    (tmp_path / "tokenizer").mkdir()
    values = {**CONFIG, "workload": {"dataset": "mine.jsonl"}, "tokenizer": "./tokenizer"}
    ready = with_whole_paths(config_file.validate(values, source="x"))
    jobs = Jobs(in_containers(Settings(state_dir=tmp_path / "state"), ready), {})
    containers = jobs.containers("job", tmp_path / "artifacts")
    assert containers is not None
    words = containers.argv("image:1", ["sh"], {})
    for path in (tmp_path / "mine.jsonl", tmp_path / "tokenizer"):
        assert f"--volume={path}:{path}:ro" in words
