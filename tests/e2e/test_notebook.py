"""The tutorial notebook, executed as it stands from the first cell to the last: Local Vertex, and an engine that is quick."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from eagle_bench import config_file
from eagle_bench.builtin.engine import MODEL_ID
from leftover_processes import nothing_left

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "eagle_on_vertex_ai.ipynb"
TINY_ENGINE = ROOT / "tests" / "contract" / "tiny_engine.py"


def texts(cell) -> str:
    """All that a cell shows, without the colours of a terminal."""
    shown = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        shown += [
            output.get("text", ""),
            data.get("text/plain", ""),
            data.get("text/markdown", ""),
            data.get("text/html", ""),
        ]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(shown))


def test_the_stored_notebook_is_valid_and_clean():
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


def on_vertex_ai(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The cells up to the config, as for the real service."""
    last = next(index for index, cell in enumerate(notebook.cells) if cell["id"] == "config")
    notebook.cells = notebook.cells[: last + 1]
    (switch,) = [cell for cell in notebook.cells if "ON_VERTEX_AI = False" in cell["source"]]
    switch["source"] = switch["source"].replace("ON_VERTEX_AI = False", "ON_VERTEX_AI = True")
    return notebook


def test_for_vertex_ai_it_signs_in_as_colab_does_and_writes_a_config(tmp_path, monkeypatch):
    colab = tmp_path / "stub" / "google" / "colab"
    colab.mkdir(parents=True)
    (colab / "auth.py").write_text("def authenticate_user():\n    open('signed-in', 'w').close()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stub"), prepend=os.pathsep)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    NotebookClient(
        on_vertex_ai(nbformat.read(NOTEBOOK, 4)),
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()

    assert (tmp_path / "signed-in").exists()
    config = config_file.load(tmp_path / "bench.yaml", needs=("pipeline_root",))
    assert config.service_account == "eagle-bench-run@my-project.iam.gserviceaccount.com"
    assert config.hf_token_secret == "projects/my-project/secrets/hf-token/versions/latest"
    assert config.serving.args[0] == f"--model={config.model}"
    assert "gs://" not in " ".join((*config.serving.args, *config.variants[1].args))  # a bucket may be unreadable


def test_where_nobody_is_signed_in_it_ends_and_asks_nothing(tmp_path, monkeypatch):
    """A cell that waits for an answer would hang: a notebook's `!` has no terminal."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    client = NotebookClient(on_vertex_ai(nbformat.read(NOTEBOOK, 4)), kernel_name="python3", timeout=120)
    with pytest.raises(CellExecutionError, match="DefaultCredentialsError"):
        client.execute(cwd=str(tmp_path))


def test_it_runs_from_the_first_cell_to_the_last(tmp_path, tokenizer_folder, monkeypatch):
    command = [sys.executable, str(TINY_ENGINE), "{host}", "{port}", "--words=20", "--pause=0.002"]
    engines = tmp_path / "engines.yaml"
    known = {
        "engines": {"*vllm*": {"command": command}},
        "models": {MODEL_ID: str(tokenizer_folder)},
        "stop_grace_s": 1.0,
    }
    engines.write_text(yaml.safe_dump(known))
    monkeypatch.setenv("EAGLE_BENCH_ENGINES", str(engines))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "200")

    notebook = nbformat.read(NOTEBOOK, 4)
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    said = {cell["id"]: texts(cell) for cell in notebook.cells if cell["cell_type"] == "code"}
    answer = json.loads((tmp_path / "results" / "comparison.json").read_text())
    assert answer["levels"] == [1, 2]
    assert MODEL_ID in said["config"]
    assert "compare: done" in said["submit"]
    assert "report.html" in said["fetch"]
    for decision in answer["decisions"]:
        assert decision["text"] in said["verdict"]
    for level in answer["comparisons"]:
        assert level["verdict"] in said["verdict"]
    assert "<iframe" in said["report"]
    assert re.search(r"nothing of eagle-benchmark-\S+ is left in", said["cleanup"])
    assert nothing_left(str(tmp_path))
