"""A running Local Vertex for contract tests, with a tiny engine behind the image `tiny`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.local_vertex.settings import Engine, Settings
from leftover_processes import processes_with
from servers.hub import Hub, serving_hub

TINY_ENGINE = Path(__file__).parent / "tiny_engine.py"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tiny = Engine(command=(sys.executable, str(TINY_ENGINE), "{host}", "{port}"))
    return Settings(state_dir=tmp_path / "local-vertex", engines={"tiny": tiny}, stop_grace_s=1.0, turn_linger_s=0.2)


@pytest.fixture
def start(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LocalVertex]]:
    """Start a server with changed settings; the process's environment then points at it."""
    running: list[LocalVertex] = []

    def start(**changes: object) -> LocalVertex:
        server = LocalVertex(settings.model_copy(update=changes))
        server.start()
        running.append(server)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def server(start: Callable[..., LocalVertex]) -> LocalVertex:
    return start()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without repositories that `huggingface_hub` asks, with a cache of its own and no token of the user's."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with serving_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def order(server: LocalVertex) -> Callable[..., None]:
    """Order a fault of the running server."""

    def order(kind: str, **details: object) -> None:
        answer = httpx.post(f"{server.url}/local/faults", json={"kind": kind, **details}, headers=bearer())
        answer.raise_for_status()

    return order


def bearer() -> dict[str, str]:
    """An authorization header with a token as google.auth gets it."""
    import google.auth
    from google.auth.transport.requests import Request

    found, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    found.refresh(Request())
    return {"Authorization": f"Bearer {found.token}"}


@pytest.fixture(name="bearer")
def bearer_fixture(server: LocalVertex) -> Callable[[], dict[str, str]]:
    return bearer


@pytest.fixture(name="processes_with")
def processes_with_fixture() -> Callable[[str], list[int]]:
    """Processes (no zombies) that have a text in their command line."""
    return processes_with


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Wait until something holds; the bound is far above what it takes, only a failure meets it."""

    def until(holds: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, "it never came to hold"
            time.sleep(0.05)

    return until
