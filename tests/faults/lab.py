"""Runs trials on a Local Vertex of its own: the compiled pipeline, a quick engine, and a hand in the works."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from eagle_bench import cli, config_file
from eagle_bench.adapters import pipeline_jobs, submissions, vertex
from eagle_bench.adapters.pipeline_template import compile_template
from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.local_vertex.settings import Engine, Settings
from eagle_bench.runs.gathering import gather
from faults.secret_search import HUB_TOKEN_OF_SECRET, HUB_TOKEN_OF_USER, SecretSearch
from faults.trial import Order, Row, Trial
from faults.watch import Watch

TINY_ENGINE = Path(__file__).parents[1] / "contract" / "tiny_engine.py"
PLACE = vertex.Place("local-project", "us-central1")
ROOT = "gs://local-bucket/eagle-bench"
SECRET = "projects/local-project/secrets/hf/versions/latest"


@dataclass
class Findings:
    """What a trial came to. `left` were there when the run had ended, `leaks` are secrets where none may be."""

    state: str
    said: str
    cells: dict[str, str]
    finished: list[str]
    left: list[str]
    left_in_the_end: list[str]
    leaks: list[str]
    not_acted: list[str]
    wall_s: float


class Lab:
    """A Local Vertex, a compiled template, and all that a trial needs."""

    def __init__(self, folder: Path, tokenizer: Path) -> None:
        self._folder, self._tokenizer = folder, tokenizer
        folder.mkdir(parents=True)
        secret = folder / "hub-token"
        secret.write_text(HUB_TOKEN_OF_SECRET)
        os.environ["HF_TOKEN"] = HUB_TOKEN_OF_USER
        settings = Settings(
            state_dir=folder / "local-vertex",
            port=_free_port(),  # the same after a restart
            slots=2,
            turn_linger_s=0.05,
            stop_grace_s=10.0,
            engines={
                "tiny": Engine(
                    command=(sys.executable, str(TINY_ENGINE), "{host}", "{port}", "--words=3", "--pause=0.01")
                )
            },
            secrets={SECRET: secret},
            task_secrets={"HF_TOKEN": ("stage-data",)},
        )
        self.server = LocalVertex(settings)
        self.server.start()
        os.environ.update(self.server.environment)
        self._search = SecretSearch(self.server.key_file, frozenset({secret}))
        self._template = folder / "pipeline.yaml"
        compile_template(self._template)
        self._token = ""

    def close(self) -> None:
        self.server.stop()

    def run(self, trial: Trial) -> Findings:
        """Run it to its end, clean up after it, and look at everything that it left."""
        began_s = time.monotonic()
        for order in self._orders(trial):
            self._post("/local/faults", order)
        config = config_file.validate(self._config(trial))
        job = pipeline_jobs.prepare(config, self._template, trial.id, {"machine": "a laboratory"})
        parameters = pipeline_jobs.parameters_of(job)
        watch = Watch(self, trial, self._search)
        state = watch.follow(submissions.submit(job))
        left = [made.resource for made in vertex.leftovers(PLACE, trial.id)]
        self._request("DELETE", "/local/faults")
        cleaning = _cleanup(trial.id)
        for path in self.server.artifacts_folder(ROOT, trial.id).rglob("*"):
            if path.is_symlink():  # a disk that was full: who reads it finds no end
                path.unlink()
        out = self._folder / "out" / trial.id
        gathered = gather(self.server.artifacts_folder(ROOT, trial.id), trial.id, parameters, out)
        said = "\n".join([*watch.lines, state.error or "", *(task.error or "" for task in state.tasks), cleaning])
        answer = gathered.answer
        if answer is not None:
            said += "\n" + (out / "summary.md").read_text()
            said += "".join(f"\n{cell.variant}: {cell.failure.message}" for cell in answer.cells if cell.failure)
            said += "".join(f"\n{warning.variant}: {warning.text}" for warning in answer.warnings)
            said += "".join(f"\n{group.variant}: {group.kind} {group.status} {group.body}" for group in answer.failures)
        leaks = {*watch.leaks, *self._search.in_files(self._folder), *self._search.in_text(said.encode())}
        return Findings(
            state=state.state,
            said=said,
            cells=_cells(out),
            finished=watch.finished,
            left=left,
            left_in_the_end=[made.resource for made in vertex.leftovers(PLACE, trial.id)],
            leaks=sorted(leaks),
            not_acted=[row.id for row in watch.waiting],
            wall_s=round(time.monotonic() - began_s, 1),
        )

    def order(self, trial: Trial, row: Row, orders: tuple[Order, ...]) -> None:
        """Order faults of Local Vertex."""
        for order in orders:
            self._post("/local/faults", _ordered(trial, row, order))

    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    def engine_log(self, run_id: str, variant: str) -> str:
        path = self.server.engine_log(vertex.endpoint_id(run_id, variant))
        return path.read_text(errors="replace") if path.exists() else ""

    def clear_faults(self) -> None:
        self._request("DELETE", "/local/faults")

    def _orders(self, trial: Trial) -> Iterator[dict[str, Any]]:
        for row in trial.rows:
            yield from (_ordered(trial, row, order) for order in row.orders)

    def _config(self, trial: Trial) -> dict[str, Any]:
        return {
            "project": PLACE.project,
            "location": PLACE.location,
            "pipeline_root": ROOT,
            "model": "owner/name",
            "tokenizer": str(self._tokenizer),
            "hf_token_secret": SECRET,
            "serving": {"image": "tiny", "deploy_timeout_s": 8},
            "variants": [{"id": "baseline"}, *({"id": row.id, "args": list(row.args)} for row in trial.rows)],
            "allow_difference": ["pause", "dies-at", "crash", "deaf"],
            "workload": {"prompts_per_level": 50, "max_output_tokens": 8},
            "concurrency": [1],
            "repeats": 1,
            **trial.config,
        }

    def _post(self, path: str, body: dict[str, Any]) -> None:
        self._request("POST", path, json=body)

    def _request(self, method: str, path: str, **content: Any) -> None:
        for token in (self._token, None):
            self._token = token or vertex.TokenSupplier()()
            headers = {"Authorization": f"Bearer {self._token}"}
            answer = httpx.request(method, f"{self.server.url}{path}", headers=headers, **content)
            if answer.status_code != httpx.codes.UNAUTHORIZED:
                break
        answer.raise_for_status()


def _ordered(trial: Trial, row: Row, order: Order) -> dict[str, Any]:
    match = {} if order.anybody else {"match": vertex.endpoint_id(trial.id, row.id)}
    return {"kind": order.kind, **match, **order.details}


def _cells(out: Path) -> dict[str, str]:
    """What there is of each variant's cell."""
    found = {}
    for path in (out / "results").glob("*.json"):
        cell = json.loads(path.read_text())
        whole = cell["counts"]["completed"] == cell["counts"]["requested"] == 50
        found[cell["variant"]] = "whole" if whole else "in part" if cell["counts"]["completed"] else "nothing"
    return found


def _cleanup(run_id: str) -> str:
    """The command, as people give it; what it says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        cli.main(["cleanup", run_id, "--project", PLACE.project, "--location", PLACE.location, "--yes"])
    return said.getvalue()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def as_json(findings: Findings) -> str:
    return json.dumps(asdict(findings), indent=1)
