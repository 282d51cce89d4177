"""A job's whole life through the commands: submitted, watched, fetched, gone on with; scheduled; interrupted.

Two jobs prove most of it. Their variants are an address that refuses every request, so that no client is loaded; the cells that
the second job takes are planted among the results of the first.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import yaml
from google.cloud import aiplatform, aiplatform_v1

from contract.conftest import TINY_ENGINE, bearer
from eagle_bench.adapters import job_results, running_jobs, vertex
from eagle_bench.adapters.vertex_machines import machine_awaited
from eagle_bench.commands import waiting
from eagle_bench.errors import ServiceError
from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.local_vertex.settings import Engine, Settings
from eagle_bench.workload.prompts import read_staged, sha256_of
from simulated_cells import Engine as Simulated
from simulated_cells import cell

PLACE = vertex.Place("local-project", "us-central1")
GRID = [(variant, level) for variant in ("baseline", "eagle3") for level in (1, 2)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVertex]:
    tiny = Engine(command=(sys.executable, str(TINY_ENGINE), "{host}", "{port}"))
    state = tmp_path_factory.mktemp("local-vertex")
    with (
        LocalVertex(Settings(state_dir=state, engines={"tiny": tiny}, stop_grace_s=1.0)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="module")
def config(server, tmp_path_factory):
    """Write a config with these fields changed."""
    folder = tmp_path_factory.mktemp("config")

    def write(**changes):
        fields = {
            "project": PLACE.project,
            "location": PLACE.location,
            "pipeline_root": "gs://local-bucket/eagle-bench",
            "variants": [{"id": name, "url": f"{server.url}/{name}/v1"} for name in ("baseline", "eagle3")],
            "workload": {"prompts_per_level": 50},
            "concurrency": [1, 2],
            "repeats": 2,
        }
        path = folder / f"bench{len(list(folder.iterdir()))}.yaml"
        path.write_text(yaml.safe_dump({**fields, **changes}))
        return path

    return write


def command(*arguments):
    return [sys.executable, "-m", "eagle_bench", *(str(argument) for argument in arguments)]


def run(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def order(server, kind, **details):
    answer = httpx.post(f"{server.url}/local/faults", json={"kind": kind, **details}, headers=bearer())
    answer.raise_for_status()


def name_in(text):
    (name,) = [line.split()[1] for line in text.splitlines() if line.startswith("submitted ")]
    return name


def job_of(name):
    options = vertex.address(PLACE.location).client_options()
    return aiplatform_v1.PipelineServiceClient(**options).get_pipeline_job(name=name)


@pytest.fixture(scope="module")
def first(server, config):
    """A job that no variant answers in, waited for through two lost answers."""
    order(server, "api-status", match="pipelineJobs/eagle-benchmark", skip=1, times=2, status=503)
    options = ("--experiment", "speed", "--label", "team=serving", "--failure-policy", "fast", "--wait")
    done = run("submit", config(), *options)
    return SimpleNamespace(done=done, name=name_in(done.stdout))


@pytest.fixture(scope="module")
def second(server, config, first):
    """A job that goes on with the first, of which three cells are whole, and that has no time for the fourth."""
    root = server.artifacts_folder("gs://local-bucket/eagle-bench", first.name.rsplit("/", 1)[-1])
    (staged,) = root.glob("**/stage-data/prompts")
    for number, (variant, level) in enumerate(GRID[:3]):
        made = cell(variant, level, Simulated(step_ms=9) if variant == "eagle3" else Simulated(), prompts=60)
        made |= {"run_id": first.name.rsplit("/", 1)[-1]}
        made["prompts"]["sha256"] = sha256_of(read_staged(staged, level)[1])
        path = root / "planted" / str(number) / "benchmark" / "cell"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(made))
    for failures in root.glob("**/smoke-test/checked"):
        failures.write_text("")
    done = run("submit", config(max_hours=1e-9), "--resume", first.name.rsplit("/", 1)[-1], "--wait")
    return SimpleNamespace(done=done, name=name_in(done.stdout))


def test_a_job_is_submitted_and_watched_to_its_end(server, first):
    text = first.done.stdout
    assert "console.cloud.google.com" not in text + first.done.stderr
    folder = server.artifacts_folder("gs://local-bucket/eagle-bench", first.name.rsplit("/", 1)[-1])
    assert f"its results go to {folder}\n" in text
    assert folder.is_dir()
    assert text.count("no answer, trying again") == 2
    assert "stage-data: done after " in text
    for variant in ("baseline", "eagle3"):
        for task in ("deploy-endpoint", "smoke-test", "benchmark", "teardown"):
            assert f"{task} of {variant}: done after " in text
    assert "compare: done after " in text
    assert "conclude: failed after " in text
    assert first.done.returncode == 4, first.done.stderr
    assert f". What there is: eagle-bench fetch {first.name}\n" in first.done.stderr
    assert "the job failed: no usable result: " in first.done.stderr
    assert "Failed to handle the job" not in text + first.done.stderr
    job = job_of(first.name)
    assert job.labels["team"] == "serving"
    assert job.runtime_config.failure_policy.name == "PIPELINE_FAILURE_POLICY_FAIL_FAST"
    context = aiplatform_v1.MetadataServiceClient(**vertex.address(PLACE.location).client_options()).get_context(
        name=job.job_detail.pipeline_run_context.name
    )
    assert [parent.rsplit("/", 1)[-1] for parent in context.parent_contexts] == ["speed"]


def test_the_baseline_of_a_job_has_the_only_machine_first(deploying, server, until):
    """Its deploy hangs, so it never takes the machine that is kept for it; the other is told of whom it waits for."""
    httpx.delete(f"{server.url}/local/faults", headers=bearer()).raise_for_status()
    order(server, "operation-hangs", match="baseline")
    name = name_in(run("submit", deploying, "--skip-checks").stdout)
    run_id = name.rsplit("/", 1)[-1]

    def told():
        return "".join(path.read_text() for path in server.job_folder(run_id).glob("*deploy-endpoint.log"))

    until(lambda: "eagle3: waits for the machine that baseline uses" in told())
    assert machine_awaited(name, "eagle3") == ("baseline",)
    assert machine_awaited(name, "baseline") == ()
    where = ("--project", PLACE.project, "--location", PLACE.location)
    assert run("cleanup", run_id, *where, "--cancel", "--yes").returncode == 0


def test_a_variant_that_does_not_answer_costs_no_level(first):
    """No benchmark but the one that does nothing: one for each variant."""
    tasks = [task.task_name for task in job_of(first.name).job_detail.task_details]
    assert tasks.count("benchmark") == 2


def test_the_logs_of_a_job_are_found(first):
    assert any(Path(str(running_jobs.logs(first.name))).glob("*-smoke-test.log"))


def test_a_failed_job_is_fetched(first, tmp_path):
    done = run("fetch", first.name, "--out", tmp_path / "out")
    assert done.returncode in (0, 4), done.stderr
    assert ": failed\n" in done.stdout
    assert "conclude: failed: " in done.stderr
    for name in ("report.html", "comparison.json", "summary.md", "run.json"):
        assert (tmp_path / "out" / name).is_file()
    answer = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert {cell["failure"]["stage"] for cell in answer["cells"]} == {"smoke_test"}
    assert "answered 405" in (tmp_path / "out" / "report.html").read_text()


def test_a_job_goes_on_with_another_and_measures_only_what_is_missing(first, second, tmp_path):
    assert second.done.returncode == 0, second.done.stderr
    end = second.done.stdout.partition(" the job is done\n")[2]
    (decision,) = job_results.answer_of(second.name).decisions
    assert " ".join(end.split()) == f"{decision.text} report and results: eagle-bench fetch {second.name}"
    run_id = first.name.rsplit("/", 1)[-1]
    assert (
        f"taken from {run_id}: baseline at concurrency 1 and 2, eagle3 at concurrency 1; measured now: "
        "eagle3 at concurrency 2; the new job has the results of both\n"
    ) in second.done.stderr
    done = run("fetch", second.name.rsplit("/", 1)[-1], "--project", PLACE.project, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    cells = {path.name: json.loads(path.read_text()) for path in (tmp_path / "out" / "results").iterdir()}
    assert {name: cell["run_id"] == run_id for name, cell in cells.items()} == {
        "baseline-c1.json": True,
        "baseline-c2.json": True,
        "eagle3-c1.json": True,
        "eagle3-c2.json": False,
    }
    assert cells["eagle3-c2.json"]["failure"]["kind"] == "budget"
    answer = json.loads((tmp_path / "out" / "comparison.json").read_text())
    verdicts = {row["concurrency"]: row["verdict"] for row in answer["comparisons"]}
    assert (verdicts[1] != "invalid", verdicts[2]) == (True, "invalid")
    warnings = [(warning["code"], warning["variant"]) for warning in answer["warnings"]]
    assert ("earlier_run", "baseline") in warnings
    assert ("earlier_run", "eagle3") in warnings
    assert ("budget", None) in warnings
    report = (tmp_path / "out" / "report.html").read_text()
    assert f"those of the earlier run {run_id}" in report
    assert "budget (<code>max_hours</code>) was used up: 1 cell of 4 not measured" in report


@pytest.mark.parametrize(
    ("changes", "resumed", "words"),
    [
        ({"workload": {"prompts_per_level": 50, "seed": 1}}, None, "`workload.seed` was 0 and is 1"),
        ({}, "projects/p/locations/us-central1/pipelineJobs/none", "there is no job none in p, us-central1"),
    ],
)
def test_a_run_that_can_not_be_gone_on_with_is_refused(second, config, changes, resumed, words):
    done = run("submit", config(**changes), "--resume", resumed or second.name)
    assert done.returncode != 0
    assert words in done.stderr
    assert "submitted" not in done.stdout


def test_an_answer_that_can_not_be_read_is_told_and_costs_no_status(second, monkeypatch, capsys):
    def refuse(*_: object) -> None:
        raise ServiceError("Cloud Storage refuses to read it.", kind="permission")

    monkeypatch.setattr(job_results, "download", refuse)
    assert waiting.wait(second.name) == 0
    shown = capsys.readouterr()
    assert "its answer can't be read from here: Cloud Storage refuses to read it." in shown.err
    assert shown.out.endswith(f"report and results: eagle-bench fetch {second.name}\n")


def test_prompts_that_changed_are_noticed_before_anything_is_deployed(second, tmp_path):
    from eagle_bench.errors import InputError
    from eagle_bench.tasks.stage_data import stage_run

    prompts = SimpleNamespace(path=str(tmp_path), metadata={})
    with pytest.raises(InputError, match="at concurrency 2 its prompts are not those"):
        stage_run({"prompts_per_level": 50}, None, None, [1, 2], 2, 0.0, {"prompts": {"2": "0" * 64}}, prompts)


def test_a_schedule_is_made_listed_and_deleted(server, config):
    done = run("submit", config(), "--schedule", "TZ=Europe/Berlin 0 3 * * 1", "--label", "team=serving")
    assert done.returncode == 0, done.stderr
    aiplatform.init(**vertex.sdk_options(PLACE))
    (schedule,) = aiplatform.PipelineJobSchedule.list()
    assert f"scheduled {schedule.resource_name}" in done.stdout
    assert "Local Vertex keeps it, and starts no job by it" in done.stdout
    assert schedule.cron == "TZ=Europe/Berlin 0 3 * * 1"
    assert schedule.max_concurrent_run_count == 1
    found = aiplatform.PipelineJobSchedule.get(schedule.resource_name)
    assert found.state.name == "ACTIVE"
    job = found._gca_resource.create_pipeline_job_request.pipeline_job
    assert job.labels["team"] == "serving"
    assert job.service_account
    found.pause()
    assert aiplatform.PipelineJobSchedule.get(schedule.resource_name).state.name == "PAUSED"
    found.delete()
    assert not aiplatform.PipelineJobSchedule.list()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--schedule", "every monday"], "five fields"),
        (["--schedule", "0 3 * * 1", "--wait"], "leave out --wait"),
        (["--schedule", "0 3 * * 1", "--resume", "x"], "leave out"),
        (["--experiment", "Not A Name"], "--experiment"),
        (["--failure-policy", "never"], "--failure-policy"),
        (["--resume", "a/b"], "JOB"),
    ],
)
def test_wrong_options_are_refused(server, config, arguments, words):
    done = run("submit", config(), "--skip-checks", *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


class Watched:
    """A `submit --wait` at a terminal, or without one."""

    def __init__(self, config, terminal):
        self.terminal, theirs = pty.openpty() if terminal else (None, subprocess.DEVNULL)
        self.process = subprocess.Popen(
            command("submit", config, "--skip-checks", "--wait"),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        if terminal:
            os.close(theirs)
        self.text = ""

    def until(self, words):
        while words not in self.text:
            read = self.process.stdout.read(1)
            assert read, f"it ended without saying {words!r}:\n{self.text}"
            self.text += read

    def interrupt(self, answer=None):
        self.process.send_signal(signal.SIGINT)
        if answer:
            self.until("go on waiting?")
            self.text = self.text.replace("go on waiting?", "")
            os.write(self.terminal, f"{answer}\n".encode())

    def finish(self):
        self.text += self.process.stdout.read()
        return self.process.wait()


DEPLOYED = {
    "model": "some/model",
    "tokenizer": "some/tokenizer",
    "serving": {"image": "tiny"},
    "variants": [{"id": "baseline"}, {"id": "eagle3"}],
}


@pytest.fixture
def deploying(server, config, tmp_path):
    """A config whose deploys never end."""
    from servers.tokenizers import SMOL, write_tokenizer

    order(server, "operation-hangs", times=2)
    yield config(**DEPLOYED | {"tokenizer": str(write_tokenizer(tmp_path / "tokenizer", SMOL))})
    httpx.delete(f"{server.url}/local/faults", headers=bearer()).raise_for_status()


def test_ctrl_c_without_a_terminal_leaves_the_job_running_and_says_how_to_end_it(deploying, until):
    watched = Watched(deploying, terminal=False)
    watched.until("deploy-endpoint of baseline: running")
    watched.interrupt()
    assert watched.finish() == 130
    name = name_in(watched.text)
    assert job_of(name).state.name == "PIPELINE_STATE_RUNNING"
    until(lambda: vertex.leftovers(PLACE))
    (line,) = [line for line in watched.text.splitlines() if "eagle-bench cleanup" in line]
    done = run(*line.partition("eagle-bench ")[2].split())
    assert done.returncode == 0, done.stderr
    assert job_of(name).state.name == "PIPELINE_STATE_CANCELLED"
    assert vertex.leftovers(PLACE) == ()


def test_sigterm_at_a_terminal_asks_nobody_and_leaves_the_job_running(deploying):
    watched = Watched(deploying, terminal=True)
    watched.until("deploy-endpoint of baseline: running")
    watched.process.send_signal(signal.SIGTERM)
    assert watched.finish() == 143
    assert "go on waiting?" not in watched.text
    assert job_of(name_in(watched.text)).state.name == "PIPELINE_STATE_RUNNING"
    (line,) = [line for line in watched.text.splitlines() if "eagle-bench cleanup" in line]
    assert run(*line.partition("eagle-bench ")[2].split()).returncode == 0


def test_a_job_that_still_runs_is_fetched_as_far_as_it_is(server, deploying, until, tmp_path):
    submitted = run("submit", deploying, "--skip-checks")
    name = name_in(submitted.stdout)
    (cancel,) = [line for line in submitted.stdout.splitlines() if "eagle-bench cleanup" in line]
    until(lambda: vertex.leftovers(PLACE))
    (fetch,) = [line for line in submitted.stdout.splitlines() if "eagle-bench fetch" in line]
    nothing = run(*fetch.partition("eagle-bench ")[2].split(), "--out", tmp_path / "nothing")
    assert nothing.returncode == 4
    assert "still running: 0 of 4 cells so far" in nothing.stderr

    root = server.artifacts_folder("gs://local-bucket/eagle-bench", name.rsplit("/", 1)[-1])
    path = root / "planted" / "benchmark" / "cell"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(cell("baseline", 1, Simulated(), prompts=60)))
    done = run("fetch", name, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "still running: 1 of 4 cells so far" in done.stderr
    report = (tmp_path / "out" / "report.html").read_text()
    assert "still running: 1 of 4 cells so far" in report
    assert "<strong>eagle3 at concurrency 1 and 2</strong>: has not been measured yet" in report
    for text in (done.stdout, done.stderr, nothing.stderr, report):
        assert "did not come in" not in text
        assert "no usable result" not in text

    assert run(*cancel.partition("eagle-bench ")[2].split()).returncode == 0
    assert vertex.leftovers(PLACE) == ()


def test_ctrl_c_at_a_terminal_asks_and_can_cancel(deploying, until):
    watched = Watched(deploying, terminal=True)
    watched.until("deploy-endpoint of baseline: running")
    watched.interrupt("wait")
    until(lambda: vertex.leftovers(PLACE))
    watched.interrupt("cancel")
    assert watched.finish() == 130
    assert "nothing of it is left" in watched.text
    assert job_of(name_in(watched.text)).state.name == "PIPELINE_STATE_CANCELLED"
    assert vertex.leftovers(PLACE) == ()
