"""How images and models of Vertex AI stand on a machine; faults in their pattern; filters of lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from eagle_bench.local_vertex.environment import client_environment
from eagle_bench.local_vertex.faults import Fault, Faults
from eagle_bench.local_vertex.refusals import Refusal
from eagle_bench.local_vertex.resources import listing, matches
from eagle_bench.local_vertex.settings import Engine, Settings, vllm

ENGINE = Engine(command=("serve", "{model}", "--port={port}"))
PLACES = {"model": "/m", "served_model": "a/b", "host": "127.0.0.1", "port": 81}


@pytest.mark.parametrize(
    "args",
    [
        ("--model=gs://x", "--tp=8"),
        ("--model", "gs://x", "--tp=8"),
        ("--tp=8", "--port", "8080", "--host=0.0.0.0"),
        ("--tp=8", "--model"),
    ],
)
def test_what_the_machine_decides_is_not_taken_from_the_variant(args):
    assert ENGINE.argv(**PLACES, args=args) == ("serve", "/m", "--port=81", "--tp=8")


def test_braces_in_arguments_are_left_alone():
    config = '--speculative-config={"method": "ngram", "model": "{port}"}'
    assert ENGINE.argv(**PLACES, args=(config,))[-1] == config


def test_images_stand_for_engines_by_name_then_by_pattern():
    exact, pattern, default = (Engine(command=(name,)) for name in ("exact", "pattern", "default"))
    settings = Settings(
        state_dir=Path("x"), engines={"*sglang*": pattern, "registry/sglang:1": exact, "default": default}
    )
    assert settings.engine_for("registry/sglang:1") is exact
    assert settings.engine_for("registry/sglang:2") is pattern
    assert settings.engine_for(None) is default
    assert settings.engine_for("other") is None


def test_model_ids_become_folders_where_they_stand_whole():
    settings = Settings(state_dir=Path("x"), models={"a/b": Path("/short"), "a/b-head": Path("/long")})
    assert settings.model_folder("A/B") == Path("/short")
    assert settings.model_folder("a/c") is None
    assert settings.with_folders('{"model": "a/b-head", "k": 1}') == '{"model": "/long", "k": 1}'
    assert settings.with_folders("--draft=a/b") == "--draft=/short"
    assert settings.with_folders("x/a/b a/bc a/b/c") == "x/a/b a/bc a/b/c"


def test_vllm_takes_the_openmp_library_of_its_environment(tmp_path):
    (tmp_path / "bin").mkdir()
    library = tmp_path / "lib" / "libiomp5.so"
    library.parent.mkdir()
    library.touch()
    engine = vllm(tmp_path / "bin" / "python", kv_cache_gb=3)
    assert engine.env["LD_PRELOAD"] == str(library)
    assert engine.env["VLLM_CPU_KVCACHE_SPACE"] == "3"
    assert engine.argv(**PLACES, args=())[:3] == (
        str(tmp_path / "bin/python"),
        "-m",
        "vllm.entrypoints.openai.api_server",
    )
    assert "LD_PRELOAD" not in vllm(tmp_path / "elsewhere" / "bin" / "python").env


def test_settings_survive_the_way_to_the_server():
    settings = Settings(state_dir=Path("x"), engines={"i": ENGINE}, faults=(Fault(kind="deploy-quota"),))
    assert Settings.model_validate_json(settings.model_dump_json()) == settings
    with pytest.raises(ValidationError):
        Settings(state_dir=Path("x"), slotz=2)


def test_paths_are_absolute_for_engines_and_jobs_that_run_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = Settings(state_dir=Path("x"), models={"a/b": Path("m")})
    assert (settings.state_dir, settings.model_folder("a/b")) == (tmp_path / "x", tmp_path / "m")


@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        ({}, "x....."),
        ({"times": None}, "xxxxxx"),
        ({"skip": 2, "times": 2}, "..xx.."),
        ({"every": 3, "times": None}, "x..x.."),
        ({"match": "other"}, "......"),
    ],
)
def test_faults_strike_in_their_pattern(fault, struck):
    faults = Faults([Fault(kind="traffic-status", **fault)])
    assert "".join("x" if faults.strike("traffic-status", "name") else "." for _ in range(6)) == struck
    assert faults.strike("deploy-quota", "name") is None


RESOURCE = {
    "name": "projects/p/locations/l/endpoints/e",
    "displayName": "E 1",
    "labels": {"run": "r-1"},
    "createTime": "1",
}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("", True),
        ("labels.run=r-1", True),
        ("labels.run=r", False),
        ("labels.run!=r", True),
        ("labels.run:*", True),
        ("labels.other:*", False),
        ('display_name="E 1"', True),
        ("endpoint=e", True),
        ("labels.run=r-1 AND endpoint=f", False),
    ],
)
def test_filters(expression, found):
    assert matches(RESOURCE, expression) is found


@pytest.mark.parametrize("expression", ["run", "colour=red", "labels.run="])
def test_filters_that_are_none_are_refused(expression):
    with pytest.raises(Refusal, match="Invalid filter"):
        matches(RESOURCE, expression)


def test_lists_come_in_pages_newest_first():
    resources = [{**RESOURCE, "createTime": str(number)} for number in range(5)]
    first = listing("endpoints", resources, {"pageSize": "2"})
    rest = listing("endpoints", resources, {"pageSize": "3", "pageToken": first["nextPageToken"]})
    assert [one["createTime"] for one in first["endpoints"] + rest["endpoints"]] == ["4", "3", "2", "1", "0"]
    assert "nextPageToken" not in rest


@pytest.mark.parametrize(
    ("known", "direct"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "a.example, .b"}, "a.example, .b,127.0.0.1"),
        ({"no_proxy": "127.0.0.1,c"}, "127.0.0.1,c"),
    ],
)
def test_no_proxy_is_asked_for_local_vertex(known, direct, tmp_path, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    found = client_environment(Settings(state_dir=tmp_path), "http://127.0.0.1:8080")
    assert found["no_proxy"] == found["NO_PROXY"] == direct
