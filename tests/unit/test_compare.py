"""From cells to an answer: pairing, validity, what is missing, determinism, money and answers."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, LevelComparison, Plan
from eagle_bench.report import html
from eagle_bench.results import CellResult
from simulated_cells import BASELINE, EAGLE, Engine, cell

FAST, SLOW = Engine(step_ms=9, slope=0.03), Engine(step_ms=16, slope=0.03)


def cells(*given: dict[str, Any]) -> list[CellResult]:
    return [CellResult.model_validate(one) for one in given]


def answer(*given: dict[str, Any], **plan: Any) -> Comparison:
    variants = tuple(dict.fromkeys(("baseline", *(one["variant"] for one in given))))
    levels = tuple(sorted({one["concurrency"] for one in given}))
    settled = Plan(**{"baseline": "baseline", "variants": variants, "levels": levels, **plan})
    return compare(settled, cells(*given), resamples=400)


def only(comparison: Comparison, variant: str = "eagle3") -> LevelComparison:
    [found] = [c for c in comparison.comparisons if c.variant == variant]
    return found


def codes(comparison: Comparison) -> set[str]:
    return {warning.code for warning in comparison.warnings}


def test_a_faster_variant() -> None:
    before, after = cell("baseline", 2, BASELINE), cell("eagle3", 2, FAST)
    found = only(answer(before, after))
    assert found.verdict == "faster"
    assert found.paired_prompts == 120
    tpot = found.speedup.tpot
    assert tpot.low < tpot.estimate < tpot.high
    assert tpot.estimate == pytest.approx(before["metrics"]["tpot_ms"]["p50"] / after["metrics"]["tpot_ms"]["p50"])
    assert tpot.estimate == pytest.approx(12 / 9, rel=0.1)
    rates = [one["metrics"]["output_tokens_per_s"] for one in (before, after)]
    assert found.speedup.throughput.estimate == pytest.approx(rates[1] / rates[0])
    assert found.speedup.throughput.low < found.speedup.throughput.estimate < found.speedup.throughput.high


def test_a_speed_up_above_one_is_better_for_times_and_for_rates() -> None:
    worse = only(answer(cell("baseline", 1, BASELINE), cell("eagle3", 1, SLOW)))
    assert worse.verdict == "slower"
    assert worse.speedup.tpot.estimate < 1 and worse.speedup.throughput.estimate < 1 and worse.speedup.e2e.estimate < 1


def test_order_does_not_matter_and_a_seed_settles_all_numbers() -> None:
    given = [cell(v, c, e) for v, e in (("baseline", BASELINE), ("eagle3", EAGLE)) for c in (1, 4)]
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(4, 1))
    one, other = (compare(plan, cells(*order), resamples=300) for order in (given, given[::-1]))
    assert one.model_dump_json() == other.model_dump_json()
    assert compare(plan, cells(*given), resamples=300, seed=9).comparisons != one.comparisons
    assert one.levels == (1, 4)


def test_only_prompts_completed_in_both_are_paired() -> None:
    before, after = cell("baseline", 1, BASELINE), cell("eagle3", 1, FAST)
    for index, side in ((0, before), (1, after)):
        side["requests"][index].update(
            ttft_ms=None, e2e_ms=None, output_tokens=None, error={"kind": "timeout", "status": None, "body": ""}
        )
        side["counts"].update(completed=119, failed=1)
    found = only(answer(before, after))
    assert found.paired_prompts == 118
    kept = [i for i in range(120) if i > 1]
    tpots = [
        statistics.median(
            (r["e2e_ms"] - r["ttft_ms"]) / (r["output_tokens"] - 1) for r in (side["requests"][i] for i in kept)
        )
        for side in (before, after)
    ]
    assert found.speedup.tpot.estimate == pytest.approx(tpots[0] / tpots[1])


def test_a_missing_cell_is_named() -> None:
    comparison = answer(cell("baseline", 1), cell("baseline", 4), cell("eagle3", 1, FAST))
    [one, four] = comparison.comparisons
    assert one.verdict == "faster"
    assert four.verdict == "invalid" and four.speedup is None
    assert four.reasons == ("eagle3 has no result",)
    assert "missing_cell" in codes(comparison)
    assert "no valid result at concurrency 4" in comparison.decisions[0].text


def test_a_cell_that_came_twice_is_not_guessed() -> None:
    comparison = answer(cell("baseline", 1), cell("eagle3", 1, FAST), cell("eagle3", 1, SLOW, seed=1))
    assert only(comparison).verdict == "invalid"
    assert "came in more than once" in only(comparison).reasons[0]
    assert "duplicate_cell" in codes(comparison)
    assert comparison.decisions[0].turn_on is None


def test_a_cell_outside_the_plan_is_left_out_and_said() -> None:
    comparison = answer(cell("baseline", 1), cell("eagle3", 1, FAST), cell("eagle3", 64, SLOW), levels=(1,))
    assert [c.concurrency for c in comparison.comparisons] == [1]
    assert "unplanned_cell" in codes(comparison)


@pytest.mark.parametrize("dead", ["eagle3", "baseline"])
def test_all_requests_failed(dead: str) -> None:
    engines = {"baseline": BASELINE, "eagle3": FAST}
    engines[dead] = Engine(failing=1.0, error=("server-error", 503, "no capacity"))
    comparison = answer(*(cell(v, c, e) for v, e in engines.items() for c in (1, 2)))
    for found in comparison.comparisons:
        assert found.verdict == "invalid" and found.speedup is None
        assert f"{dead}: none of 120 requests was answered" in found.reasons[0]
        assert "server-error 503" in found.reasons[0]
    assert comparison.decisions[0].turn_on is None
    assert comparison.decisions[0].text.startswith("Can't tell whether eagle3 pays")
    assert all(view.tpot_ms is None for view in comparison.views if view.variant == dead)
    assert comparison.failures[0].body == "no capacity" and comparison.failures[0].count == 120


def test_a_deploy_that_crashed_is_explained() -> None:
    crashed = CellResult.model_validate(
        {
            "variant": "eagle3", "concurrency": 1, "settings": None, "counts": {}, "metrics": None, "acceptance": None,
            "token_source": None, "prompts": None, "client": None,
            "failure": {"stage": "deploy", "kind": "image", "message": "the container exited: no draft model."},
        }
    )  # fmt: skip
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(1,))
    comparison = compare(plan, [*cells(cell("baseline", 1)), crashed], resamples=100)
    assert only(comparison).reasons == ("eagle3: deploy failed: the container exited: no draft model",)
    assert "cell_failed" in codes(comparison)
    assert comparison.views[0].tpot_ms is not None


@pytest.mark.parametrize(("failing", "verdict"), [(0.0, "faster"), (0.08, "invalid")])
def test_too_many_failures_take_a_cell_out(failing: float, verdict: str) -> None:
    fast = Engine(step_ms=9, failing=failing)
    comparison = answer(cell("baseline", 1), cell("eagle3", 1, fast))
    assert only(comparison).verdict == verdict
    if failing:
        assert "2 % are allowed" in only(comparison).reasons[0]
        assert only(answer(cell("baseline", 1), cell("eagle3", 1, fast), max_failure_rate=0.5)).verdict == "faster"


def test_a_few_failures_show_their_count_and_the_servers_words() -> None:
    comparison = answer(cell("baseline", 1), cell("eagle3", 1, Engine(step_ms=9, failing=0.01), prompts=300, seed=3))
    [warning] = [w for w in comparison.warnings if w.code == "failures"]
    failed = comparison.cells[1].counts.failed
    assert 0 < failed <= 6
    assert f"{failed} of 300 requests failed" in warning.text and "overloaded" in warning.text


def test_different_prompts_are_not_compared() -> None:
    found = answer(cell("baseline", 1), cell("eagle3", 1, FAST, prompt_salt="x"))
    assert only(found).verdict == "invalid" and "different prompts" in only(found).reasons[0]
    assert "different_prompts" in codes(found)


def test_tokens_counted_in_two_ways_are_not_compared() -> None:
    found = answer(cell("baseline", 1), cell("eagle3", 1, FAST, token_source="tokenizer"))
    assert only(found).verdict == "invalid"
    assert "token_source" in codes(found)


@pytest.mark.parametrize("baseline", ["usage", "mixed"])
def test_a_cell_whose_tokens_were_counted_in_two_ways_is_in_no_verdict(baseline: str) -> None:
    found = answer(cell("baseline", 1, token_source=baseline), cell("eagle3", 1, FAST, token_source="mixed"))
    assert only(found).verdict == "invalid"
    assert any("counted in two ways" in reason for reason in only(found).reasons)
    assert "both in one cell" in html.render(found)


def test_too_few_requests_stay_inconclusive() -> None:
    found = answer(cell("baseline", 8, prompts=90), cell("eagle3", 8, FAST, prompts=90))
    assert only(found).verdict == "inconclusive"
    assert only(found).reasons[0] == "baseline has 90 of the 160 requests that concurrency 8 needs"
    assert "too_few_requests" in codes(found)


def test_without_details_there_is_an_estimate_and_no_verdict() -> None:
    found = answer(cell("baseline", 1, details=False), cell("eagle3", 1, FAST, details=False))
    tpot = only(found).speedup.tpot
    assert (tpot.low, tpot.high) == (None, None) and tpot.estimate > 1.2
    assert only(found).verdict == "inconclusive"
    assert "no single requests" in only(found).reasons[0]
    assert "no_details" in codes(found)


def test_the_same_engine_twice_is_not_called_different() -> None:
    found = answer(*(cell(v, c, BASELINE, prompts=600) for v in ("baseline", "eagle3") for c in (1, 2)))
    assert {c.verdict for c in found.comparisons} == {"inconclusive"}
    assert found.decisions[0].turn_on in (None, False)


@pytest.mark.parametrize("details", [True, False])
@pytest.mark.parametrize("ms", [0.0, -0.5])
@pytest.mark.parametrize("flat", [("baseline",), ("eagle3",), ("baseline", "eagle3")])
def test_answers_in_one_piece_have_no_tpot_and_no_verdict(flat: tuple[str, ...], ms: float, details: bool) -> None:
    given = [cell(v, 1, BASELINE, details=details) for v in ("baseline", "eagle3")]
    for one in (one for one in given if one["variant"] in flat):
        one["metrics"]["tpot_ms"] = {"p50": ms, "p90": ms, "mean": ms}
        for request in one["requests"]:
            request["e2e_ms"] = request["ttft_ms"] + ms * (request["output_tokens"] - 1)
    comparison = answer(*given)
    found = only(comparison)
    assert found.verdict == "inconclusive" and found.speedup.tpot is None
    assert f"the answers of {' and '.join(flat)} came in one piece" in found.reasons[0]
    assert "came in one piece" in comparison.decisions[0].text


def test_several_variants_each_against_the_baseline_and_the_best_of_them() -> None:
    twin = Engine(step_ms=9.05)
    found = answer(
        *(cell(v, 1, e, prompts=240) for v, e in (("baseline", BASELINE), ("a", FAST), ("b", twin), ("c", SLOW)))
    )
    assert {c.variant: c.verdict for c in found.comparisons} == {"a": "faster", "b": "faster", "c": "slower"}
    assert set(found.best[0].variants) == {"a", "b"}
    clear = answer(*(cell(v, 1, e) for v, e in (("baseline", BASELINE), ("a", FAST), ("b", Engine(step_ms=6)))))
    assert clear.best[0].variants == ("b",)


def test_cost_objective_and_savings() -> None:
    found = answer(
        cell("baseline", 1), cell("eagle3", 1, FAST), price_per_hour=36.0, slo_ttft_ms=500.0, slo_tpot_ms=15.0
    )  # fmt: skip
    for view in found.views:
        rate = view.output_tokens_per_s.value
        assert view.dollars_per_million_tokens == pytest.approx(36 / 3600 / rate * 1e6)
    before, after = (view.dollars_per_million_tokens for view in found.views)
    assert f"At concurrency 1 it saves ${before - after:.2f} per million output tokens." in found.decisions[0].text
    assert only(found).break_even == pytest.approx(before / after)
    assert [view.meets_slo for view in found.views] == [False, True]


def test_cells_are_kept_without_their_requests() -> None:
    found = answer(cell("baseline", 1), cell("eagle3", 1, FAST))
    assert all(kept.requests == () and kept.counts.requested == 120 for kept in found.cells)
    assert all(len(view.tpot_quantiles_ms) == 41 for view in found.views)


def test_views_hold_medians_with_order_statistics() -> None:
    given = cell("baseline", 1, prompts=101, rounds=1)
    found = answer(given, cell("eagle3", 1, FAST, prompts=101, rounds=1))
    view = found.views[0]
    ttfts = sorted(r["ttft_ms"] for r in given["requests"])
    assert view.ttft_ms.value == pytest.approx(ttfts[50])
    assert view.ttft_ms.low in [pytest.approx(v) for v in ttfts] and view.ttft_ms.low < ttfts[50] < view.ttft_ms.high
    assert view.user_tokens_per_s == pytest.approx(1000 / given["metrics"]["tpot_ms"]["p50"])
    assert math.isclose(view.tpot_quantiles_ms[20], view.tpot_ms.value)


def test_the_json_is_read_back_as_it_was() -> None:
    found = answer(cell("baseline", 1), cell("eagle3", 1, FAST))
    assert Comparison.model_validate_json(found.model_dump_json()) == found
