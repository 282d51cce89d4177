"""The builds that pages show for Cloud Build: the API takes them, and the gates of docs/gates.md stop what they should."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.devtools.cloudbuild_v1.types import Build
from google.protobuf import json_format

from simulated_cells import BASELINE, EAGLE, Engine, cell

DOCS = Path(__file__).parents[2] / "docs"
KEPT = "gs://my-project-eagle-bench/gate/comparison.json"
# `submit` and `fetch` need Vertex AI: these stand for them, with results of the test; any other command is the real one.
COMMAND = """#!/bin/sh
case $1 in
  submit) echo '{"job": "projects/p/locations/l/pipelineJobs/r"}' ;;
  fetch) [ "$2 $3" = "projects/p/locations/l/pipelineJobs/r --out" ] && mkdir "$4" && cp -R "$MEASURED" "$4/results" ;;
  *) exec "$PYTHON" -m eagle_bench "$@" ;;
esac
"""
GCLOUD = """#!/bin/sh
[ "$1 $2" = "storage cp" ] && cp "$(echo "$3" | sed "s|^gs://|$BUCKETS/|")" "$(echo "$4" | sed "s|^gs://|$BUCKETS/|")"
"""


def builds(page: str) -> list[dict[str, Any]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    return [data for data in found if "steps" in data]


@pytest.mark.parametrize("page", ["cost.md", "gates.md"])
def test_the_api_takes_the_build(page):
    (build,) = builds(page)
    json_format.ParseDict(build, Build.pb()(), ignore_unknown_fields=False)
    for step in build["steps"]:
        assert ("script" in step) != ("args" in step)  # each excludes the other


def measured(folder: Path, eagle: Engine) -> Path:
    folder.mkdir()
    for name, engine in (("baseline", BASELINE), ("eagle3", eagle)):
        (folder / f"{name}.json").write_text(json.dumps(cell(name, 8, engine, prompts=200)))
    return folder


def run(folder: Path, results: Path, reference: dict[str, Any] | None = None) -> tuple[str, int, str]:
    """The last step that ran, its status and its words; each step is a process in one folder, as in a build."""
    (folder / "bin").mkdir(parents=True)
    for name, script in (("eagle-bench", COMMAND), ("gcloud", GCLOUD), ("python", 'exec "$PYTHON" "$@"')):
        (folder / "bin" / name).write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    kept = folder / "buckets" / KEPT.removeprefix("gs://")
    kept.parent.mkdir(parents=True)
    if reference is not None:
        kept.write_text(json.dumps(reference))
    own = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHON": sys.executable}
    environment = {**os.environ, **own, "MEASURED": str(results), "BUCKETS": str(folder / "buckets")}
    workspace = folder / "workspace"
    workspace.mkdir()
    for step in builds("gates.md")[0]["steps"]:
        words = [*([step["entrypoint"]] if "entrypoint" in step else []), *step.get("args", [])]
        if "script" in step:
            script = folder / f"script-{step['id']}"
            script.write_text(step["script"])
            script.chmod(0o755)
            words = [str(script)]
        done = subprocess.run(words, cwd=workspace, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            break
    return step["id"], done.returncode, done.stdout + done.stderr


def kept_in(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "buckets" / KEPT.removeprefix("gs://")).read_text())


def test_the_gates_pass_what_is_good_keep_it_and_stop_what_is_worse(tmp_path):
    good = measured(tmp_path / "good", EAGLE)
    assert run(tmp_path / "none", good)[:2] == ("last-good", 1)  # nothing to hold it against, and nothing was paid for
    subprocess.run(
        [sys.executable, "-m", "eagle_bench", "compare", good, "--baseline", "baseline", "--out", tmp_path / "first"],
        check=True,
    )
    first = json.loads((tmp_path / "first" / "comparison.json").read_text())
    step, status, said = run(tmp_path / "same", good, {**first, "of_last_week": True})
    assert (step, status) == ("keep", 0), said
    assert "of_last_week" not in kept_in(tmp_path / "same")

    worse = measured(tmp_path / "worse", replace(EAGLE, step_ms=1.2 * EAGLE.step_ms))
    step, status, said = run(tmp_path / "later", worse, first)
    assert (step, status) == ("regression", 3), said
    assert kept_in(tmp_path / "later") == first


def test_the_decision_stops_what_is_not_faster(tmp_path):
    """No worse than before, and not faster than the baseline."""
    slow = measured(tmp_path / "slow", BASELINE)
    command = ["compare", slow, "--baseline", "baseline", "--out", tmp_path / "first"]
    subprocess.run([sys.executable, "-m", "eagle_bench", *command], check=False)
    first = json.loads((tmp_path / "first" / "comparison.json").read_text())
    step, status, said = run(tmp_path / "build", slow, first)
    assert (step, status) == ("decision", 1), said
    assert first["decisions"][0]["text"] in said
