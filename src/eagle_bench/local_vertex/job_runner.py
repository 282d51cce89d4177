"""Runs one pipeline job with kfp's local runner: `python -m eagle_bench.local_vertex.job_runner FOLDER`.

FOLDER holds `job.json` (specification, parameters, id, root, containers, names of secrets). It gets `tasks.jsonl` (states of tasks as they
change), a log file per task, and `outcome.json`.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eagle_bench.local_vertex.containers import Containers
from eagle_bench.local_vertex.task_process import environment_for, killed, run_with_log

TASK = threading.local()
JOB_ID = "{{$.pipeline_job_uuid}}"  # kfp's placeholder for it


def main(folder: Path) -> None:
    """Run the job that FOLDER describes, and write what became of it."""
    import yaml
    from kfp import components, local

    job = json.loads((folder / "job.json").read_text())
    tasks = _Tasks(folder, job["job_id"], Path(job["buckets"]), _containers(job), job["secrets"])
    tasks.watch()
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=job["pipeline_root"], raise_on_error=True)
    pipeline = components.load_component_from_text(yaml.safe_dump(job["pipeline_spec"]))
    outcome: dict[str, Any] = {"succeeded": True}
    try:
        pipeline(**_whole_numbers(job["pipeline_spec"], job["parameters"]))
    except Exception as error:  # a task's failure and a wrong parameter come as any type
        outcome = {"succeeded": False, "message": f"The DAG failed because {tasks.why(error)}"}
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    (folder / "outcome.json").write_text(json.dumps(outcome) + "\n")


def _containers(job: dict[str, Any]) -> Containers | None:
    given = job["containers"]
    if given is None:
        return None
    readable = tuple(Path(path) for path in given["readable"])
    return Containers(given["job_id"], tuple(given["docker"]), Path(given["artifacts"]), readable, given["environment"])


def _whole_numbers(spec: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that the pipeline takes as integers: on the wire of a job all numbers are doubles."""
    known = spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {})
    integers = {name for name, kind in known.items() if kind.get("parameterType") == "NUMBER_INTEGER"}
    return {
        name: int(value) if name in integers and isinstance(value, float) and value.is_integer() else value
        for name, value in parameters.items()
    }


class _Tasks:
    """Follows the runner's tasks: gives them the job's id, a log file each, and reports their states."""

    def __init__(
        self, folder: Path, job_id: str, buckets: Path, containers: Containers | None, secrets: dict[str, list[str]]
    ) -> None:
        self._folder, self._job_id, self._buckets, self._containers = folder, job_id, buckets, containers
        self._secrets = secrets
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._failed: list[tuple[str, str]] = []  # names and last words

    def why(self, error: Exception) -> str:
        """Why the job failed: its failed tasks, and what they said last."""
        if not self._failed:
            return f"{type(error).__name__}: {error}"
        names = ", ".join(sorted({name for name, _ in self._failed}))
        words = "; ".join(said if said.startswith("the task ") else f"{name}: {said}" for name, said in self._failed)
        return f"some tasks failed. The failed tasks are: [{names}]. Their last words: {words}"

    def watch(self) -> None:
        """Put this between the runner and its tasks. The runner has no hook for it: its functions are wrapped."""
        from kfp.local import subprocess_task_handler, task_dispatcher

        run: Callable[..., Any] = task_dispatcher.run_single_task_implementation

        def watched(**task: Any) -> Any:
            from kfp.local.status import Status

            name, number = task["component_name"].removeprefix("comp-"), str(next(self._numbers))
            TASK.name, TASK.status = name, 0
            TASK.log_file = self._folder / f"{int(number):02d}-{name}.log"
            TASK.image = task["executor_spec"].container.image
            began: dict[str, Any] = {"state": "RUNNING", "createTime": _now(), "startTime": _now()}
            began["execution"] = self._execution(name, task["component_spec"], task["arguments"])
            began["inputs"] = self._artifacts(task["arguments"])
            self._report(taskId=number, taskName=name, **began)
            succeeded, outputs = False, {}
            try:
                # The runner makes an id up; PIPELINE_JOB_ID_PLACEHOLDER must be the submitted job's, as on Vertex AI.
                outputs, status = run(**task | {"unique_pipeline_id": self._job_id})
                succeeded = status == Status.SUCCESS
                return outputs, status
            finally:
                ended: dict[str, Any] = {"state": "SUCCEEDED" if succeeded else "FAILED", "endTime": _now()}
                ended["outputs"] = self._artifacts(outputs)
                if not succeeded:
                    said = killed(name, TASK.status) or _last_line(TASK.log_file)
                    self._failed.append((name, said))
                    ended["error"] = {"code": 9, "message": said}
                self._report(taskId=number, taskName=name, **ended)

        task_dispatcher.run_single_task_implementation = watched
        subprocess_task_handler.run_local_subprocess = self._run
        if self._containers:
            subprocess_task_handler.run_local_subprocess = self._run_in_container
            # The image has a Python of its own.
            subprocess_task_handler.replace_python_executable = lambda command, _: command

    def _run(self, full_command: list[str], env_vars: dict[str, str] | None = None) -> int:
        environment = environment_for(TASK.name, self._secrets, env_vars or {})
        status = TASK.status = run_with_log(full_command, environment, TASK.log_file, TASK.name)
        return status

    def _run_in_container(self, full_command: list[str], env_vars: dict[str, str] | None = None) -> int:
        """A task's container in place of its process; `docker run` ends with the exit status of the task."""
        assert self._containers
        return self._run(self._containers.argv(TASK.image, full_command, env_vars or {}))

    def _execution(self, name: str, component: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        """What Vertex AI keeps of a task that began: its parameters, by name."""
        given = {key: arguments[key] for key in component.input_definitions.parameters if key in arguments}
        metadata = {f"input:{key}": self._job_id if value == JOB_ID else value for key, value in given.items()}
        return {"displayName": name, "schemaTitle": "system.ContainerExecution", "metadata": metadata}

    def _artifacts(self, values: dict[str, Any]) -> dict[str, Any]:
        """The artifacts among a task's inputs or outputs, with the gs:// addresses of their files."""
        found = {}
        for key, value in values.items():
            listed = [one for one in (value if isinstance(value, list) else [value]) if hasattr(one, "uri")]
            if listed:
                found[key] = {"artifacts": [self._artifact(key, one) for one in listed]}
        return found

    def _artifact(self, key: str, artifact: Any) -> dict[str, Any]:
        uri = artifact.uri.replace(f"{self._buckets}/", "gs://", 1)
        return {"displayName": key, "uri": uri, "metadata": dict(artifact.metadata)}

    def _report(self, **event: Any) -> None:
        with self._lock, (self._folder / "tasks.jsonl").open("a") as events:
            events.write(json.dumps(event, default=str) + "\n")


def _last_line(log_file: Path) -> str:
    lines = log_file.read_text(errors="replace").split("\n") if log_file.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "The task ended without a word.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
