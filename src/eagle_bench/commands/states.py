"""States of jobs and tasks as people are told them, and why one failed: never a state's name alone."""

from __future__ import annotations

from collections.abc import Sequence

import click

from eagle_bench.adapters.job_tasks import TaskState

FAILED_TASKS = "The failed tasks are: ["
_WORDS = {
    "SUCCEEDED": "done",
    "PENDING": "waiting to start",
    "CANCELLING": "being cancelled",
    "CANCEL_PENDING": "being cancelled",
    "NOT_TRIGGERED": "not started",
}
_LAST = "conclude"


def in_words(state: str) -> str:
    """A state of a job or a task, such as "running", "done", "failed"."""
    return _WORDS.get(state, state.lower().replace("_", " "))


def failures(tasks: Sequence[TaskState], error: str | None) -> list[str]:
    """What failed of a job, and why: its tasks; where they don't say, the job's own error.

    Left out is `conclude` where it failed for the others, or for what `unusable` says.
    """
    found = [task for task in tasks if _by_itself(task) and not task.name.startswith(_LAST)]
    if found:
        return list(dict.fromkeys(f"{task.label} failed: {_cause(task)}" for task in found))
    why = None if unusable(tasks) else shown_reason(error, said=False)
    return [why.strip().rstrip(".")] if why else []


def unusable(tasks: Sequence[TaskState]) -> str | None:
    """Why the last task found no usable result; None where it found one, or never looked."""
    return next((_cause(task) for task in tasks if _by_itself(task) and task.name.startswith(_LAST)), None)


def shown_reason(error: str | None, *, said: bool = True) -> str | None:
    """A job's error as it is shown: whole with --debug; else nothing, where it only names tasks whose errors were said.

    Args:
        said: whether the tasks' own errors stand above.
    """
    from eagle_bench.adapters.running_jobs import reason

    context = click.get_current_context(silent=True)
    if context and context.find_root().params.get("debug"):
        return error
    return None if said and error and FAILED_TASKS in error else reason(error)


def _by_itself(task: TaskState) -> bool:
    """Whether a task failed for a reason of its own, and not because of those that it holds."""
    return task.state == "FAILED" and bool(task.error) and not task.groups and FAILED_TASKS not in str(task.error)


def _cause(task: TaskState) -> str:
    return str(task.reason).rstrip(".")
