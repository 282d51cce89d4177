"""`eagle-bench cleanup` against Local Vertex: finds what a run left, deletes only when told to."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx
import pytest
import yaml

from contract.conftest import bearer
from eagle_bench.adapters import vertex
from eagle_bench.serving import Serving
from eagle_bench.variants import VariantSpec
from servers.tokenizers import SMOL, write_tokenizer

PLACE = vertex.Place("local-project", "us-central1")


def cleanup(*arguments):
    command = [sys.executable, "-m", "eagle_bench", "cleanup", "--project", PLACE.project, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def left(server):
    """An endpoint and a model that a run made and nobody took away."""
    spec = VariantSpec(id="base", model="some/model", serving=Serving(image="tiny"))
    return vertex.deploy(PLACE, "lost-run", spec)


def test_it_lists_and_deletes_only_when_told_to(left):
    listed = cleanup("lost-run")
    assert listed.returncode == 0
    assert left.endpoint in listed.stdout
    assert left.model in listed.stdout
    assert "nothing deleted" in listed.stdout
    assert len(vertex.leftovers(PLACE)) == 2

    another = cleanup("lost-runs", "--yes").stdout
    assert f"no job and no resource of lost-runs was found in {PLACE}: check the name. Did you mean" in another
    assert "Did you mean `lost-run`?" in another
    assert "nothing is left" in cleanup("--older-than", "6h", "--yes").stdout
    assert len(vertex.leftovers(PLACE)) == 2

    deleted = cleanup("--older-than", "0m", "--yes", "--json")
    assert deleted.returncode == 0, deleted.stderr
    assert f"deleted {left.endpoint}" in deleted.stderr
    said = json.loads(deleted.stdout)
    assert said["deleted"] == [left.endpoint, left.model]
    assert {one["run"] for one in said["found"]} == {"lost-run"}
    assert vertex.leftovers(PLACE) == ()
    gone = cleanup("lost-run", "--yes")
    assert (gone.returncode, gone.stdout) == (
        0,
        f"no job and no resource of lost-run was found in {PLACE}: check the name.\n",
    )


def test_what_can_not_be_deleted_is_named_with_the_command(left, order):
    order("delete-endpoint-fails", status=403, times=None)
    done = cleanup("lost-run", "--yes")
    assert done.returncode == 1
    assert left.endpoint in done.stderr
    assert "gcloud ai endpoints" in done.stderr


@pytest.fixture
def running(server, order, until, tmp_path):
    """The id of a run whose job is deploying and does not come to an end by itself."""
    order("operation-hangs", times=None)
    fields = {
        "project": PLACE.project,
        "location": PLACE.location,
        "pipeline_root": "gs://local-bucket/eagle-bench",
        "model": "some/model",
        "serving": {"image": "tiny"},
        "variants": [{"id": "baseline"}, {"id": "eagle3"}],
        "tokenizer": str(write_tokenizer(tmp_path / "tokenizer", SMOL)),
        "workload": {"prompts_per_level": 50},
        "concurrency": [1],
    }
    config = tmp_path / "bench.yaml"
    config.write_text(yaml.safe_dump(fields))
    command = [sys.executable, "-m", "eagle_bench", "submit", str(config), "--skip-checks"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    run_id = done.stdout.splitlines()[0].rsplit("/", 1)[-1]
    until(lambda: {made.run for made in vertex.leftovers(PLACE)} == {run_id})
    return run_id


def test_what_a_running_job_uses_is_kept_until_it_is_cancelled(running, server):
    before = {made.resource for made in vertex.leftovers(PLACE)}
    spec = VariantSpec(id="base", model="some/model", serving=Serving(image="tiny"))
    httpx.delete(f"{server.url}/local/faults", headers=bearer()).raise_for_status()
    lost = vertex.deploy(PLACE, "lost-run", spec)

    listed = cleanup(running)
    assert listed.returncode == 0
    assert "its job is running" in listed.stdout
    assert "--yes deletes" not in listed.stdout

    refused = cleanup(running, "--yes")
    assert refused.returncode == 2
    assert f"the job {running} is running" in refused.stderr
    assert before <= {made.resource for made in vertex.leftovers(PLACE)}

    by_age = cleanup("--older-than", "0m", "--yes", "--json")
    assert by_age.returncode == 0, by_age.stderr
    said = json.loads(by_age.stdout)
    assert said["deleted"] == [lost.endpoint, lost.model]
    assert {one["job"] for one in said["found"] if one["run"] == running} == {"RUNNING"}
    assert {one["job"] for one in said["found"] if one["run"] == "lost-run"} == {None}
    assert before <= {made.resource for made in vertex.leftovers(PLACE)}

    command = refused.stderr.partition("eagle-bench cleanup ")[2].split()
    cancelled = cleanup(*command)
    assert cancelled.returncode == 0, cancelled.stderr
    assert vertex.leftovers(PLACE) == ()


def test_a_service_out_of_reach_is_said_in_one_sentence_without_the_address_that_was_asked(left, monkeypatch):
    monkeypatch.setenv("EAGLE_BENCH_VERTEX_API", "http://127.0.0.1:9")
    done = cleanup("lost-run")
    assert done.returncode == 1
    assert "Vertex AI (127.0.0.1:9) can't be reached to list endpoints" in done.stderr
    assert "Connection refused. Check" in done.stderr
    assert "url" not in done.stderr
    assert "Pool" not in done.stderr


def test_nothing_is_deleted_as_long_as_nobody_knows_whether_the_job_runs(left, order):
    order("api-status", match="pipelineJobs/lost-run", status=403, times=None)
    done = cleanup("lost-run", "--yes")
    assert done.returncode == 1
    assert "look up" in done.stderr
    assert len(vertex.leftovers(PLACE)) == 2


@pytest.mark.parametrize(
    "arguments", [[], ["run", "--older-than", "6h"], ["--older-than", "soon"], ["--older-than", "99999999999999d"]]
)
def test_wrong_usage(arguments):
    done = cleanup(*arguments)
    assert done.returncode == 2


def test_a_cancelled_run_is_not_taken_for_a_slip_of_the_pen(left, monkeypatch, capsys):
    from eagle_bench.adapters import running_jobs
    from eagle_bench.commands.cleanup import command

    ended = running_jobs.JobState("lost-runs", "CANCELLED", None, ())
    monkeypatch.setattr(running_jobs, "cancel_and_give_back", lambda name, say: ended)
    command.main(["lost-runs", "--project", PLACE.project, "--cancel", "--yes"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "nothing of lost-runs is left" in shown
    assert "Did you mean" not in shown


def test_of_a_job_that_ended_it_is_said_that_nothing_is_left(monkeypatch, capsys):
    from eagle_bench.adapters import running_jobs
    from eagle_bench.commands.cleanup import command

    monkeypatch.setattr(vertex, "leftovers", lambda *_: ())
    monkeypatch.setattr(running_jobs, "state_of", lambda name: running_jobs.JobState(name, "SUCCEEDED", None, ()))
    command.main(["a-run", "--project", PLACE.project], standalone_mode=False)
    assert capsys.readouterr().out == f"nothing of a-run is left in {PLACE}\n"
