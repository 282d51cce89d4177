"""The core knows no network, no processes, no Google and no kfp: it can be tested and trusted by itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import eagle_bench

ROOT = Path(eagle_bench.__file__).parent
IMPURE = {"adapters", "local_vertex", "commands", "planning", "runs", "tasks", "builtin"}
IMPURE_FILES = {
    "cli.py",
    "notebook.py",
    "progress.py",
    "__init__.py",
    "__main__.py",
}
STAGING = {"slices.py", "cells.py"}  # read files and count with a tokenizer
FORBIDDEN = {
    "asyncio",
    "google",
    "google_cloud_pipeline_components",
    "http",
    "httpx",
    "huggingface_hub",
    "kfp",
    "multiprocessing",
    "requests",
    "socket",
    "starlette",
    "subprocess",
    "torch",
    "transformers",
    "urllib",
    "uvicorn",
    "vllm",
}
CORE = sorted(
    path
    for path in ROOT.rglob("*.py")
    if path.relative_to(ROOT).parts[0] not in IMPURE | IMPURE_FILES
    and path.name not in STAGING
    and "__pycache__" not in path.parts
)


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_the_core_is_found():
    names = {path.name for path in CORE}
    assert {"config.py", "errors.py", "metrics.py", "stats.py", "comparison.py", "units.py"} <= names


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_core_modules_import_nothing_impure(path):
    for name in imported(path):
        parts = name.split(".")
        if parts[:2] == ["urllib", "parse"]:
            continue  # takes addresses apart, opens none
        assert parts[0] not in FORBIDDEN, f"{path.name} imports {name}"
        if parts[0] == "eagle_bench" and len(parts) > 1:
            assert parts[1] not in IMPURE, f"{path.name} imports {name}"


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from eagle_bench import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'kfp', 'google.auth', 'google.api_core', 'vllm', 'torch', 'matplotlib', 'pandas', 'numpy', 'pydantic', 'httpx', 'yaml'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout
    assert "Usage: eagle-bench" in done.stdout
