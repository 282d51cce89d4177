"""What a person who waits for a job is told: each change of a task and, now and then, what is running."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from eagle_bench.adapters.job_tasks import TaskState
from eagle_bench.adapters.running_jobs import JobState
from eagle_bench.commands.states import in_words
from eagle_bench.units import conjunction, duration

HEARTBEAT = timedelta(minutes=1)
DEPLOY = "deploy-endpoint"


class JobLines:
    """Turns the states of a job, one after another, into lines.

    Args:
        awaited: whose machine a variant waits for.
    """

    def __init__(self, awaited: Callable[[str], tuple[str, ...]] = lambda variant: ()) -> None:
        self._awaited = awaited
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
        running = [self._since(task, now) for task in state.tasks if task.state == "RUNNING" and not task.groups]
        return [
            f"still running: {', '.join(running)}"
            if running
            else f"the job is {in_words(state.state)}; no task is running"
        ]

    def _since(self, task: TaskState, now: datetime) -> str:
        others = self._awaited(task.variant) if task.name == DEPLOY and task.variant else ()
        waits = f"waits for the machine of {conjunction(list(others))}" if others else ""
        if task.started is None:
            return f"{task.label}{f' ({waits})' if waits else ''}"
        passed = duration((now - task.started).total_seconds())
        since = f"{task.started.astimezone(now.tzinfo):%H:%M:%S}"
        return f"{task.label} since {since} ({passed}{f'; {waits}' if waits else ''})"


def _change(task: TaskState) -> str:
    took = ""
    if task.started and task.ended:
        took = f" after {duration((task.ended - task.started).total_seconds())}"
    return f"{task.label}: {in_words(task.state)}{took}{f': {task.error}' if task.error else ''}"
