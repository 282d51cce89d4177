"""The worked examples of CONTRIBUTING.md: each is applied to a copy of the source, and what it claims is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eagle_bench.local_vertex.settings import Settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^### (Add .*?)$(.*?)(?=^###? |\Z)", TEXT, re.MULTILINE | re.DOTALL)


def block(text: str, language: str) -> str | None:
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else None


@pytest.mark.parametrize(
    ("name", "text"), [pair for pair in EXAMPLES if block(pair[1], "diff")], ids=lambda part: part[:20]
)
def test_an_example_can_be_followed(name, text, tmp_path):
    shutil.copytree(
        ROOT / "src/eagle_bench", tmp_path / "src/eagle_bench", ignore=shutil.ignore_patterns("eagle3", "__pycache__")
    )
    change = tmp_path / "change.diff"
    change.write_text(block(text, "diff"))
    applied = subprocess.run(
        ["git", "apply", "-C1", str(change)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, f"{name}: the source has moved on; write the example anew\n{applied.stderr}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "src"), str(ROOT / "tests")])}
    code = f"import eagle_bench; assert eagle_bench.__file__.startswith({str(tmp_path)!r})\n{block(text, 'python')}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_there_is_an_example_of_each_kind():
    assert [name for name, _ in EXAMPLES] == [
        "Add a metric",
        "Add a check",
        "Add a data set",
        "Add a kind of variant",
        "Add a serving engine",
    ]


def test_the_file_of_engines_is_taken(tmp_path):
    given = yaml.safe_load(block(dict(EXAMPLES)["Add a serving engine"], "yaml"))
    settings = Settings.model_validate({"state_dir": tmp_path, **given})
    engine = settings.engine_for("us-docker.pkg.dev/x/sglang-serve:1")
    argv = engine.argv(model="/m", served_model="s", host="h", port=1, args=("--model=gs://x", "--tp=8"))
    assert argv[-2:] == ("1", "--tp=8")


def test_links_and_folders_of_the_map_are_there():
    for link in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / link).exists(), link
    for name in re.findall(r"^  (\w+)/ ", TEXT, re.MULTILINE):
        assert (ROOT / "src/eagle_bench" / name).is_dir(), name
