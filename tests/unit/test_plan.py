"""What `plan` says: the budget beside the estimate, the table where there is little room, what all checks mean."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from eagle_bench import config_file
from eagle_bench.estimate import Assumptions, Range
from eagle_bench.planning.quick_checks import heed, machine_checks
from eagle_bench.report.plan_tables import assumptions, conclusion, endpoints, totals
from eagle_bench.report.terminal import print_table
from eagle_bench.run_plan import Check, run_plan

MODEL = "meta/llama4@llama-4-scout-17b-16e-instruct"
FIXED = Assumptions(
    ms_per_token=Range(low=10, high=20),
    first_token_ms=Range(low=100, high=100),
    tokens_per_answer=Range(low=100, high=100),
)
ENDPOINT = "projects/my-project/locations/us-central1/endpoints/1234567890123456789"


def config(**fields):
    variants = [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=X"]}]
    given = {
        "project": "p",
        "location": "l",
        "model": MODEL,
        "tokenizer": "a/b",
        "serving": {"accelerator": {"type": "NVIDIA_H100_80GB", "count": 8}},
        "variants": variants,
        "price_per_hour": 88.0,
    }
    return config_file.validate({**given, **fields})


def shown(given) -> str:
    file = io.StringIO()
    print_table(endpoints(run_plan(given, FIXED, ())), Console(file=file, width=80))
    return file.getvalue()


def check(status, name, text="", **more):
    return Check(name=name, status=status, text=text, **more)


def test_no_name_is_broken_in_eighty_columns():
    text = shown(config())
    assert MODEL in text
    assert text.count("a3-highgpu-8g") == text.count("NVIDIA_H100_80GB") == 2
    assert text.count("$88.00/h") == 2
    existing = [{"id": "baseline", "endpoint": ENDPOINT}, {"id": "eagle3", "url": "http://10.0.0.7:8000/v1"}]
    text = shown(config(variants=existing, serving={}))
    assert "1234567890123456789" in text and "http://10.0.0.7:8000/v1" in text
    assert "Price" not in text and "$" not in text


def test_what_is_not_known_is_named_and_times_are_read_easily():
    given = config(price_per_hour=None)
    plan = run_plan(given, Assumptions(), (), here=False)
    line = next(iter(totals(plan)))
    assert "h, its cost not known without `price_per_hour`; " in line
    assert plan.estimate.run_h.hours_shown() in line
    assert "Time" in endpoints(plan).heads


def test_of_what_runs_already_no_deployment_is_told():
    existing = [{"id": name, "endpoint": f"{ENDPOINT}{name}"} for name in ("baseline", "eagle3")]
    for given, told in ((config(), True), (config(variants=existing, serving={}), False)):
        plan = run_plan(given, FIXED, ())
        words = " ".join((*totals(plan), *assumptions(plan)))
        assert ("deploy" in words) is told and ("$" in words) is told


@pytest.mark.parametrize(
    ("hours", "status", "words"),
    [
        (None, None, ""),
        (1000.0, "ok", "1000 h are above"),
        (0.01, "warning", "ends it before"),
        (2.0, "warning", "may end"),
    ],
)
def test_the_estimate_is_held_against_the_budget(hours, status, words):
    plan = run_plan(config(max_hours=hours), FIXED, ())
    assert plan.estimate.run_h.low < 2.0 < plan.estimate.run_h.high
    assert [one.status for one in plan.checks] == ([status] if status else [])
    assert all(words in one.text and plan.estimate.run_h.shown("h") in one.text for one in plan.checks)
    assert plan.may_run


def test_an_estimate_that_just_reaches_the_budget_is_a_warning():
    reached = run_plan(config(), FIXED, ()).estimate.run_h.high
    (found,) = run_plan(config(max_hours=reached), FIXED, ()).checks
    assert found.status == "warning"


def test_the_last_line_says_what_is_true():
    assert conclusion([check("ok", "a"), check("not needed", "b", "no use.")]) == "Nothing was found against it."
    left = [check("not checked", "quota", "no credentials."), check("not checked", "job", "no credentials. And more.")]
    assert conclusion([check("ok", "a"), *left]) == (
        "Nothing was found against it. 2 checks were not made: there the run may still fail."
    )
    warned = check("warning", "max_hours", "too long.")
    assert conclusion([warned, left[0]]) == (
        "Nothing is refused; a warning stands at max_hours. 1 check was not made: there the run may still fail."
    )
    assert conclusion([check("refused", "data"), warned]) == "It may not run: data refused."


def test_a_machine_that_is_not_known_is_a_warning(monkeypatch):
    monkeypatch.delenv("EAGLE_BENCH_VERTEX_API", raising=False)
    (known,) = machine_checks(config())
    assert (known.status, known.text) == ("ok", "a3-highgpu-8g has 8 NVIDIA_H100_80GB.")
    (found,) = machine_checks(config(serving={"machine_type": "a3-highgpu-9g"}))
    assert found.status == "warning" and "Did you mean `a3-highgpu-8g`?" in found.text
    said: list[str] = []
    heed([known, found], said.append)
    assert len(said) == 1
    assert said[0].startswith("warning: `machine_type: a3-highgpu-9g` is not known to this version.")
