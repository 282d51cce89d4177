"""What a person who waits for a job is told: each change of a task and, now and then, what is running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        self._waiting: set[str] = set()

    def of(self, state: JobState, now: datetime) -> list[str]:
        """What is new; where nothing is for `HEARTBEAT`, what is running and since when.

        Args:
            now: with a time zone, in which times are shown.
        """
        changed = [task for task in state.tasks if self._seen.get(task.id) != task.state and not task.groups]
        self._seen |= {task.id: task.state for task in changed}
        said = [*map(_change, changed), *self._waits(state)]
        if said or self._spoke is None:
            self._spoke = now
            return said
        if state.ended or now - self._spoke < HEARTBEAT:
            return []
        self._spoke = now
        running = [self._since(task, now) for task in state.tasks if task.state == "RUNNING" and not task.groups]
        return [
            f"still running: {', '.join(running)}"
            if running
            else f"the job is {in_words(state.state)}; no task is running"
        ]

    def _waits(self, state: JobState) -> Iterator[str]:
        """The deploys that were found to wait, once each: other tasks may have so much to tell that silence never comes."""
        for task in state.tasks:
            if task.state == "RUNNING" and task.id not in self._waiting and (waits := self._machine(task)):
                self._waiting.add(task.id)
                yield f"{task.label}: {waits}"

    def _machine(self, task: TaskState) -> str:
        others = self._awaited(task.variant) if task.name == DEPLOY and task.variant else ()
        return f"waits for the machine of {conjunction(list(others))}" if others else ""

    def _since(self, task: TaskState, now: datetime) -> str:
        waits = self._machine(task)
        if task.started is None:
            return f"{task.label}{f' ({waits})' if waits else ''}"
        passed = duration((now - task.started).total_seconds())
        since = f"{task.started.astimezone(now.tzinfo):%H:%M:%S}"
        return f"{task.label} since {since} ({passed}{f'; {waits}' if waits else ''})"


def _change(task: TaskState) -> str:
    took = ""
    if task.started and task.ended:
        took = f" after {duration((task.ended - task.started).total_seconds())}"
    return f"{task.label}: {in_words(task.state)}{took}{f': {task.reason}' if task.reason else ''}"
