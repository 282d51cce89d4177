"""How a run ends for scripts that could not delete all that it made: the answer is there, and the exit status is not 0."""

from __future__ import annotations

import pytest

from eagle_bench.adapters import running_jobs
from eagle_bench.adapters.job_tasks import TaskState
from eagle_bench.adapters.vertex import Left, TeardownReport
from eagle_bench.analysis import compare
from eagle_bench.commands import run, submit, waiting
from eagle_bench.comparison import Plan
from eagle_bench.errors import NoUsableResult, ServiceError
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.progress import MARK
from eagle_bench.results import CellResult
from eagle_bench.runs.gathering import Gathered
from eagle_bench.runs.local_run import LocalRun
from eagle_bench.tasks import teardown
from simulated_cells import EAGLE, cell

LEFT = Left("projects/p/locations/l/endpoints/eb-1", "not allowed", "gcloud ai endpoints delete eb-1")
JOB = "projects/p/locations/l/pipelineJobs/r"
GO_ON = "eagle-bench run --resume out"
NAMED = "The DAG failed because some tasks failed. The failed tasks are: ["


@pytest.fixture(scope="module")
def gathered():
    cells = [CellResult.model_validate(one) for one in (cell("baseline", 1), cell("eagle3", 1, EAGLE))]
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(1,))
    return Gathered(compare(plan, cells, resamples=200), 2, 2, 2)


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_a_run_on_this_machine_that_left_something_is_an_error_with_an_answer(gathered, state, tmp_path, capsys):
    told = []
    ended = LocalRun("r", state, None, gathered, (LEFT,))
    with pytest.raises(ServiceError, match=r"could not be deleted: .*gcloud ai endpoints delete eb-1") as refused:
        run._tell(ended, Settings(state_dir=tmp_path), tmp_path, GO_ON, told.append)
    assert refused.value.exit_status == 1
    assert "faster" in capsys.readouterr().out
    assert [item.command for item in told[0].left] == [LEFT.command]


def test_a_run_that_left_nothing_is_done(gathered, tmp_path):
    assert (
        run._tell(LocalRun("r", "SUCCEEDED", None, gathered), Settings(state_dir=tmp_path), tmp_path, GO_ON, print) == 0
    )


@pytest.mark.parametrize(
    ("whole", "said", "number", "status"),
    [
        (1, "3 of 4 cells were not measured to their end; go on with: eagle-bench run --resume out\n", "SIGINT", 130),
        (0, "4 of 4 cells were not measured to their end\n", "SIGTERM", 143),  # what was cut short can't be taken
        (0, "4 of 4 cells were not measured to their end\n", "SIGHUP", 129),
    ],
)
def test_an_interrupted_run_counts_what_is_missing_and_says_how_to_go_on(whole, said, number, status, tmp_path, capsys):
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(1, 2))
    answer = compare(plan, [CellResult.model_validate(cell("baseline", 1))], resamples=200)
    ended = LocalRun("r", "CANCELLED", None, Gathered(answer, 1, 4, whole), signal=number)
    assert run._tell(ended, Settings(state_dir=tmp_path), tmp_path, GO_ON, lambda outcome: None) == status
    shown = capsys.readouterr()
    assert "did not come in" not in shown.out
    part = "" if whole else ", in part"
    assert shown.err.endswith(
        f"interrupted; 1 of 4 cells was measured and is kept{part}; nothing is left running.\n{said}"
    )


@pytest.mark.parametrize(
    ("tasks", "error", "said"),
    [
        (
            (
                TaskState("1", "benchmark-variant", "FAILED", f"{NAMED}benchmark].", "eagle3"),
                TaskState("2", "benchmark", "FAILED", "the task benchmark was killed by SIGKILL", "eagle3", 2),
                TaskState("3", "conclude", "FAILED", "eagle_bench.errors.NoUsableResult: no usable result."),
            ),
            f"{NAMED}benchmark, conclude].",
            "benchmark of eagle3 at concurrency 2 failed: the task benchmark was killed by SIGKILL; ",
        ),
        # What failed is that nothing can be compared, and the error that follows says why.
        ((TaskState("1", "conclude", "FAILED", "no usable result: x."),), f"{NAMED}conclude].", ""),
        ((), "Local Vertex lost the run: it is gone.", "Local Vertex lost the run: it is gone; "),
        ((), f"{NAMED}benchmark].; Job (project_id = p) is failed.", f"{NAMED}benchmark]; "),
    ],
)
def test_a_run_that_failed_says_what_failed_and_what_there_is(gathered, tasks, error, said, tmp_path, capsys):
    ended = LocalRun("r", "FAILED", error, gathered, tasks=tasks)
    assert run._tell(ended, Settings(state_dir=tmp_path), tmp_path, GO_ON, lambda outcome: None) == 0
    shown = capsys.readouterr().err
    assert shown == f"{said}all 2 cells were measured and are kept.\n"


def test_a_run_without_any_result_says_what_failed(tmp_path):
    tasks = (TaskState("1", "stage-data", "FAILED", "eagle_bench.errors.InputError: prompts.json: is not there."),)
    ended = LocalRun("r", "FAILED", f"{NAMED}stage-data].", Gathered(None, 0, 2), tasks=tasks)
    with pytest.raises(NoUsableResult) as refused:
        run._tell(ended, Settings(state_dir=tmp_path), tmp_path, GO_ON, lambda outcome: None)
    assert refused.value.message == "nothing was measured: stage-data failed: prompts.json: is not there."


@pytest.mark.parametrize(
    ("cells", "whole", "said"),
    [
        (0, 0, "none of 4 cells was measured"),
        (1, 1, "1 of 4 cells was measured and is kept"),
        (3, 2, "3 of 4 cells were measured and are kept, 1 of them in part"),
        (3, 0, "3 of 4 cells were measured and are kept, in part"),
        (4, 4, "all 4 cells were measured and are kept"),
    ],
)
def test_what_is_kept_is_a_sentence(cells, whole, said):
    assert Gathered(None, cells, 4, whole).kept == said


@pytest.mark.parametrize(
    ("conclude", "error", "said"),
    [
        ("SUCCEEDED", ServiceError, "the job failed: teardown-all failed: x; its answer is there all the same."),
        ("FAILED", NoUsableResult, "the job failed: teardown-all failed: x."),
    ],
)
def test_a_job_whose_teardown_failed_has_an_answer_all_the_same(conclude, error, said, monkeypatch):
    tasks = (
        TaskState("1", "conclude", conclude, "no usable result: y." if conclude == "FAILED" else None),
        TaskState("2", "teardown-all", "FAILED", "x"),
    )
    ended = running_jobs.JobState(JOB, "FAILED", "some tasks failed", tasks)
    monkeypatch.setattr(waiting, "obey_signals", lambda: None)
    monkeypatch.setattr(running_jobs, "watch", lambda *_, **__: iter([ended]))
    with pytest.raises(error) as refused:
        waiting.wait(JOB)
    assert refused.value.message == said


@pytest.mark.parametrize(("state", "ended"), [("SUCCEEDED", "measured"), ("FAILED", "a task failed")])
def test_the_last_look_for_what_is_left_says_what_it_found(state, ended, capsys, monkeypatch):
    url = {"id": "baseline", "url": "http://127.0.0.1:1/v1"}
    teardown.teardown_all("p", "l", "r", [url], state)
    looked = f"run: {ended}; checking that no endpoint and no model is left"
    assert capsys.readouterr().out == f"{MARK}{looked}\n{MARK}run: no endpoint and no model is left\n"

    monkeypatch.setattr(teardown.vertex, "teardown", lambda *_: TeardownReport(left=(LEFT,)))
    with pytest.raises(ServiceError, match="could not be deleted"):
        teardown.teardown_all("p", "l", "r", [{"id": "baseline"}], state)
    assert "is left\n" not in capsys.readouterr().out.partition(looked)[2].removeprefix("\n")


@pytest.mark.parametrize(
    ("state", "tasks", "said"),
    [
        ("CANCELLED", (), "the job is cancelled."),
        (
            "FAILED",
            (TaskState("1", "conclude", "FAILED", "eagle_bench.errors.NoUsableResult: no usable result: y."),),
            "the job failed: no usable result: y.",
        ),
    ],
)
def test_a_job_that_did_not_succeed_says_why(state, tasks, said, monkeypatch):
    ended = running_jobs.JobState(JOB, state, f"{NAMED}conclude]." if tasks else None, tasks)
    monkeypatch.setattr(waiting, "obey_signals", lambda: None)
    monkeypatch.setattr(running_jobs, "watch", lambda *_, **__: iter([ended]))
    with pytest.raises(NoUsableResult) as refused:
        waiting.wait(JOB)
    assert refused.value.message == said


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("/b/r", r"Local Vertex was started anew.* compare \$\(find /b/r -name cell\)"),
        (None, r"it was deleted\. .*eagle-bench cleanup r --project p --location l --cancel --yes"),
    ],
)
def test_a_job_that_is_gone_does_not_run_on(folder, words, monkeypatch):
    def watched(*_, **__):
        yield running_jobs.JobState(JOB, "RUNNING", None, ())
        raise ServiceError("not found.", kind="not-found", hint="Check the name and the region.")

    monkeypatch.setattr(waiting, "obey_signals", lambda: None)
    monkeypatch.setattr(running_jobs, "artifacts_folder", lambda name: folder)
    monkeypatch.setattr(running_jobs, "watch", watched)
    with pytest.raises(ServiceError, match=f"the job {JOB} is gone: {words}") as refused:
        waiting.wait(JOB)
    assert "runs on" not in str(refused.value)


def test_what_can_not_be_looked_up_any_more_hides_no_other_error(monkeypatch):
    def lost(name):
        raise ServiceError("can't be reached.", kind="unavailable")

    monkeypatch.setattr(running_jobs, "state_of", lost)
    assert submit._outcome(JOB, ended=True).state is None
