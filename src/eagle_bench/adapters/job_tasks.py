"""The tasks of a pipeline job, and which variant and level each is about: their names alone don't say it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

INPUT = "input:"  # what a parameter's name begins with in the metadata of a task's execution
_CLASS = re.compile(r"\beagle_bench\.errors\.\w+: ")
GROUP = re.compile(r"(for-loop|condition|exit-handler)-")


@dataclass(frozen=True)
class TaskState:
    """One task of a job. States are without Vertex AI's prefixes: RUNNING, SUCCEEDED, …

    `variant` and `level` are None where a task is about all of them, or the job does not tell.
    """

    id: str
    name: str
    state: str
    error: str | None = None
    variant: str | None = None
    level: int | None = None
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def label(self) -> str:
        """The task as people know it: "benchmark of eagle3 at concurrency 4"."""
        of = f" of {self.variant}" if self.variant else ""
        return f"{self.name}{of}{f' at concurrency {self.level}' if self.level else ''}"

    @property
    def reason(self) -> str | None:
        """Why it failed, without the name of a Python class, with which a traceback's last line begins."""
        return _CLASS.sub("", self.error).strip() if self.error else None

    @property
    def groups(self) -> bool:
        """Whether it only holds other tasks: a loop, say."""
        return GROUP.match(self.name) is not None


def tasks_of(job: Any) -> tuple[TaskState, ...]:
    """The tasks in the API's answer about a job."""
    details = {task.task_id: task for task in job.job_detail.task_details}
    return tuple(
        TaskState(
            id=str(task.task_id),
            name=task.task_name,
            state=task.state.name,
            error=task.error.message or None,
            variant=_variant(task, details),
            level=_level(_parameters(task).get("concurrency")),
            started=task.start_time or None,
            ended=task.end_time or None,
        )
        for task in details.values()
    )


def _variant(task: Any, details: Mapping[int, Any]) -> str | None:
    """By its parameter; else by the artifacts that it reads; else by the tasks that it is part of."""
    given = _parameters(task).get("variant")
    if isinstance(given, Mapping) and isinstance(given.get("id"), str):
        return str(given["id"])
    read = {str(found) for found in _said_by_inputs(task, "variant")}
    if len(read) == 1:
        return read.pop()
    parent = details.get(task.parent_task_id)
    return _variant(parent, details) if parent is not None and parent.task_id != task.task_id else None


def _said_by_inputs(task: Any, key: str) -> Iterator[Any]:
    for listed in task.inputs.values():
        for artifact in listed.artifacts:
            if artifact.metadata and key in artifact.metadata:
                yield artifact.metadata[key]


def _parameters(task: Any) -> dict[str, Any]:
    """What a task was given, by name; structures come as themselves or as their JSON."""
    given = task.execution.metadata or {}
    return {name.removeprefix(INPUT): _read(value) for name, value in given.items() if name.startswith(INPUT)}


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _level(value: Any) -> int | None:
    """A level; None for a list of them, and for the loop over nothing, whose one item is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) or None
