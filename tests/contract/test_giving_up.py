"""What can't be measured costs nothing more: failed smoke tests and spent budgets, in the tasks as components call them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from eagle_bench.adapters import vertex
from eagle_bench.adapters.vllm_client.target import Target
from eagle_bench.errors import ServiceError
from eagle_bench.results import CellResult
from eagle_bench.serving import Serving
from eagle_bench.tasks.benchmark import benchmark
from eagle_bench.tasks.budget import Budget, budget_of, start_budget
from eagle_bench.tasks.collect import collect, collected
from eagle_bench.tasks.compare import compare
from eagle_bench.tasks.deploy import deploy
from eagle_bench.tasks.smoke import first_answer, smoke
from eagle_bench.tasks.teardown import teardown, teardown_all
from eagle_bench.variants import NO_LEVEL, VariantSpec
from eagle_bench.workload.prompts import TOKENIZER
from truth_server.process import TruthServer

PLACE = vertex.Place("p", "us-central1")
SPEC = VariantSpec(id="base", model="some/model", serving=Serving(image="tiny"))


class Tasks:
    """The tasks of one variant, one after another, with artifacts as the pipeline hands them on."""

    def __init__(self, folder, spec=SPEC, hours=0.0):
        self.folder, self.variant = folder, spec.as_parameter()
        self.prompts, self.endpoint = self.artifact("prompts"), self.artifact("endpoint")
        self.checked, self.summary = self.artifact("checked"), self.artifact("summary")
        start_budget(self.prompts, hours)

    def artifact(self, name):
        return SimpleNamespace(path=str(self.folder / name), uri="", metadata={})

    def deploy(self):
        resources = str(self.folder / "gcp_resources")
        deploy(PLACE.project, PLACE.location, "run", self.variant, self.prompts, self.endpoint, resources)

    def smoke(self, levels=(1, 2)):
        return smoke("run", self.variant, levels, self.endpoint, self.prompts, self.checked)

    def benchmark(self, level):
        cell, metrics = self.artifact(f"cell{level}"), SimpleNamespace(log_metric=lambda *_: None)
        benchmark("run", self.variant, {}, {}, level, 3, self.endpoint, self.prompts, cell, metrics)
        return cell

    def collect(self, cells):
        collect(cells, self.checked, self.summary)
        return list(collected([self.summary]))


def test_a_variant_that_does_not_answer_gives_its_machines_back_and_starts_no_level(server, order, tmp_path):
    order("traffic-status", status=500, times=None, message="the weights are broken")
    tasks = Tasks(tmp_path)
    tasks.deploy()
    assert len(vertex.leftovers(PLACE)) == 2
    assert tasks.smoke() == [NO_LEVEL]
    assert vertex.leftovers(PLACE) == ()
    failed = tasks.collect([tasks.benchmark(NO_LEVEL)])
    assert [(cell.variant, cell.concurrency, cell.metrics) for cell in failed] == [("base", 1, None), ("base", 2, None)]
    for cell in failed:
        assert cell.failure.stage == "smoke_test"
        assert "the weights are broken" in cell.failure.message


def test_an_address_where_nobody_listens_is_said():
    with pytest.raises(ServiceError, match="can't be reached") as refused:
        first_answer(Target("http://127.0.0.1:9/v1", ""), 0.0)
    assert refused.value.kind == "unavailable"


@pytest.mark.parametrize(("token", "hint"), [(None, True), (lambda: "a-key", False)])
def test_a_server_that_wants_a_key_says_where_to_name_it(token, hint):
    with TruthServer("token:60", tokens=8) as there, pytest.raises(ServiceError, match="answered 401: ") as refused:
        first_answer(Target(there.url, "", token=token), 0.0)
    assert ("`api_key_secret`" in str(refused.value)) is hint


def test_a_server_whose_tokens_nobody_counts_is_refused_before_any_level(tmp_path):
    with TruthServer("usage-never", tokens=8) as there:
        tasks = Tasks(tmp_path, VariantSpec(id="base", url=there.url))
        tasks.deploy()
        assert tasks.smoke() == [NO_LEVEL]
        (asked,) = there.journal()
        assert asked["body"]["stream"] is True
        (tmp_path / "prompts" / TOKENIZER).mkdir(parents=True)
        counted = Tasks(tmp_path, VariantSpec(id="counted", url=there.url))
        counted.deploy()
        assert counted.smoke() == [1, 2]
    for cell in tasks.collect([]):
        assert (cell.failure.stage, cell.failure.kind) == ("smoke_test", "input")
        assert f"{there.url} sends no usage with its streams" in cell.failure.message
        assert "set `tokenizer:` in the config" in cell.failure.message


def test_a_failed_deploy_is_the_failure_of_every_level(server, order, tmp_path):
    order("deploy-quota")
    tasks = Tasks(tmp_path)
    tasks.deploy()
    assert tasks.smoke() == [NO_LEVEL]
    assert [cell.failure.kind for cell in tasks.collect([])] == ["quota", "quota"]


def test_only_the_levels_that_are_missing_are_measured(server, tmp_path):
    tasks = Tasks(tmp_path, SPEC.model_copy(update={"levels": (2,)}))
    tasks.deploy()
    assert tasks.smoke() == [2]

    done = Tasks(tmp_path, SPEC.model_copy(update={"id": "done", "levels": ()}))
    done.deploy()
    assert done.smoke() == [NO_LEVEL]
    assert done.collect([done.benchmark(NO_LEVEL)]) == []
    assert {made.variant for made in vertex.leftovers(PLACE)} == {"base"}


def test_doing_nothing_loads_no_client():
    code = (
        "import sys\n"
        "import eagle_bench.tasks.benchmark\n"
        "print('HEAVY', sorted({'vllm', 'torch', 'tokenizers', 'google.cloud.aiplatform_v1', 'asyncio'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout


def test_what_can_not_be_deleted_fails_the_last_teardown_and_not_the_answer(server, order, tmp_path, capfd):
    tasks = Tasks(tmp_path)
    tasks.deploy()
    (endpoint,) = [made.resource for made in vertex.leftovers(PLACE) if "/endpoints/" in made.resource]
    order("delete-endpoint-fails", times=None, status=403, message="not allowed")
    (said,) = teardown(PLACE.project, PLACE.location, "run", tasks.variant)
    assert said.startswith(f"{endpoint} (")
    assert "not allowed" in said
    assert "gcloud ai endpoints delete" in said
    assert f"base: COULD NOT BE DELETED: {said}" in capfd.readouterr().out
    assert [made.resource for made in vertex.leftovers(PLACE)] == [endpoint]
    with pytest.raises(ServiceError, match=r"could not be deleted: .*gcloud ai endpoints delete"):
        teardown_all(PLACE.project, PLACE.location, "run", [tasks.variant], "SUCCEEDED")

    # What compare is told of it stands in the answer, first of all.
    files = {name: tasks.artifact(name) for name in ("comparison", "report", "summary")}
    none = SimpleNamespace(log_metric=lambda *_: None)
    variants = [tasks.variant, {**tasks.variant, "id": "other"}]
    compare("run", {}, variants, [1], "base", {}, {}, [], [[said], []], **files, metrics=none)
    warning = json.loads(Path(files["comparison"].path).read_text())["warnings"][0]
    assert warning["code"] == "not_deleted"
    assert said in warning["text"]
    assert "gcloud ai endpoints delete" in Path(files["report"].path).read_text()


def test_past_the_budget_nothing_begins_and_the_machines_go_back(server, tmp_path):
    tasks = Tasks(tmp_path)
    tasks.deploy()
    assert tasks.smoke() == [1, 2]
    start_budget(tasks.prompts, 1e-9)
    cell = CellResult.model_validate_json(Path(tasks.benchmark(1).path).read_text())
    assert (cell.failure.stage, cell.failure.kind) == ("benchmark", "budget")
    assert "`max_hours`" in cell.failure.message
    assert vertex.leftovers(PLACE) == ()

    late = Tasks(tmp_path, hours=1e-9)
    late.deploy()
    assert vertex.leftovers(PLACE) == ()
    assert late.smoke() == [NO_LEVEL]
    assert [(cell.failure.stage, cell.failure.kind) for cell in late.collect([])] == [("deploy", "budget")] * 2


def test_a_deploy_is_waited_for_no_longer_than_the_budget(server, order, tmp_path):
    order("operation-hangs")
    tasks = Tasks(tmp_path, hours=2 / 3600)
    tasks.deploy()
    assert budget_of(tasks.prompts).spent
    assert tasks.endpoint.metadata["failure"]["kind"] == "budget"
    assert vertex.leftovers(PLACE) == ()


def test_a_budget_is_a_moment_that_every_task_reads_alike():
    prompts = SimpleNamespace(metadata={})
    start_budget(prompts, 0.0)
    assert budget_of(prompts) is None
    before = time.time()
    start_budget(prompts, 1.5)
    budget = budget_of(prompts)
    assert isinstance(budget, Budget)
    assert budget.hours == 1.5
    assert before + 5400 - 0.01 <= budget.deadline_s <= time.time() + 5400
    assert datetime.fromisoformat(prompts.metadata["deadline"]).tzinfo == UTC


@pytest.mark.parametrize("hours", [0, -1, "2", True, float("inf")])
def test_a_budget_that_is_no_time_is_refused(hours):
    from eagle_bench import config_file
    from eagle_bench.errors import InputError

    data = {
        "project": "p",
        "location": "us-central1",
        "variants": [{"id": "baseline", "url": "http://a/v1"}, {"id": "b", "url": "http://b/v1"}],
        "max_hours": hours,
    }
    with pytest.raises(InputError, match="`max_hours`"):
        config_file.validate(data)


TERMINATED = """
import os, signal, sys
from types import SimpleNamespace
from eagle_bench.results import CellFailure
from eagle_bench.tasks import benchmark as task
from eagle_bench.tasks.failures import not_measured

def measured(*arguments):
    if sys.argv[2] == "something":
        arguments[-1]()
    os.kill(os.getpid(), signal.SIGTERM)
    return not_measured("run", "base", 1, None, CellFailure(stage="benchmark", kind="other", message="kept"))

task._measured = measured
nothing = SimpleNamespace(log_metric=lambda *_: None)
cell, prompts = SimpleNamespace(path=sys.argv[1], metadata={}), SimpleNamespace(metadata={})
task.benchmark("run", {"id": "base", "url": "http://a/v1"}, {}, {}, 1, 3, None, prompts, cell, nothing)
"""


@pytest.mark.parametrize(("there_is", "status"), [("something", 0), ("nothing", 143)])
def test_a_signal_after_measuring_waits_until_the_result_is_written(tmp_path, there_is, status):
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED, str(tmp_path / "cell"), there_is],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert (tmp_path / "cell").exists() == (there_is == "something")
