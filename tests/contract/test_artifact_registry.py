"""Templates and images in Artifact Registry, through the clients that users have, against a server of its protocols."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eagle_bench import __version__
from eagle_bench.adapters.artifact_registry import check_images, pinned_template, upload_template
from eagle_bench.adapters.pipeline_template import compile_template, sha256_of
from eagle_bench.errors import EagleBenchError, InputError
from servers import artifact_registry
from servers.artifact_registry import serving_artifact_registry

REPO = Path(__file__).parents[2]
TEMPLATES = "https://europe-west4-kfp.pkg.dev/local-project/templates"
IMAGE = "europe-west4-docker.pkg.dev/local-project/images"


@pytest.fixture
def registry(server, tmp_path, monkeypatch):
    repositories = ("europe-west4/local-project/templates", "europe-west4/local-project/images")
    with serving_artifact_registry(tmp_path / "registry", *repositories) as registry:
        for name, value in registry.environment.items():
            monkeypatch.setenv(name, value)
        yield registry


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "eagle-benchmark.yaml"
    compile_template(path)
    return path


def eagle_bench(*arguments, **environment):
    command = [sys.executable, "-m", "eagle_bench", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_a_template_is_uploaded_and_submitted_by_its_tag(registry, server, tmp_path):
    digests = {name: registry.push(f"local-project/images/{name}", "1") for name in ("bench", "slim")}
    images = {name: f"{IMAGE}/{name}@{digest}" for name, digest in digests.items()}
    given = [part for name, address in images.items() for part in ("--image", f"{name}={address}")]
    path = tmp_path / "eagle-benchmark.yaml"
    uploaded = eagle_bench(*("compile", "-o", path, *given, "--upload", TEMPLATES, "--tag", "git-abc1234"))
    assert uploaded.returncode == 0, uploaded.stderr
    version = f"{TEMPLATES}/eagle-benchmark/sha256:{sha256_of(path)}"
    assert version in uploaded.stdout
    assert {tag for _, _, tag in registry.tags} == {f"v{__version__.replace('.', '-')}", "git-abc1234"}
    named = {
        executor["container"]["image"]
        for executor in yaml.safe_load(path.read_text())["deploymentSpec"]["executors"].values()
    }
    assert named == set(images.values())

    # What the tag leads to is what the job names; the components run on this machine here, so it can also end.
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    tagged = f"{TEMPLATES}/eagle-benchmark/git-abc1234"
    shown = eagle_bench("submit", config, "--template", tagged, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    request = json.loads(shown.stdout)["pipelineJob"]
    assert request["templateUri"] == version
    assert request["runtimeConfig"]["parameterValues"]["environment"]["pipeline template"] == version
    done = eagle_bench("submit", config, "--template", tagged, "--skip-checks")
    assert done.returncode == 0, done.stderr
    assert "submitted projects/local-project/locations/us-central1/pipelineJobs/" in done.stdout
    # Every request carried a token of the account, and none of them shows anywhere.
    assert registry.tokens
    for said in (uploaded, shown, done):
        assert not any(token in said.stdout + said.stderr for token in registry.tokens)


CONFIG = {
    "project": "local-project",
    "location": "us-central1",
    "pipeline_root": "gs://local-bucket/eagle-bench",
    "variants": [
        {"id": "baseline", "url": "http://127.0.0.1:9/v1", "served_model": "m"},
        {"id": "eagle3", "url": "http://127.0.0.1:9/eagle3/v1", "served_model": "m"},
    ],
    "workload": {"dataset": "gs://local-bucket/no-such-file.jsonl"},
    "concurrency": [1],
}


def said(call):
    with pytest.raises(EagleBenchError) as caught:
        call()
    return str(caught.value)


def test_a_missing_repository_role_or_region_is_named(registry, template):
    missing = said(lambda: upload_template(template, TEMPLATES.replace("/templates", "/elsewhere"), []))
    assert "the repository elsewhere in region europe-west4 of project local-project is not there" in missing
    assert "gcloud artifacts repositories create elsewhere --repository-format=kfp --location=europe-west4" in missing

    region = said(lambda: pinned_template(f"{TEMPLATES.replace('europe-west4', 'us-east1')}/eagle-benchmark/v1"))
    assert "region us-east1" in region
    assert "Check the region" in region

    registry.denied.add("europe-west4/local-project/templates")
    for call, role in (
        (lambda: upload_template(template, TEMPLATES, []), "roles/artifactregistry.writer"),
        (lambda: pinned_template(f"{TEMPLATES}/eagle-benchmark/v1"), "roles/artifactregistry.reader"),
    ):
        refused = said(call)
        assert role in refused
        assert "on templates" in refused
        assert "denied on resource" in refused


def test_what_a_build_may_put_where_is_asked_before_it_makes_anything(registry):
    script = [sys.executable, str(REPO / "containers" / "check_repositories.py")]

    def check(*addresses):
        return subprocess.run([*script, *addresses], capture_output=True, text=True, check=False)

    good = check(IMAGE, TEMPLATES, "127.0.0.1:5000/local-project/images")
    assert good.returncode == 0, good.stderr
    assert good.stdout.splitlines() == [
        "the repository images in region europe-west4 of project local-project: this account may write there",
        "the repository templates in region europe-west4 of project local-project: this account may write there",
        "127.0.0.1:5000/local-project/images: not checked, not in Artifact Registry",
    ]
    registry.denied.add("europe-west4/local-project/templates")
    wrong = check(IMAGE.replace("europe-west4", "us-east1"), TEMPLATES)
    assert wrong.returncode == 2
    region, role = wrong.stderr.splitlines()
    assert "the repository images in region us-east1 of project local-project is not there" in region
    assert "gcloud artifacts repositories create images --repository-format=docker --location=us-east1" in region
    assert "lacks artifactregistry.repositories.uploadArtifacts" in role
    assert "Grant it roles/artifactregistry.writer on templates" in role
    # Nothing was put anywhere, and no token was shown.
    assert not registry.manifests
    assert not registry.templates
    assert not any(token in good.stdout + wrong.stderr for token in registry.tokens)


def test_a_tag_that_is_not_there_is_named(registry):
    words = said(lambda: pinned_template(f"{TEMPLATES}/eagle-benchmark/v9"))
    assert 'Tag "v9" was not found' in words
    assert "Check its name and tag" in words


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"<html>sign in</html>", "did not"),
        (200, b"", "did not"),
        (200, b"[]", "did not"),
        (403, b'{"errors": ["no"]}', "roles/artifactregistry"),
    ],
)
def test_what_a_proxy_answers_is_taken_for_no_success(registry, template, monkeypatch, status, body, words):
    def answer(self):
        for _ in self.body():
            pass
        self.answer(status, body)

    monkeypatch.setattr(artifact_registry._Answers, "do_GET", answer)
    monkeypatch.setattr(artifact_registry._Answers, "do_POST", answer)
    assert words in said(lambda: upload_template(template, TEMPLATES, []))
    assert words in said(lambda: pinned_template(f"{TEMPLATES}/eagle-benchmark/v1"))


def test_images_are_looked_for(registry):
    digest = registry.push("local-project/images/bench", "1")
    assert check_images([f"{IMAGE}/bench:1", f"{IMAGE}/bench@{digest}", "docker.io/any/image:2"]) == (
        "docker.io/any/image:2",
    )
    assert "the image is not there" in said(lambda: check_images([f"{IMAGE}/bench:2"]))
    assert "PROJECT/REPOSITORY/IMAGE" in said(lambda: check_images([f"{IMAGE}:1"]))  # the repository's own address
    missing = said(lambda: check_images([f"{IMAGE.replace('/images', '/none')}/bench:1"]))
    assert "the repository none in region europe-west4 of project local-project is not there" in missing
    assert "--repository-format=docker" in missing
    assert "region us-east1" in said(lambda: check_images([f"{IMAGE.replace('europe-west4', 'us-east1')}/bench:1"]))
    registry.denied.add("europe-west4/local-project/images")
    assert "roles/artifactregistry.reader" in said(lambda: check_images([f"{IMAGE}/bench:1"]))


def test_an_image_in_no_registry_is_told_before_anything_is_made(registry, tmp_path, monkeypatch):
    """Row 26: the image was not built before submit."""
    with pytest.raises(InputError, match=r"eagle-bench/slim:1, which is in no registry\..*--image slim="):
        check_images(["eagle-bench/slim:1"])
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump({**CONFIG, "workload": {"prompts_per_level": 50}}))
    # As on Vertex AI: nothing says that jobs run on this machine.
    monkeypatch.delenv("EAGLE_BENCH_VERTEX_API")
    refused = eagle_bench("submit", config)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "which is in no registry" in refused.stderr
    gone = eagle_bench("submit", config, "--image", f"{IMAGE}/bench:nightly")
    assert gone.returncode == 1
    assert f"can't find the image {IMAGE}/bench:nightly: the image is not there" in gone.stderr
    assert not any("pipelineJobs" in path for _, _, path in registry.requests)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--upload", "https://example.com/x"], "no address in Artifact Registry"),
        (["--upload", TEMPLATES, "--tag", "sha256:1"], "--tag"),
        (["--upload", f"{TEMPLATES}/eagle-benchmark/v1"], f"Give {TEMPLATES}, and its tag with --tag"),
        (["--tag", "v1"], "add --upload"),
        (["--image", "bench=a", "--image", "bench=b"], "given twice"),
        (["--image", "bench=a"], "address of slim is missing"),
        (["--image", "other=a"], "no image is called 'other'"),
    ],
)
def test_wrong_options_of_compile_are_refused(server, tmp_path, arguments, words):
    done = eagle_bench("compile", "-o", tmp_path / "t.yaml", *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert not (tmp_path / "t.yaml").exists()


def test_a_region_that_is_none_is_told(server, tmp_path):
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump({**CONFIG, "location": "us-centrall"}))
    done = eagle_bench("submit", config, "--skip-checks")
    assert done.returncode == 2, done.stderr
    assert "`location`: 'us-centrall' can't be used" in done.stderr


def test_a_role_that_vertex_ai_misses_is_named(server, order, tmp_path):
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    words = (
        "Permission 'iam.serviceAccounts.actAs' denied on service account bench@local-project.iam.gserviceaccount.com"
    )
    order("api-status", status=403, message=words, match="/pipelineJobs")
    done = eagle_bench("submit", config, "--skip-checks")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "iam.serviceAccounts.actAs" in done.stderr
    assert "roles/iam.serviceAccountUser" in done.stderr
