"""The checks of `plan` on images and templates, through the clients that `submit` uses, against a registry on loopback."""

from __future__ import annotations

import urllib.request

import pytest
import yaml

from eagle_bench import config_file
from eagle_bench.adapters.artifact_registry import upload_template
from eagle_bench.adapters.pipeline_template import compile_template
from eagle_bench.planning.image_checks import image_checks
from servers.artifact_registry import serving_artifact_registry

TEMPLATES = "https://europe-west4-kfp.pkg.dev/local-project/templates"
IMAGES = "europe-west4-docker.pkg.dev/local-project/images"


@pytest.fixture
def registry(server, tmp_path, monkeypatch):
    monkeypatch.delenv("EAGLE_BENCH_VERTEX_API")  # images are looked for where jobs run elsewhere
    monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps the proxy of its first request
    repositories = ("europe-west4/local-project/templates", "europe-west4/local-project/images")
    with serving_artifact_registry(tmp_path / "registry", *repositories) as registry:
        for name, value in registry.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("bench", "slim", "serving"):
            registry.push(f"local-project/images/{name}", "1")
        yield registry


def checked(*, serving=f"{IMAGES}/serving:1", template=None, images=()):
    given = config_file.validate(
        {
            "project": "local-project",
            "location": "europe-west4",
            "model": "owner/name",
            "tokenizer": "owner/name",
            "serving": {"image": serving},
            "variants": [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}],
        }
    )
    return {one.name: one for one in image_checks(given, template=template, images=images)}


def statuses(found):
    return {name: check.status for name, check in found.items()}


def test_images_and_templates_are_looked_for(registry, tmp_path):
    both = {"bench": f"{IMAGES}/bench:1", "slim": f"{IMAGES}/slim:1"}
    found = checked(images=[f"{name}={address}" for name, address in both.items()])
    assert set(statuses(found).values()) == {"ok"}, found
    assert f"{IMAGES}/bench:1, {IMAGES}/slim:1 are there" in found["component-images"].text

    path = tmp_path / "template.yaml"
    compile_template(path, images=both)
    address = upload_template(path, TEMPLATES, ["v1"])
    for template in (str(path), address, f"{address.rpartition('/')[0]}/v1"):
        assert set(statuses(checked(template=template)).values()) == {"ok"}, template

    old = yaml.safe_load(path.read_text())
    old["deploymentSpec"]["executors"]["exec-compare"]["container"]["command"][-1] = "an older program"
    old["deploymentSpec"]["executors"]["exec-compare"]["container"]["image"] = f"{IMAGES}/bench:none"
    path.write_text(yaml.safe_dump(old))
    found = checked(template=str(path), serving=f"{IMAGES}/none:1")
    assert set(statuses(found).values()) == {"refused"}
    assert "is of another version" in found["template"].text and "compare's program" in found["template"].text
    assert "none" in found["component-images"].text and "none" in found["serving-image"].text


def test_what_is_not_there_and_what_can_not_be_looked_at(registry, tmp_path):
    found = checked(serving="europe-west4-docker.pkg.dev/local-project/nowhere/serving:1", template=f"{TEMPLATES}/a/b")
    assert statuses(found) == {"serving-image": "refused", "template": "refused", "component-images": "not checked"}
    assert "repository nowhere" in found["serving-image"].text
    registry.denied.add("europe-west4/local-project/images")
    found = checked(images=[f"{IMAGES}/bench:1"])
    assert statuses(found) == {"serving-image": "not checked", "component-images": "not checked", "template": "ok"}
    assert "roles/artifactregistry.reader" in (found["serving-image"].hint or "")
    found = checked(serving="registry.example.com/serving:1")
    assert found["serving-image"].status == "not checked" and "not Artifact Registry" in found["serving-image"].text
    assert found["component-images"].status == "not checked" and "--image" in (found["component-images"].hint or "")
    found = checked(serving=None)["serving-image"]
    assert found.status == "refused" and "`variants[1].args` is given without `serving.image`" in found.text
    unpublished = tmp_path / "template.yaml"
    compile_template(unpublished)
    assert checked(template=str(unpublished))["component-images"].status == "refused"
    assert checked(template=str(tmp_path / "none.yaml"))["template"].status == "refused"
    found = checked(images=["other=x"])["component-images"]
    assert found.status == "refused" and "no image is called 'other'" in found.text
