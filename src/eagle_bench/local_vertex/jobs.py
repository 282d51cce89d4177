"""Pipeline jobs: a submitted job is run by `job_runner` in a process of its own; its state is what Vertex AI shows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eagle_bench.local_vertex import refusals
from eagle_bench.local_vertex.containers import Containers
from eagle_bench.local_vertex.environment import key_file_of
from eagle_bench.local_vertex.metadata import run_context
from eagle_bench.local_vertex.operations import now
from eagle_bench.local_vertex.processes import KeptProcess
from eagle_bench.local_vertex.refusals import Refusal, not_found
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.secrecy import is_secret

JOB_ID = re.compile(r"[a-z][-a-z0-9]{0,127}")


@dataclass
class Job:
    """One pipeline job: the request, and what became of it."""

    name: str
    request: dict[str, Any]
    folder: Path
    state: str = "PIPELINE_STATE_PENDING"
    create_time: str = field(default_factory=now)
    start_time: str | None = None
    end_time: str | None = None
    error: dict[str, Any] | None = None
    artifacts: Path | None = None
    process: KeptProcess | None = None
    work: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        return self.end_time is not None

    def as_json(self) -> dict[str, Any]:
        times = {"createTime": self.create_time, "startTime": self.start_time, "endTime": self.end_time}
        place, _, job_id = self.name.partition("/pipelineJobs/")
        details = {"taskDetails": self._tasks(), "pipelineRunContext": run_context(place, job_id)}
        answer = {"name": self.name, "state": self.state, "updateTime": now(), "jobDetail": details, **times}
        if self.error:
            answer["error"] = self.error
        return {**self.request, **{key: value for key, value in answer.items() if value is not None}}

    def _tasks(self) -> list[dict[str, Any]]:
        """Tasks as the runner reported them, the last word on each; what still ran when the job ended was cancelled."""
        tasks: dict[str, dict[str, Any]] = {}
        for line in _lines(self.folder / "tasks.jsonl"):
            event = json.loads(line)
            tasks[event["taskId"]] = tasks.get(event["taskId"], {}) | event
        if self.ended:
            for task in tasks.values():
                if task["state"] == "RUNNING":
                    task |= {"state": "CANCELLED", "endTime": self.end_time}
        return list(tasks.values())


class Jobs:
    """All pipeline jobs of this server."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings, self._environment = settings, environment
        self.jobs: dict[str, Job] = {}

    def create(self, place: str, job_id: str, request: dict[str, Any]) -> Job:
        """Take a job and start it.

        Raises:
            Refusal: 400 for an id or a specification that can't be used, 409 for an id that is taken.
        """
        if not JOB_ID.fullmatch(job_id):
            raise Refusal(400, f"Invalid pipeline job id {job_id!r}.")
        name = f"{place}/pipelineJobs/{job_id}"
        if name in self.jobs:
            raise Refusal(409, f"Pipeline job {name} already exists.")
        if "pipelineSpec" not in request:
            raise Refusal(400, "pipeline_spec is required.")
        folder = self._settings.state_dir / "jobs" / job_id
        if folder.exists():  # of a server before this one, which is gone with its jobs
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        job = self.jobs[name] = Job(name, request, folder)
        job.work = asyncio.create_task(self._run(job, job_id), name=name)
        return job

    def get(self, name: str) -> Job:
        if name not in self.jobs:
            raise not_found(name)
        return self.jobs[name]

    def cancel(self, name: str) -> None:
        """Begin to cancel; the state becomes CANCELLED when the job's processes are gone."""
        job = self.get(name)
        if job.work and not job.work.done() and job.state != "PIPELINE_STATE_CANCELLING":
            job.state = "PIPELINE_STATE_CANCELLING"
            job.work.cancel()

    async def delete(self, name: str) -> None:
        """Forget a job that has ended."""
        if not self.get(name).ended:
            raise Refusal(400, f"Pipeline job {name} is still running: cancel it first.", status="FAILED_PRECONDITION")
        del self.jobs[name]

    async def stop_all(self) -> None:
        running = [job for job in self.jobs.values() if job.work and not job.work.done()]
        for job in running:
            self.cancel(job.name)
        await asyncio.gather(*(job.work for job in running if job.work), return_exceptions=True)

    def bucket_folder(self, address: str) -> Path:
        """Where a gs:// folder lies on this machine.

        Raises:
            Refusal: 400, it is no gs:// address, or leads out of its bucket.
        """
        root = (self._settings.state_dir / "buckets").resolve()
        folder = (root / address.removeprefix("gs://")).resolve()
        if not address.startswith("gs://") or not folder.is_relative_to(root) or folder == root:
            raise Refusal(400, f"Invalid Cloud Storage directory {address!r}.")
        return folder

    def containers(self, job_id: str, artifacts: Path) -> Containers | None:
        """How the job's tasks run in their images; None where they run as processes."""
        if not self._settings.docker:
            return None
        settings = self._settings
        readable = (key_file_of(settings), *settings.models.values(), *settings.readable)
        return Containers(job_id, settings.docker, artifacts, readable, self._environment)

    def _secrets(self) -> dict[str, tuple[str, ...]]:
        """Names of variables of this process that are secret, each with the tasks that get it; the jobs' own are not."""
        return {
            name: self._settings.task_secrets.get(name, ())
            for name in os.environ
            if is_secret(name) and name not in self._environment
        }

    async def _run(self, job: Job, job_id: str) -> None:
        containers = None
        try:
            root = self.bucket_folder(job.request.get("runtimeConfig", {}).get("gcsOutputDirectory", ""))
            artifacts = job.artifacts = root / str(self._settings.project_number) / job_id  # as Vertex AI lays it out
            if containers := self.containers(job_id, artifacts):
                artifacts.mkdir(parents=True, exist_ok=True)
            secrets = self._secrets()
            order = {
                "job_id": job_id,
                "pipeline_spec": job.request["pipelineSpec"],
                "parameters": job.request.get("runtimeConfig", {}).get("parameterValues", {}),
                "buckets": str((self._settings.state_dir / "buckets").resolve()),
                "pipeline_root": str(artifacts),
                "containers": asdict(containers) if containers else None,
                "secrets": secrets,
            }
            (job.folder / "job.json").write_text(json.dumps(order, default=str))
            job.process = await KeptProcess.start(
                (sys.executable, "-m", "eagle_bench.local_vertex.job_runner", str(job.folder)),
                env={
                    **{name: value for name, value in os.environ.items() if secrets.get(name, True)},
                    **self._environment,
                },
                cwd=job.folder,
                log_file=job.folder / "job.log",
                grace_s=self._settings.stop_grace_s,
            )
            job.state, job.start_time = "PIPELINE_STATE_RUNNING", now()
            status = await job.process.wait()
            self._conclude(job, job_id, status)
        except Refusal as refusal:
            self._fail(job, refusal.message)
        except asyncio.CancelledError:
            if job.process:
                await job.process.stop()
            job.state = "PIPELINE_STATE_CANCELLED"
            job.error = {"code": refusals.CANCELLED, "message": f"The pipeline job {job_id} was cancelled."}
        finally:
            if containers:
                await asyncio.to_thread(containers.remove_all)
            job.end_time = now()

    def _conclude(self, job: Job, job_id: str, status: int) -> None:
        outcome = _lines(job.folder / "outcome.json")
        if status == 0 and outcome:
            result = json.loads(outcome[0])
            if result["succeeded"]:
                job.state = "PIPELINE_STATE_SUCCEEDED"
                return
            project, number = job.name.split("/")[1], self._settings.project_number
            self._fail(
                job,
                f"{result['message']}; Job (project_id = {project}, job_id = {job_id}) is failed due to the above error.; "
                f"Failed to handle the job: {{project_number = {number}, job_id = {job_id}}}",
            )
            return
        end = job.process.last_lines(5) if job.process else ""
        self._fail(job, f"The process that ran the job ended with status {status}. Its last output:\n{end}")

    def _fail(self, job: Job, message: str) -> None:
        job.state = "PIPELINE_STATE_FAILED"
        job.error = {"code": refusals.FAILED_PRECONDITION, "message": message}


def _lines(path: Path) -> list[str]:
    """Whole lines of a file that another process may be writing; none when it isn't there yet."""
    if not path.exists():
        return []
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
