"""One build with cloudbuild.yaml, and what it takes: Docker, a registry, Local Vertex with tasks in containers."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers

from container import cloud_build
from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.local_vertex.settings import Engine, Settings
from servers.artifact_registry import ArtifactRegistry, serving_artifact_registry

REPO = Path(__file__).parents[2]
TINY_ENGINE = REPO / "tests" / "contract" / "tiny_engine.py"
TEMPLATES = "https://us-central1-kfp.pkg.dev/local-project/eagle-bench-templates"
CONFIG = {
    "project": "local-project",
    "location": "us-central1",
    "pipeline_root": "gs://local-bucket/eagle-bench",
    "model": "some/model",
    "tokenizer": "gs://local-bucket/tokenizer",
    "serving": {"image": "tiny", "invoke_route": True},
    "variants": [{"id": "baseline"}, {"id": "other"}],
    "workload": {"prompts_per_level": 50, "max_output_tokens": 32},
    "concurrency": [1],
}


@dataclass(frozen=True)
class Built:
    """The build, and the services that it met."""

    run: cloud_build.Run
    registry: ArtifactRegistry
    vertex: LocalVertex

    def image(self, name: str) -> str:
        return next(image for image in self.run.images if f"/{name}:" in image)

    @property
    def workspace(self) -> Path:
        return self.run.workspace


@pytest.fixture(scope="session")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVertex]:
    """Local Vertex whose pipelines run their tasks in the images that the template names."""
    tiny = Engine(command=(sys.executable, str(TINY_ENGINE), "{host}", "{port}", "--words=20"))
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("vertex") / "state",
        engines={"tiny": tiny},
        stop_grace_s=2.0,
        docker=("docker",),
    )
    with LocalVertex(settings) as server:
        save_tokenizer(server.bucket_folder("gs://local-bucket/tokenizer"))
        yield server


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtifactRegistry]:
    repository = "us-central1/local-project/eagle-bench-templates"
    with serving_artifact_registry(tmp_path_factory.mktemp("registry"), repository) as registry:
        yield registry


@pytest.fixture(scope="session")
def torch_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index with PyTorch for the CPU: TORCH_INDEX_URL, or the wheel that pip finds on this machine."""
    if given := os.environ.get("TORCH_INDEX_URL"):
        yield given
        return
    folder = tmp_path_factory.mktemp("index") / "torch"
    folder.mkdir()
    wanted = REPO / "containers/bench/torch-requirements.txt"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", folder]
    subprocess.run([*map(str, download), "--requirement", str(wanted)], check=True)
    names = [path.name for path in folder.glob("*.whl")]
    (folder / "index.html").write_text("".join(f'<a href="{name.replace("+", "%2B")}">{name}</a>' for name in names))
    handler = functools.partial(_Silent, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def built(
    registry: ArtifactRegistry, vertex: LocalVertex, torch_index: str, tmp_path_factory: pytest.TempPathFactory
) -> Built:
    """cloudbuild.yaml, all of it: tests, images, pushes to a registry on loopback, a template, a run with it."""
    workspace = source(tmp_path_factory.mktemp("build") / "workspace")
    (workspace / "smoke.yaml").write_text(yaml.safe_dump(CONFIG))
    values = {
        "SHORT_SHA": "0abc123",
        "_REPOSITORY": f"127.0.0.1:{registry.port}/local-project/eagle-bench",
        "_TORCH_INDEX_URL": torch_index,
        "_SMOKE_CONFIG": "smoke.yaml",
        "_BUILD_NETWORK": "host",
        "_RUN_AS": "10001",
    }
    if base := os.environ.get("BASE_IMAGE"):
        values["_BASE_IMAGE"] = base
    run = cloud_build.Run(
        build=cloud_build.load(REPO / "cloudbuild.yaml"),
        workspace=workspace,
        values=values,
        credentials={**vertex.environment, **registry.environment},
        mounts=(vertex.key_file, registry.certificate),
        with_credentials=frozenset({"access", "publish", "smoke-run"}),
    )
    # A service account's key is for its owner; the steps run as another user, like the metadata server's clients.
    vertex.key_file.chmod(0o644)
    well = run.execute()
    keep(run, REPO / "build" / "cloudbuild")
    assert well, run.statuses
    return Built(run, registry, vertex)


def keep(run: cloud_build.Run, folder: Path) -> None:
    """What each step said, and the template that came of it, where a person finds them afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, step in enumerate((step.id for step in run.build.steps if step.id in run.outputs), start=1):
        header = f"exit status {run.statuses[step]} after {run.seconds[step]:.1f} s\n"
        (folder / f"{number:02}-{step}.log").write_text(header + run.outputs[step])
    for template in (run.workspace / "build").glob("*.yaml"):
        shutil.copy(template, folder)


def source(folder: Path) -> Path:
    """What a trigger would lay into the workspace: the files that git knows, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / name, folder / name)
    return folder


def save_tokenizer(folder: Path) -> None:
    """A small real tokenizer: one token a word."""
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}"
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
