"""What the build made: images of the promised size and kind, a template that names them by digest, a run with it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time

import pytest
import yaml
from eagle_bench.components._image import USED_BY

from container.conftest import TEMPLATES, Built
from eagle_bench import __version__
from eagle_bench.adapters.pipeline_template import images_in, sha256_of

SIZES_GB = {"bench": 2.0, "slim": 0.6}


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def details(image: str) -> dict:
    (found,) = json.loads(docker("image", "inspect", image))
    return found


def test_every_step_ran(built: Built):
    assert list(built.run.statuses.values()) == [0] * len(built.run.build.steps)
    assert built.run.statuses.keys() == {step.id for step in built.run.build.steps}
    assert "passed" in built.run.outputs["checks"]


@pytest.mark.parametrize("name", SIZES_GB)
def test_images_are_small_and_leave_the_command_to_the_pipeline(built: Built, name):
    found = details(built.image(name))
    print(docker("images", built.image(name).rpartition(":")[0]))
    assert found["Size"] < SIZES_GB[name] * 1e9
    assert found["Config"]["Entrypoint"] is None
    assert found["Config"]["User"] == "10001"
    assert found["Config"]["Labels"]["org.opencontainers.image.revision"] == "git-0abc123"


def test_slim_has_no_measuring_client_and_both_start(built: Built):
    for name, module in (("slim", "eagle_bench.tasks.compare"), ("bench", "eagle_bench.tasks.benchmark")):
        started = time.monotonic()
        box = ("run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp", built.image(name))
        line = docker(*box, "python", "-c", f"import {module}, eagle_bench; print(eagle_bench.__version__)")
        print(f"{name}: {time.monotonic() - started:.1f} s from `docker run` to the first line of a component")
        assert line.strip() == __version__
    missing = "import importlib.util as u; print([n for n in ('torch', 'vllm') if u.find_spec(n)])"
    assert docker("run", "--rm", "--network=none", built.image("slim"), "python", "-c", missing).strip() == "[]"


def test_equal_input_makes_equal_layers(built: Built):
    """Nothing in the layers has a time of its own, byte code included, which holds its source's."""
    look = """
import os, pathlib
files = list(pathlib.Path("/opt").rglob("*"))
later = {int(os.lstat(file).st_mtime) for file in files if os.lstat(file).st_mtime >= 1767225600}
compiled = [file for file in files if file.suffix == ".pyc" and file.is_relative_to("/opt/byte-code/opt")]
sources = {int.from_bytes(file.read_bytes()[8:12], "little") for file in compiled}
print(len(compiled), *later, *sources)
"""
    count, *times = docker("run", "--rm", "--network=none", built.image("bench"), "python", "-c", look).split()
    assert int(count) > 1000
    assert times == ["1767225600", "1767225600"]


def test_the_template_names_the_images_by_digest(built: Built):
    path = built.workspace / "build" / "eagle-benchmark.yaml"
    spec = yaml.safe_load(path.read_text())
    repository = built.run.values["_REPOSITORY"]
    digests = {}
    for name in SIZES_GB:
        (digest,) = (
            one for one in details(built.image(name))["RepoDigests"] if one.startswith(f"{repository}/{name}@")
        )
        digests[name] = digest
        # What was pushed is what stands in the registry under this digest.
        assert (f"local-project/eagle-bench/{name}", digest.partition("@")[2]) in built.registry.manifests
    assert images_in(spec) == set(digests.values())
    for component, name in USED_BY.items():
        executor = spec["deploymentSpec"]["executors"][f"exec-{component.replace('_', '-')}"]
        assert executor["container"]["image"] == digests[name]


def test_the_template_is_published_under_version_and_commit(built: Built):
    path = built.workspace / "build" / "eagle-benchmark.yaml"
    version = f"sha256:{sha256_of(path)}"
    repository = "us-central1/local-project/eagle-bench-templates"
    assert built.registry.templates == {(repository, f"eagle-benchmark/{version}"): path.read_bytes()}
    tags = {(repository, "eagle-benchmark", tag) for tag in ("git-0abc123", f"v{__version__.replace('.', '-')}")}
    assert built.registry.tags == dict.fromkeys(tags, version)
    assert f"{TEMPLATES}/eagle-benchmark/{version}" in built.run.outputs["publish"]


def test_no_step_shows_a_token(built: Built):
    assert built.registry.tokens
    assert not any(token in output for token in built.registry.tokens for output in built.run.outputs.values())


def test_a_pull_request_publishes_nothing(built: Built):
    """The same file with _PUBLISH=no, on what was built already."""
    pushes, templates = len(built.registry.manifests), dict(built.registry.templates)
    run = type(built.run)(
        build=built.run.build,
        workspace=built.workspace,
        values={**built.run.values, "_PUBLISH": "no"},
    )
    assert run.execute(only=("settings", "push", "template", "publish", "smoke-run")), run.outputs
    assert len(built.registry.manifests) == pushes
    assert built.registry.templates == templates
    spec = yaml.safe_load((built.workspace / "build" / "eagle-benchmark.yaml").read_text())
    assert images_in(spec) == {built.image(name) for name in SIZES_GB}


def test_a_missing_repository_ends_the_build_before_anything_is_made(built: Built):
    elsewhere = {"_TEMPLATES": built.run.values["_TEMPLATES"].replace("us-central1", "us-east1")}
    run = dataclasses.replace(built.run, values={**built.run.values, **elsewhere}, statuses={}, outputs={}, seconds={})
    assert not run.execute(only=("settings", "access", "checks", "wheel", "slim", "bench"))
    assert list(run.outputs) == ["settings", "access"]
    words = "the repository eagle-bench-templates in region us-east1 of project local-project is not there"
    assert words in run.outputs["access"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"_TORCH_INDEX_URL": ""}, "_TORCH_INDEX_URL is missing"),
        ({"_TAG": "git-"}, "SHORT_SHA is missing"),
        ({"_PUBLISH": "maybe"}, "_PUBLISH is 'maybe'"),
        ({"_RUN_AS": "root"}, "_RUN_AS is 'root'"),
        ({"_TEMPLATES": "gs://x"}, "_TEMPLATES is 'gs://x'"),
        ({"_SMOKE_CONFIG": "none.yaml"}, "_SMOKE_CONFIG: there is no none.yaml"),
    ],
)
def test_a_wrong_substitution_ends_the_build_with_its_name(built: Built, change, words):
    run = type(built.run)(build=built.run.build, workspace=built.workspace, values={**built.run.values, **change})
    assert not run.execute(only=("settings",))
    assert words in run.outputs["settings"]
