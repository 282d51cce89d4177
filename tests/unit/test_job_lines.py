"""What a person who waits for a job is told: by the details that the service gives of each task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from eagle_bench.adapters.job_tasks import TaskState, tasks_of
from eagle_bench.adapters.running_jobs import JobState
from eagle_bench.commands.job_lines import HEARTBEAT, JobLines

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def detail(number: int, name: str, parent: int = 0, inputs: dict[str, Any] | None = None, **given: Any) -> Any:
    """A PipelineTaskDetail, as its client shows it."""
    return SimpleNamespace(
        task_id=number,
        parent_task_id=parent,
        task_name=name,
        state=SimpleNamespace(name="RUNNING"),
        error=SimpleNamespace(message=""),
        execution=SimpleNamespace(metadata={f"input:{key}": value for key, value in given.items()} or None),
        inputs={
            key: SimpleNamespace(artifacts=[SimpleNamespace(metadata=one) for one in values])
            for key, values in (inputs or {}).items()
        },
        start_time=None,
        end_time=None,
    )


def job(*details: Any) -> Any:
    return SimpleNamespace(job_detail=SimpleNamespace(task_details=details))


def state(*tasks: TaskState, job: str = "RUNNING") -> JobState:
    return JobState("projects/p/locations/l/pipelineJobs/j", job, None, tasks)


def test_a_task_is_named_by_its_own_parameters_or_what_it_belongs_to() -> None:
    eagle = {"id": "eagle3", "serving": {}}
    details = (
        detail(1, "stage-data", concurrency=[1, 2]),
        detail(2, "for-loop-2"),
        detail(3, "benchmark-variant", 2, variant=eagle, concurrency=[1.0, 2.0]),
        detail(4, "benchmark", 3, variant=eagle, concurrency=2.0),
        detail(5, "benchmark", 3, variant='{"id": "eagle3"}', concurrency="2"),
        detail(6, "benchmark", 3, variant=eagle, concurrency=0.0),
        detail(7, "collect", 3),
        detail(8, "collect", inputs={"cells": [{"variant": "ngram"}, {"variant": "ngram"}], "checked": [None]}),
        detail(9, "compare", inputs={"cells": [{"variant": "ngram"}, {"variant": "eagle3"}]}),
    )
    assert [task.label for task in tasks_of(job(*details))] == [
        "stage-data",
        "for-loop-2",
        "benchmark-variant of eagle3",
        "benchmark of eagle3 at concurrency 2",
        "benchmark of eagle3 at concurrency 2",
        "benchmark of eagle3",
        "collect of eagle3",
        "collect of ngram",
        "compare",
    ]


def test_each_change_is_told_once_and_loops_are_not() -> None:
    lines = JobLines()
    running = TaskState("1", "benchmark", "RUNNING", variant="eagle3", level=2, started=NOON)
    ended = TaskState(
        "1", "benchmark", "FAILED", "it broke", "eagle3", 2, started=NOON, ended=NOON + timedelta(seconds=85)
    )
    loop = TaskState("2", "for-loop-1", "RUNNING")
    assert lines.of(state(loop, running), NOON) == ["benchmark of eagle3 at concurrency 2: running"]
    assert lines.of(state(loop, running), NOON) == []
    assert lines.of(state(loop, ended), NOON) == ["benchmark of eagle3 at concurrency 2: failed after 85 s: it broke"]


def test_silence_is_broken_by_what_is_running_and_since_when() -> None:
    lines = JobLines()
    tasks = (
        TaskState("1", "stage-data", "SUCCEEDED"),
        TaskState("2", "benchmark", "RUNNING", variant="eagle3", level=2, started=NOON),
        TaskState("3", "deploy-endpoint", "RUNNING", variant="ngram"),
        TaskState("4", "for-loop-1", "RUNNING"),
    )
    lines.of(state(*tasks), NOON)
    assert lines.of(state(*tasks), NOON + HEARTBEAT / 2) == []
    said = "still running: benchmark of eagle3 at concurrency 2 since 12:00:00 (60 s), deploy-endpoint of ngram"
    assert lines.of(state(*tasks), NOON + HEARTBEAT) == [said]
    assert lines.of(state(*tasks), NOON + 1.5 * HEARTBEAT) == []
    assert len(lines.of(state(*tasks), NOON + 2 * HEARTBEAT)) == 1
    assert lines.of(state(*tasks, job="FAILED"), NOON + 4 * HEARTBEAT) == []


def test_a_deploy_that_waits_for_the_machine_says_whose() -> None:
    lines = JobLines(lambda variant: {"eagle3": ("baseline", "ngram")}.get(variant, ()))
    tasks = tuple(
        TaskState(str(number), "deploy-endpoint", "RUNNING", variant=variant, started=started)
        for number, (variant, started) in enumerate((("eagle3", NOON), ("baseline", NOON), ("eagle3", None)))
    )
    waits = "deploy-endpoint of eagle3: waits for the machine of baseline and ngram"
    assert lines.of(state(*tasks), NOON)[-2:] == [waits, waits]
    assert lines.of(state(*tasks), NOON) == []
    (said,) = lines.of(state(*tasks), NOON + HEARTBEAT)
    assert said == (
        "still running: deploy-endpoint of eagle3 since 12:00:00 (60 s; waits for the machine of baseline and ngram), "
        "deploy-endpoint of baseline since 12:00:00 (60 s), "
        "deploy-endpoint of eagle3 (waits for the machine of baseline and ngram)"
    )


def test_a_wait_that_begins_later_is_told_while_other_tasks_go_on() -> None:
    awaited: dict[str, tuple[str, ...]] = {}
    lines = JobLines(lambda variant: awaited.get(variant, ()))
    deploy = TaskState("1", "deploy-endpoint", "RUNNING", variant="eagle3")
    lines.of(state(deploy), NOON)
    awaited["eagle3"] = ("baseline",)
    cell = TaskState("2", "benchmark", "RUNNING", variant="baseline", level=1)
    assert lines.of(state(deploy, cell), NOON + HEARTBEAT / 4) == [
        "benchmark of baseline at concurrency 1: running",
        "deploy-endpoint of eagle3: waits for the machine of baseline",
    ]


def test_a_reason_has_no_class_of_ours() -> None:
    failed = TaskState(
        "1", "stage-data", "FAILED", "eagle_bench.errors.InputError: `workload.dataset`: there is no file"
    )
    assert JobLines().of(state(failed), NOON) == ["stage-data: failed: `workload.dataset`: there is no file"]


def test_a_job_without_a_task_says_how_it_stands() -> None:
    lines = JobLines()
    assert lines.of(state(job="PENDING"), NOON) == []
    assert lines.of(state(job="PENDING"), NOON + HEARTBEAT) == ["the job is waiting to start; no task is running"]
