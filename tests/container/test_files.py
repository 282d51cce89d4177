"""Dockerfile and cloudbuild.yaml as files: lint, the API's own definition, and what must agree between them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from container import cloud_build

REPO = Path(__file__).parents[2]
BENCH = REPO / "containers" / "bench"
CONFIG = REPO / "cloudbuild.yaml"


def pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", (BENCH / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


def test_the_dockerfile_has_no_lint():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [linter, "--failure-threshold=warning", BENCH / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_dockerfile_leaves_the_command_to_the_pipeline():
    instructions = {
        line.split()[0] for line in (BENCH / "Dockerfile").read_text().splitlines() if re.match("[A-Z]+ ", line)
    }
    assert not instructions & {"ENTRYPOINT", "CMD", "ADD"}
    assert "ARG BASE_IMAGE=" in (BENCH / "Dockerfile").read_text()


def test_cloudbuild_yaml_is_what_the_api_takes_and_has_no_problems():
    assert list(cloud_build.problems(cloud_build.load(CONFIG))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("waitFor: [wheel]", "waitFor: [wheels]"), "waits for wheels"),
        (("--target=slim", "--target=$_SLIM"), "$_SLIM is neither built in nor declared"),
        (('_PUBLISH: "yes"', '_PUBLISHED: "yes"'), "_PUBLISHED is never used"),
        (('"$_TEMPLATES" --tag', '"$_TEMPLATE" --tag'), "$_TEMPLATE is neither built in nor declared"),
        (("docker:24.0.9", "docker"), "is not pinned"),
        (("    timeout: 60s\n", ""), "settings: has no time-out"),
        (("  automapSubstitutions: true\n", ""), "automapSubstitutions"),
        (("VERIFIED", "NOT_VERIFIED"), "provenance"),
    ],
)
def test_the_check_finds_what_the_api_would_take(tmp_path, change, words):
    broken = tmp_path / "cloudbuild.yaml"
    text = CONFIG.read_text()
    assert change[0] in text
    broken.write_text(text.replace(*change))
    assert any(words in problem for problem in cloud_build.problems(cloud_build.load(broken)))


GOOD = {
    "_LOCATION": "europe-west4",
    "_REPOSITORY": "127.0.0.1:5000/local-project/eagle-bench",
    "_TEMPLATES": "https://us-kfp.pkg.dev/p/templates",
    "_TAG": "v1.2.0",
    "_PUBLISH": "no",
    "_SMOKE_CONFIG": "",
    "_TORCH_INDEX_URL": "https://us-python.pkg.dev/p/torch/simple/",
    "_BASE_IMAGE": "python:3.11-slim",
    "_BUILD_NETWORK": "host",
    "_RUN_AS": "10001",
}
AWKWARD = ("", " ", "a b", "a\nb", '"', "'", "*", ";", "$HOME", "$(id)", "ä", "a\tb")


def settings_step(changes):
    """Exit status and output of the first step, by a shell of this machine."""
    build = cloud_build.load(CONFIG)
    given = {"PROJECT_ID": "my-project", "SHORT_SHA": "0abc123", "_TORCH_INDEX_URL": GOOD["_TORCH_INDEX_URL"]}
    values = cloud_build.Run(build, REPO, given).values | changes
    (step,) = (step for step in build.steps if step.id == "settings")
    command = ["/bin/sh", "-c", step.script]
    environment = {"PATH": os.defpath, **values}
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_first_step_takes_the_defaults_and_what_is_right():
    assert settings_step({}) == (0, "")
    assert settings_step(GOOD) == (0, "")


@pytest.mark.parametrize("name", sorted(GOOD))
def test_the_first_step_names_each_substitution_that_can_not_be_used(name):
    for value in AWKWARD:
        status, output = settings_step({name: value})
        if name == "_SMOKE_CONFIG" and not value:
            continue
        assert status == 1, (name, value)
        assert name in output, (name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_REPOSITORY", "us-docker.pkg.dev/my-project"),
        ("_REPOSITORY", "us-docker.pkg.dev/example.com:my-project/eagle-bench"),
        ("_REPOSITORY", "us-docker.pkg.dev/my-project/eagle-bench/"),
        ("_TEMPLATES", "https://us-kfp.pkg.dev/my-project/templates/"),
        ("_TEMPLATES", "https://us-kfp.pkg.dev/my-project/templates/eagle-benchmark"),
        ("_TEMPLATES", "https://us-docker.pkg.dev/my-project/templates"),
        ("_TAG", "git-"),
        ("_TAG", "-a"),
        ("_TAG", "Upper"),
        ("_LOCATION", "US-central1"),
        ("_REPOSITORY", "us-docker.pkg.dev/my-project/Images"),
        ("_TORCH_INDEX_URL", "torch"),
    ],
)
def test_the_first_step_refuses_what_a_later_one_would(name, value):
    status, output = settings_step({name: value})
    assert status == 1
    assert name in output or "SHORT_SHA is missing" in output


def test_a_field_that_the_api_does_not_know_is_refused(tmp_path):
    broken = tmp_path / "cloudbuild.yaml"
    broken.write_text(CONFIG.read_text().replace("waitFor", "waitsFor"))
    with pytest.raises(json_format.ParseError, match="waitsFor"):
        cloud_build.load(broken)


def test_slim_is_a_part_of_bench_with_the_same_versions():
    slim, bench = pins("slim-requirements.txt"), pins("requirements.txt")
    assert slim.items() <= bench.items()


def test_slim_holds_all_that_the_package_needs_and_nothing_else():
    """From the metadata of what is installed: the package without its extra for the measuring client."""
    from importlib import metadata

    needed: dict[str, set[str]] = {}
    left = [("eagle-bench", "")]
    while left:
        name, extra = left.pop()
        if extra in needed.setdefault(name, set()):
            continue
        needed[name].add(extra)
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(requirement.name), one) for one in ("", *requirement.extras)]
    assert set(pins("slim-requirements.txt")) == needed.keys() - {"eagle-bench"}


def test_versions_that_stand_twice_are_the_same():
    pyproject = (REPO / "pyproject.toml").read_text()
    (vllm,) = re.findall(r'"vllm==([\d.]+)"', pyproject)
    assert f"ARG VLLM_VERSION={vllm}\n" in (BENCH / "Dockerfile").read_text()
    torch = pins("torch-requirements.txt")["torch"].removesuffix("+cpu")
    assert f'VERSION = "{torch}"' in (REPO / "src/eagle_bench/builtin/installing.py").read_text()
    times = {*re.findall(r"SOURCE_DATE_EPOCH=(\d+)", (BENCH / "Dockerfile").read_text() + CONFIG.read_text())}
    assert len(times) == 1
