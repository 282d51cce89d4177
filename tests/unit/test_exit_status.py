"""How a run ends for scripts that could not delete all that it made: the answer is there, and the exit status is not 0."""

from __future__ import annotations

import pytest

from eagle_bench.adapters import running_jobs
from eagle_bench.adapters.job_tasks import TaskState
from eagle_bench.adapters.vertex import Left
from eagle_bench.analysis import compare
from eagle_bench.commands import run, waiting
from eagle_bench.comparison import Plan
from eagle_bench.errors import NoUsableResult, ServiceError
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.results import CellResult
from eagle_bench.runs.gathering import Gathered
from eagle_bench.runs.local_run import LocalRun
from simulated_cells import EAGLE, cell

LEFT = Left("projects/p/locations/l/endpoints/eb-1", "not allowed", "gcloud ai endpoints delete eb-1")
JOB = "projects/p/locations/l/pipelineJobs/r"
GO_ON = "eagle-bench run --resume out"


@pytest.fixture(scope="module")
def gathered():
    cells = [CellResult.model_validate(one) for one in (cell("baseline", 1), cell("eagle3", 1, EAGLE))]
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(1,))
    return Gathered(compare(plan, cells, resamples=200), 2, 2)


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
    ("whole", "said"),
    [
        (1, "3 of 4 cells were not measured to their end; go on with: eagle-bench run --resume out\n"),
        (0, "4 of 4 cells were not measured to their end\n"),  # what was cut short can't be taken
    ],
)
def test_an_interrupted_run_counts_what_is_missing_and_says_how_to_go_on(whole, said, tmp_path, capsys):
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(1, 2))
    answer = compare(plan, [CellResult.model_validate(cell("baseline", 1))], resamples=200)
    ended = LocalRun("r", "CANCELLED", None, Gathered(answer, 1, 4, whole))
    assert run._tell(ended, Settings(state_dir=tmp_path), tmp_path, GO_ON, lambda outcome: None) == 130
    shown = capsys.readouterr()
    assert "did not come in" not in shown.out
    part = "" if whole else ", 1 of them in part"
    assert shown.err.endswith(
        f"interrupted; 1 of 4 cells were measured and kept{part}; nothing is left running.\n{said}"
    )


@pytest.mark.parametrize(("conclude", "error"), [("SUCCEEDED", ServiceError), ("FAILED", NoUsableResult)])
def test_a_job_whose_teardown_failed_has_an_answer_all_the_same(conclude, error, monkeypatch):
    tasks = (
        TaskState("1", "conclude", conclude),
        TaskState("2", "teardown-all", "FAILED", "x"),
    )
    ended = running_jobs.JobState(JOB, "FAILED", "some tasks failed", tasks)
    monkeypatch.setattr(waiting, "obey_signals", lambda: None)
    monkeypatch.setattr(running_jobs, "watch", lambda *_, **__: iter([ended]))
    with pytest.raises(error, match=r"the job ended FAILED\. some tasks failed"):
        waiting.wait(JOB)
