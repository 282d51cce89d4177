"""Results that look like an answer and are none: too few pairs, a level that was not held, other rounds, other objectives."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, Plan
from eagle_bench.report.html import render
from eagle_bench.report.tables import objectives
from eagle_bench.results import CellResult
from simulated_cells import BASELINE, Engine, cell

FAST = Engine(step_ms=8)


def answer(*given: dict[str, Any], **plan: Any) -> Comparison:
    variants = tuple(dict.fromkeys(("baseline", *(one["variant"] for one in given))))
    levels = tuple(sorted({one["concurrency"] for one in given}))
    settled = Plan(**{"baseline": "baseline", "variants": variants, "levels": levels, **plan})
    return compare(settled, [CellResult.model_validate(one) for one in given], resamples=400)


def codes(found: Comparison) -> set[str]:
    return {warning.code for warning in found.warnings}


def test_too_few_requests_that_show_no_difference_decide_nothing() -> None:
    found = answer(cell("baseline", 8, prompts=60, spread=0), cell("eagle3", 8, prompts=60, spread=0))
    [level], [decision] = found.comparisons, found.decisions
    assert level.short
    assert level.verdict == "inconclusive"
    assert decision.turn_on is None
    assert "60 of the 160 requests" in decision.text
    assert "to settle" not in decision.text  # what is missing is known: no advice from an interval that means nothing


def test_rounds_that_only_one_side_has_leave_too_few_pairs() -> None:
    once, often = cell("baseline", 1, rounds=1), cell("eagle3", 1, FAST, rounds=10)
    often["prompts"] = once["prompts"]  # the same ones, in another order
    found = answer(once, often)
    [level] = found.comparisons
    assert (level.paired_prompts, level.short, level.verdict) == (12, True, "inconclusive")
    assert "12 prompts can be paired" in level.reasons[0]
    assert "rounds_differ" in codes(found)


def test_failures_that_are_allowed_do_not_make_a_level_short() -> None:
    other = cell("eagle3", 2, FAST, prompts=51)
    nothing = {"ttft_ms": None, "e2e_ms": None, "output_tokens": None, "text": None}
    other["requests"][7] |= {"error": {"kind": "overload", "status": 503, "body": "busy"}, **nothing}
    other["counts"] |= {"completed": 50, "failed": 1}
    found = answer(cell("baseline", 2, prompts=51), other)
    [level] = found.comparisons
    assert level.paired_prompts == 50
    assert not level.short
    assert level.verdict == "faster"


def one_after_another(given: dict[str, Any]) -> dict[str, Any]:
    """The same requests, each sent when the one before had ended; nothing was ever in flight beside another."""
    for window in given["rounds"]:
        window |= {"requests_per_s": None, "output_tokens_per_s": None}
    return given


def test_a_concurrency_that_was_never_held_is_no_result_of_it() -> None:
    found = answer(cell("baseline", 4), one_after_another(cell("eagle3", 4, FAST)), price_per_hour=10.0)
    [level], view = found.comparisons, found.views[1]
    assert level.verdict == "invalid"
    assert "never had 4 requests in flight" in level.reasons[0]
    assert view.dollars_per_million_tokens is None
    assert found.decisions[0].turn_on is None


def test_a_rate_of_requests_holds_no_concurrency() -> None:
    other = cell("eagle3", 4, FAST)
    other["environment"]["request_rate"] = "2.0"
    [level] = answer(cell("baseline", 4), other).comparisons
    assert level.verdict == "invalid"
    assert "2.0 requests a second" in level.reasons[0]


def test_rates_are_held_against_each_other_over_the_rounds_of_both() -> None:
    whole, early = cell("baseline", 1, prompts=150), cell("eagle3", 1, prompts=150)
    whole["rounds"][2]["output_tokens_per_s"] *= 5  # long answers, which the other never got to
    whole["metrics"]["output_tokens_per_s"] = statistics.fmean(w["output_tokens_per_s"] for w in whole["rounds"])
    early["rounds"] = early["rounds"][:2]
    early["requests"] = [request for request in early["requests"] if request["round"] < 2]
    early["counts"] |= {"requested": 100, "completed": 100}
    found = answer(whole, early, price_per_hour=10.0)
    [level] = found.comparisons
    assert level.speedup is not None
    assert level.speedup.throughput is not None
    assert level.speedup.throughput.estimate == pytest.approx(1, rel=0.05)
    assert level.break_even == pytest.approx(1, rel=0.05)
    assert "rounds_differ" in codes(found)
    assert "output_length" not in codes(found)


def test_without_a_clock_there_is_no_throughput() -> None:
    given = [cell("baseline", 1), cell("eagle3", 1, FAST)]
    for one in given:
        one["metrics"]["output_tokens_per_s"] = None
        for window in one["rounds"]:
            window["output_tokens_per_s"] = None
    [level] = answer(*given).comparisons
    assert level.verdict == "faster"
    assert level.speedup is not None
    assert level.speedup.throughput is None
    assert level.break_even is None


def test_an_objective_is_not_kept_by_a_cell_that_is_out() -> None:
    failing = cell("eagle3", 4, Engine(failing=0.4))
    given = [cell("baseline", 1), cell("baseline", 4), cell("eagle3", 1), failing]
    found = answer(*given, slo_ttft_ms=1e6, slo_tpot_ms=1e6, price_per_hour=10.0)
    views = {(view.variant, view.concurrency): view for view in found.views}
    assert views["baseline", 4].meets_slo is True
    assert views["eagle3", 4].meets_slo is None
    assert views["eagle3", 4].dollars_per_million_tokens is None
    page = render(found)
    assert "eagle3: kept up to concurrency 1; not known at 4" in page
    table = objectives(found)
    assert table is not None
    assert table.rows[1][2] == "–"


def test_what_is_not_known_is_not_called_missed() -> None:
    found = answer(cell("baseline", 1), cell("eagle3", 1, Engine(failing=1.0)), slo_tpot_ms=1e6)
    assert "eagle3: not known at the lowest level" in render(found)


@pytest.mark.parametrize(("limit_ms", "share"), [(1e6, 1.0), (0.001, 0.0)])
def test_goodput_is_of_the_objective_that_is_asked_for(limit_ms: float, share: float) -> None:
    given = [cell("baseline", 1), cell("eagle3", 1)]
    for one in given:
        one["settings"] |= {"slo_tpot_ms": 30.0}
        one["metrics"]["goodput"] = 123.0
    found = answer(*given, slo_tpot_ms=limit_ms)
    for one in found.cells:
        assert one.metrics is not None
        assert one.metrics.requests_per_s is not None
        assert one.metrics.goodput == pytest.approx(share * one.metrics.requests_per_s, rel=0.05)


def test_levels_without_a_result_above_a_flat_one_could_still_gain() -> None:
    dead = Engine(failing=1.0)
    given = [cell(v, c, e, spread=0) for v, e in (("baseline", BASELINE), ("eagle3", dead)) for c in (2, 4)]
    [decision] = answer(
        cell("baseline", 1, spread=0, prompts=400), cell("eagle3", 1, spread=0, prompts=400), *given
    ).decisions
    assert decision.turn_on is None
    assert "no valid result at concurrency 2 and 4" in decision.text
