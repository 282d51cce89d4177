"""Pipeline jobs through an unmodified `aiplatform.PipelineJob`."""

import json
import re
import signal

import pytest
from google.cloud import aiplatform, storage
from kfp import compiler, dsl

from eagle_bench.adapters import vertex

PLACE = vertex.Place("p", "us-central1")


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def tell(job: str, fail: bool, seconds: int, report: dsl.Output[dsl.Dataset]) -> str:
    """Writes what it knows, then sleeps, then fails if told to."""
    import json
    import os
    import time
    from pathlib import Path

    names = ("EAGLE_BENCH_VERTEX_API", "GOOGLE_APPLICATION_CREDENTIALS")
    Path(report.path).write_text(json.dumps({"job": job, **{name: os.environ.get(name) for name in names}}))
    print("tell has written", flush=True)
    time.sleep(seconds)
    if fail:
        raise ValueError("it was told to fail")
    return job


@dsl.pipeline(name="tiny")
def tiny(fail: bool = False, seconds: int = 0):
    tell(job=dsl.PIPELINE_JOB_ID_PLACEHOLDER, fail=fail, seconds=seconds).set_caching_options(False)


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def look(killed_by: int, seen: dsl.Output[dsl.Dataset]):
    """Writes the names and values of its environment, then dies of a signal if told to."""
    import json
    import os
    from pathlib import Path

    Path(seen.path).write_text(json.dumps(dict(os.environ)))
    if killed_by:
        os.kill(os.getpid(), killed_by)


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def trusted(seen: dsl.Output[dsl.Dataset]):
    """Writes the names and values of its environment."""
    import json
    import os
    from pathlib import Path

    Path(seen.path).write_text(json.dumps(dict(os.environ)))


@dsl.pipeline(name="looking")
def looking(killed_by: int = 0):
    after = trusted().set_caching_options(False)
    look(killed_by=killed_by).after(after).set_caching_options(False)


@pytest.fixture
def submit(server, tmp_path):
    return submitting(tmp_path)


def submitting(folder):
    aiplatform.init(**vertex.sdk_options(PLACE))

    def submit(job_id, pipeline=tiny, **parameters):
        template = folder / f"{pipeline.name}.yaml"
        compiler.Compiler().compile(pipeline, str(template))
        job = aiplatform.PipelineJob(
            display_name="tiny",
            template_path=str(template),
            job_id=job_id,
            pipeline_root="gs://bucket/root",
            parameter_values=parameters,
            labels={"purpose": job_id},
        )
        job.submit()
        return job

    return submit


def test_a_job_succeeds(server, submit, caplog):
    job = submit("good-job")
    job.wait()
    assert job.state.name == "PIPELINE_STATE_SUCCEEDED"
    (task,) = job.task_details
    assert (task.task_name, task.state.name) == ("tell", "SUCCEEDED")
    assert dict(task.execution.metadata) == {"input:job": "good-job", "input:fail": False, "input:seconds": 0}
    assert "Error when trying to get or create a GCS bucket" not in caplog.text
    (written,) = server.bucket_folder("gs://bucket/root").rglob("report")
    report = json.loads(written.read_text())
    assert report == {
        "job": "good-job",
        "EAGLE_BENCH_VERTEX_API": server.url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(server.key_file),
    }
    assert "tell has written" in (server.job_folder("good-job") / "01-tell.log").read_text()
    assert [found.name for found in aiplatform.PipelineJob.list(filter="labels.purpose=good-job")] == ["good-job"]
    # The job's artifacts are objects for a client of Cloud Storage.
    (blob,) = [
        blob
        for blob in storage.Client(project="p", credentials=vertex.credentials()).list_blobs("bucket", prefix="root/")
        if blob.name.endswith("/report")
    ]
    assert json.loads(blob.download_as_bytes()) == report


def test_a_job_fails_as_on_vertex(submit):
    job = submit("bad-job", fail=True)
    with pytest.raises(RuntimeError, match=r"some tasks failed. The failed tasks are: \[tell\]"):
        job.wait()
    assert job.state.name == "PIPELINE_STATE_FAILED"
    (task,) = job.task_details
    assert (task.state.name, task.error.message) == ("FAILED", "ValueError: it was told to fail")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_task_that_a_signal_ended_says_which(server, submit, number):
    job = submit("killed-job", looking, killed_by=int(number))
    said = f"the task look was killed by {number.name}{' (out of memory?)' if number == signal.SIGKILL else ''}"
    with pytest.raises(RuntimeError, match=re.escape(f"[look]. Their last words: {said}")):
        job.wait()
    (task,) = [task for task in job.task_details if task.task_name == "look"]
    assert task.error.message == said
    assert (server.job_folder("killed-job") / "02-look.log").read_text().endswith(f"\n▸ run: {said}\n")


SECRETS = {"HF_TOKEN": "hf_planted", "OPENAI_API_KEY": "sk-planted", "DB_PASSWORD": "hunter2"}


def test_the_users_secrets_are_only_for_the_tasks_that_need_them(start, tmp_path, monkeypatch):
    for name, value in {**SECRETS, "PLAIN": "plain"}.items():
        monkeypatch.setenv(name, value)
    server = start(task_secrets={"HF_TOKEN": ("trusted",)})
    submitting(tmp_path)("looking-job", looking).wait()
    seen = {
        path.parent.name: json.loads(path.read_text())
        for path in server.bucket_folder("gs://bucket/root").rglob("seen")
    }
    assert set(seen) == {"look", "trusted"}
    assert {task: set(SECRETS) & set(variables) for task, variables in seen.items()} == {
        "look": set(),
        "trusted": {"HF_TOKEN"},
    }
    for variables in seen.values():
        assert variables["PLAIN"] == "plain"
        assert variables["GOOGLE_APPLICATION_CREDENTIALS"] == str(server.key_file)
    for file in server.job_folder("looking-job").iterdir():
        assert not any(value in file.read_text() for value in SECRETS.values()), file


def test_a_cancelled_job_ends_with_all_its_processes(server, submit, until, processes_with):
    job = submit("long-job", seconds=600)
    until(lambda: list(server.bucket_folder("gs://bucket/root").rglob("report")))
    assert processes_with("long-job")
    job.cancel()
    until(lambda: job.state.name == "PIPELINE_STATE_CANCELLED")
    assert not processes_with("long-job")
    assert [task.state.name for task in job.task_details] == ["CANCELLED"]
    job.delete()
    assert not aiplatform.PipelineJob.list()


def test_parameters_that_the_pipeline_does_not_have_are_named(submit):
    with pytest.raises(ValueError, match="nonsense"):
        submit("wrong-job", nonsense=1)
