"""Going on with an earlier run: what is taken, what is measured, and what makes the two runs no pair."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench import config_file
from eagle_bench.adapters.pipeline_template import parameters
from eagle_bench.errors import InputError
from eagle_bench.results import CellResult
from eagle_bench.resuming import EarlierRun, Kept, addresses, resume, taken_and_left, whole
from simulated_cells import cell

CONFIG = {
    "project": "p",
    "location": "us-central1",
    "model": "meta/llama4@scout",
    "tokenizer": "meta/scout",
    "serving": {"image": "sglang:1", "args": ["--tp=8"], "deploy_timeout_s": 3600},
    "variants": [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}],
    "workload": {"prompts_per_level": 120},
    "concurrency": [1, 2],
    "slo": {"tpot_ms": 30.0},
}
GRID = [(variant, level) for variant in ("baseline", "eagle3") for level in (1, 2)]


def told(**changes: Any) -> dict[str, Any]:
    return parameters(config_file.validate({**copy.deepcopy(CONFIG), **changes}), {})


def kept(variant: str, level: int, **changes: Any) -> Kept:
    made = cell(variant, level, details=False) | changes
    return Kept(f"gs://b/root/1/run-1/benchmark_{level}{variant}/cell", CellResult.model_validate(made))


def earlier(*cells: Kept, **changes: Any) -> EarlierRun:
    return EarlierRun("run-1", told(**changes), cells)


@given(st.sets(st.sampled_from(GRID), min_size=1, max_size=3))
def test_each_cell_is_either_taken_or_measured(there: set[tuple[str, int]]) -> None:
    new = resume(told(), earlier(*(kept(*key) for key in sorted(there))))
    to_measure = {(v["id"], level) for v in new["variants"] for level in v["levels"]}
    assert to_measure == set(GRID) - there
    assert sorted(addresses(new["earlier"])) == sorted(kept(*key).address for key in there)
    assert set(new["earlier"]["prompts"]) == {str(level) for _, level in there}
    assert {key: value for key, value in new.items() if key not in ("variants", "earlier")} == {
        key: value for key, value in told().items() if key not in ("variants", "earlier")
    }


@pytest.mark.parametrize(
    ("there", "taken", "left"),
    [
        ([("baseline", 1), ("baseline", 2)], "baseline at concurrency 1 and 2", "eagle3 at concurrency 1 and 2"),
        (
            [("baseline", 1), ("eagle3", 1), ("eagle3", 2)],
            "baseline at concurrency 1, eagle3 at concurrency 1 and 2",
            "baseline at concurrency 2",
        ),
    ],
)
def test_what_is_taken_and_what_is_measured_is_said(there: list[tuple[str, int]], taken: str, left: str) -> None:
    assert taken_and_left(resume(told(), earlier(*(kept(*key) for key in there)))) == (taken, left)


def test_numbers_that_became_floats_on_the_way_are_the_same_numbers() -> None:
    before = told()
    before["concurrency"] = [1.0, 2.0]
    before["workload"]["prompts_per_level"] = 120.0
    before["repeats"] = 3.0
    assert resume(told(), EarlierRun("run-1", before, (kept("baseline", 1),)))["earlier"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"workload": {"prompts_per_level": 120, "seed": 1}}, "`workload.seed` was 0 and is 1"),
        ({"workload": {"prompts_per_level": 120, "dataset": "sharegpt"}}, "`workload.dataset`"),
        ({"concurrency": [1, 2, 4]}, "`concurrency` was 1 and 2 and is 1, 2 and 4"),
        ({"repeats": 2}, "`repeats`"),
        ({"tokenizer": "meta/other"}, "`tokenizer`"),
        ({"location": "europe-west4"}, "`location`"),
        ({"slo": {"tpot_ms": 20.0}}, "`slo.tpot_ms` was 30.0 and is 20.0"),
        ({"slo": None}, "`slo.tpot_ms` was 30.0 and is not set"),
        ({"model": "meta/llama4@other"}, "`variants.baseline.model`"),
        ({"serving": {"image": "sglang:2", "args": ["--tp=8"]}}, "`variants.baseline.serving.image`"),
        ({"serving": {"image": "sglang:1", "args": ["--tp=4"]}}, "`variants.baseline.serving.args`"),
        ({"serving": {"image": "sglang:1", "args": ["--tp=8"], "machine_type": "a3-megagpu-8g"}}, "machine_type"),
    ],
)
def test_what_makes_another_measurement_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as refused:
        resume(told(**changes), earlier(kept("baseline", 1)))
    assert field in refused.value.message
    assert "run-1" in refused.value.message


@pytest.mark.parametrize(
    "changes",
    [
        {"serving": {"image": "sglang:1", "args": ["--tp=8"], "deploy_timeout_s": 7200, "spot": True}},
        {"workload": {"prompts_per_level": 120, "store_text": False}},
        {"max_failure_rate": 0.1, "price_per_hour": 88.0, "max_hours": 2.0},
        {"variants": [{"id": "baseline", "label": "before"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE"]}]},
        {"variants": [{"id": "baseline"}, {"id": "ngram", "args": ["--speculative-algo=NGRAM"]}]},
    ],
)
def test_what_does_not_matter_to_the_cells_that_are_taken_may_differ(changes: dict[str, Any]) -> None:
    assert resume(told(**changes), earlier(kept("baseline", 1), kept("baseline", 2)))["earlier"]


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": None},
        {"failure": {"stage": "benchmark", "kind": "budget", "message": "not begun"}},
        {"counts": {"requested": 60, "completed": 60, "failed": 0, "empty": 0}},  # cut short
        {"counts": {"requested": 120, "completed": 110, "failed": 10, "empty": 0}},  # too many failures
        {"prompts": None},
        {"concurrency": 1, "duration_s": -1.0},  # damaged
    ],
)
def test_a_cell_that_is_not_whole_is_measured_anew(changes: dict[str, Any]) -> None:
    assert not whole(kept("eagle3", 1, **changes).cell)
    new = resume(told(), earlier(kept("baseline", 1), kept("eagle3", 1, **changes)))
    assert [variant["levels"] for variant in new["variants"]] == [[2], [1, 2]]


def test_a_cell_that_knew_enough_before_its_last_round_is_whole() -> None:
    saving = {"rounds": 1, "requests": 60, "tpot_width": 0.01, "throughput_width": 0.01}
    counts = {"requested": 60, "completed": 60, "failed": 0, "empty": 0}
    assert whole(kept("eagle3", 1, counts=counts, saving=saving).cell)


WITH = {
    "processor": "Slow 1",
    "cores": 2,
    "engines.baseline": ["serve", "/m", "--threads=2"],
    "engines.eagle3": ["serve", "/m"],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"processor": "Fast 2"}, "`processor` was 'Slow 1' and is 'Fast 2'"),
        ({"cores": 4}, "`cores` was 2 and is 4"),
        (
            {"engines.baseline": ["serve", "/m", "--threads=4"]},
            "`engines.baseline` had --threads=2 and has --threads=4.",
        ),
        ({"engines.baseline": ["serve", "/m"]}, "`engines.baseline` had --threads=2 and has it no more."),
        ({"engines.baseline": ["A=1", "serve", "/m", "--threads=2"]}, "`engines.baseline` had no A=1."),
        (
            {"engines.baseline": ["/m", "serve", "--threads=2"]},
            "`engines.baseline` was serve, /m and --threads=2 and is /m, serve and --threads=2.",
        ),
        ({"engines.baseline": ["other"]}, "`engines.baseline` was serve, /m and --threads=2 and is other."),
    ],
)
def test_another_machine_and_another_engine_make_another_measurement(changes: dict[str, Any], words: str) -> None:
    before = EarlierRun("run-1", told(), (kept("baseline", 1),), WITH)
    assert resume(told(), before, WITH)["earlier"]
    with pytest.raises(InputError) as refused:
        resume(told(), before, WITH | changes)
    assert f"run-1 was measured otherwise: {words}" in str(refused.value)
    assert "run without --resume" in str(refused.value)


def test_the_engine_of_a_variant_that_is_measured_anew_may_be_another() -> None:
    before = EarlierRun("run-1", told(), (kept("baseline", 1),), WITH)
    assert resume(told(), before, WITH | {"engines.eagle3": ["other"]})["earlier"]
    without = {name: value for name, value in WITH.items() if name != "engines.eagle3"}
    assert resume(told(), before, without)["earlier"]


def test_results_of_machines_that_nobody_knows_are_not_mixed_with_those_of_this_one() -> None:
    with pytest.raises(InputError, match="its machine and engines are not known"):
        resume(told(), earlier(kept("baseline", 1)), WITH)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"location": None}, "`location` is missing"),
        ({"workload": {"prompts_per_level": "many"}}, "prompts_per_level"),
        ({"variants": [{"name": "x"}]}, "id"),
        ({"concurrency": 7}, "not the parameters of a run"),
    ],
)
def test_parameters_that_are_none_are_said_in_one_sentence_with_their_file(change: dict[str, Any], words: str) -> None:
    parameters = {key: value for key, value in (told() | change).items() if value is not None}
    before = EarlierRun("run-1", parameters, (kept("baseline", 1),), None, "out/run.json")
    with pytest.raises(InputError) as refused:
        resume(told(), before)
    assert refused.value.message.startswith("--resume: out/run.json: not the parameters of a run: ")
    assert words in refused.value.message
    assert "\n" not in str(refused.value)


def test_two_results_of_one_cell_are_none() -> None:
    twice = Kept("gs://b/other/1/run-1/benchmark/cell", kept("baseline", 1).cell)
    new = resume(told(), earlier(kept("baseline", 1), twice, kept("baseline", 2)))
    assert new["variants"][0]["levels"] == [1]


def test_variants_with_different_prompts_are_no_pair() -> None:
    other = {"count": 120, "sha256": "0" * 64}
    with pytest.raises(InputError, match="different prompts at concurrency 1"):
        resume(told(), earlier(kept("baseline", 1), kept("eagle3", 1, prompts=other)))


def test_nothing_to_take_and_nothing_to_measure_are_said() -> None:
    with pytest.raises(InputError, match="no whole result"):
        resume(told(), earlier(kept("other", 1)))
    here = EarlierRun("run-1", told(), tuple(kept(*key) for key in GRID), WITH, "out/run.json")
    with pytest.raises(InputError, match=r"nothing is missing in run-1\. Its results and the answer are in out\."):
        resume(told(), here, WITH)
    with pytest.raises(InputError, match="nothing is missing"):
        resume(told(), earlier(*(kept(*key) for key in GRID)))


def test_the_parameters_stay_small() -> None:
    levels = list(range(1, 33))
    cells = [kept(variant, level) for variant in ("baseline", "eagle3") for level in levels][:-1]
    new = resume(told(concurrency=levels), earlier(*cells, concurrency=levels))
    assert len(str(new["earlier"])) < 64 * 100
