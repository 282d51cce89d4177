"""The published template, run in the images that it names: a run that succeeds, and a container that fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from container.conftest import CONFIG, TEMPLATES, Built
from eagle_bench.adapters import running_jobs


@pytest.fixture(autouse=True)
def environment(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**built.vertex.environment, **built.registry.environment}.items():
        monkeypatch.setenv(name, value)


def names_of(state: running_jobs.JobState) -> dict[str, str]:
    return {task.name: task.state for task in state.tasks}


def left(job_id: str) -> str:
    words = ["docker", "ps", "--all", "--quiet", f"--filter=label=eagle-bench-job={job_id}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_the_run_that_the_build_began_succeeds_in_its_images(built: Built):
    (name,) = re.findall(r"submitted (\S+)", built.run.outputs["smoke-run"])
    *_, state = running_jobs.watch(name, poll_s=0.5)
    job_id = name.rsplit("/", 1)[-1]
    folder = built.vertex.job_folder(job_id)
    logs = "\n".join(f"{path.name}\n{path.read_text()}" for path in sorted(folder.glob("*.log")))
    assert state.state == "SUCCEEDED", f"{state.error}\n{logs}"
    assert set(names_of(state).values()) == {"SUCCEEDED"}
    # Its images are those of the template, by digest.
    spec = json.loads((folder / "job.json").read_text())["pipeline_spec"]
    images = {executor["container"]["image"] for executor in spec["deploymentSpec"]["executors"].values()}
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", image) for image in images)

    artifacts = built.vertex.artifacts_folder(CONFIG["pipeline_root"], job_id)
    (answer,) = artifacts.glob("**/compare/comparison")
    comparison = json.loads(answer.read_text())
    assert [cell["counts"]["completed"] for cell in comparison["cells"]] == [50, 50]
    # Row 21: whatever the tasks reported is JSON for everybody.
    for output in artifacts.glob("**/executor_output.json"):
        json.loads(output.read_text(), parse_constant=pytest.fail)
    assert left(job_id) == ""


def test_a_container_that_fails_fails_its_task_and_the_run(built: Built, tmp_path):
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump({**CONFIG, "workload": {"dataset": "gs://local-bucket/none.jsonl"}}))
    template = f"{TEMPLATES}/eagle-benchmark/git-0abc123"
    command = [sys.executable, "-m", "eagle_bench", "submit", config, "--template", template, "--skip-checks", "--wait"]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "stage-data: failed" in done.stdout
    assert "teardown-all: done" in done.stdout
    (name,) = re.findall(r"submitted (\S+)", done.stdout)
    job_id = name.rsplit("/", 1)[-1]
    (log,) = built.vertex.job_folder(job_id).glob("*stage-data.log")
    assert "gs://local-bucket/none.jsonl" in log.read_text()
    assert left(job_id) == ""


def test_a_cancelled_run_leaves_no_container(built: Built, tmp_path):
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    template = f"{TEMPLATES}/eagle-benchmark/git-0abc123"
    command = [sys.executable, "-m", "eagle_bench", "submit", config, "--template", template, "--skip-checks"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    (name,) = re.findall(r"submitted (\S+)", done.stdout)
    job_id = name.rsplit("/", 1)[-1]
    for state in running_jobs.watch(name, poll_s=0.2):
        assert not state.ended, state
        if left(job_id):
            break
    running_jobs.cancel(name)
    *_, state = running_jobs.watch(name, poll_s=0.2)
    assert state.state == "CANCELLED"
    assert left(job_id) == ""
