"""The wheel: what stands in the tree is in it, and it works where nothing of the tree is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"eagle_bench": ROOT / "src/eagle_bench", "eagle_bench/components": ROOT / "components"} | {
    "eagle_bench/pipelines": ROOT / "pipelines"
}
SHIPPED = {".py", ".typed", ".json", ".yaml", ".txt", ".css", ".j2", ".safetensors"}
NOT_SHIPPED = {"engine-requirements.in"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    # A copy: building in the tree would leave files there, and take along what an earlier build left.
    folder, tree = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("tree")
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info", ".mypy_cache")
    for name in ("src", "components", "pipelines"):
        shutil.copytree(ROOT / name, tree / name, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(tree)], check=True)
    (built,) = folder.glob("eagle_bench-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel; its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    site = next((folder / "lib").glob("python3*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    here = next(path for path in sys.path if path.endswith("site-packages"))
    # Behind the wheel's own folder, and without the .pth files that lead into the tree.
    (site / "dependencies.pth").write_text(f"{here}\n")
    return folder / "bin" / "python"


def test_the_wheel_holds_what_the_tree_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        f"{package}/{path.relative_to(folder)}"
        for package, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".mypy_cache" not in path.parts
        if path.suffix in SHIPPED and path.name not in NOT_SHIPPED
    }
    assert packed == expected


def test_the_wheel_works_without_the_tree(installed, tmp_path):
    code = "import eagle_bench, eagle_bench.components, eagle_bench.pipelines; print(eagle_bench.__file__)"
    where = subprocess.run([str(installed), "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert str(ROOT) not in where.stdout
    template = tmp_path / "template.yaml"
    subprocess.run([str(installed), "-m", "eagle_bench", "compile", "-o", str(template)], check=True, cwd=tmp_path)
    assert "pipelineInfo" in template.read_text()


def test_version_is_said(installed, tmp_path):
    said = subprocess.run(
        [str(installed), "-m", "eagle_bench", "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert said.stdout.startswith("eagle-bench, version ")


LIGHT = """
import os, sys

for absent in ("vllm", "torch", "transformers", "uvloop"):
    sys.modules[absent] = None
del os.sched_getaffinity  # macOS has none
from eagle_bench import cli

cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize("line", ["plan {} --json", "submit {} --dry-run", "fetch --help", "cleanup --help"])
def test_what_submits_needs_neither_vllm_nor_linux(installed, tmp_path, line):
    """docs/vertex-ai.md: the package alone, without `[client]`."""
    surroundings = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json"),
    }
    words = line.format(ROOT / "examples" / "llama4-scout.yaml").split()
    done = subprocess.run(
        [str(installed), "-c", LIGHT, *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=surroundings,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
