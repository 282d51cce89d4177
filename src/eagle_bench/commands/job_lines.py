"""What a person who waits for a job is told: each change of a task and, now and then, what is running."""

from __future__ import annotations

from datetime import datetime, timedelta

from eagle_bench.adapters.job_tasks import TaskState
from eagle_bench.adapters.running_jobs import JobState
from eagle_bench.commands.states import in_words
from eagle_bench.units import duration

HEARTBEAT = timedelta(minutes=1)


class JobLines:
    """Turns the states of a job, one after another, into lines."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._spoke: datetime | None = None

    def of(self, state: JobState, now: datetime) -> list[str]:
        """What is new; where nothing is for `HEARTBEAT`, what is running and since when.

        Args:
            now: with a time zone, in which times are shown.
        """
        changed = [task for task in state.tasks if self._seen.get(task.id) != task.state and not task.groups]
        self._seen |= {task.id: task.state for task in changed}
        if changed or self._spoke is None:
            self._spoke = now
            return [_change(task) for task in changed]
        if state.ended or now - self._spoke < HEARTBEAT:
            return []
        self._spoke = now
        running = [_since(task, now) for task in state.tasks if task.state == "RUNNING" and not task.groups]
        return [
            f"still running: {', '.join(running)}"
            if running
            else f"the job is {in_words(state.state)}; no task is running"
        ]


def _change(task: TaskState) -> str:
    took = ""
    if task.started and task.ended:
        took = f" after {duration((task.ended - task.started).total_seconds())}"
    return f"{task.label}: {in_words(task.state)}{took}{f': {task.error}' if task.error else ''}"


def _since(task: TaskState, now: datetime) -> str:
    if task.started is None:
        return task.label
    passed = duration((now - task.started).total_seconds())
    return f"{task.label} since {task.started.astimezone(now.tzinfo):%H:%M:%S} ({passed})"
