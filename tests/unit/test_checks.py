"""What makes a result suspect: each check fires on its cause, names numbers and a next step, and only then."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, Losslessness, Plan, Warning
from eagle_bench.losslessness import compare_answers, excess
from eagle_bench.report.terminal import print_comparison
from eagle_bench.results import CellResult
from eagle_bench.variants import MACHINES
from simulated_cells import BASELINE, EAGLE, Engine, cell

FAST = Engine(step_ms=9)


def answer(*given: dict[str, Any], **plan: Any) -> Comparison:
    variants = tuple(dict.fromkeys(one["variant"] for one in given))
    levels = tuple(sorted({one["concurrency"] for one in given}))
    settled = Plan(**{"baseline": "baseline", "variants": variants, "levels": levels, **plan})
    return compare(settled, [CellResult.model_validate(one) for one in given], resamples=300)


def found(code: str, comparison: Comparison) -> Warning:
    [warning] = [w for w in comparison.warnings if w.code == code]
    return warning


def pair(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    before, after = cell("baseline", 1, prompts=150), cell("eagle3", 1, FAST, prompts=150)
    after.update(changes)
    return before, after


def test_a_clean_result_has_no_warning() -> None:
    assert answer(*pair()).warnings == ()


def test_output_lengths_that_differ() -> None:
    before, after = pair()
    after["metrics"]["mean_output_tokens"] = before["metrics"]["mean_output_tokens"] * 1.05
    warning = found("output_length", answer(before, after))
    assert "5 % apart" in warning.text and (warning.variant, warning.concurrency) == ("eagle3", 1)
    after["metrics"]["mean_output_tokens"] = before["metrics"]["mean_output_tokens"] * 1.015
    assert answer(before, after).warnings == ()


def test_a_speed_up_above_the_acceptance_length_is_impossible() -> None:
    warning = found("impossible_speedup", answer(*pair(acceptance={"length": 1.15, "source": "metrics"})))
    assert "1.15" in warning.text
    comparison = answer(*pair(acceptance={"length": 1.15, "source": "response"}))
    assert comparison.comparisons[0].verdict == "invalid" and comparison.decisions[0].turn_on is None
    assert "more than the acceptance length of 1.15 allows" in comparison.decisions[0].text
    assert answer(*pair(acceptance={"length": 1.6, "source": "metrics"})).warnings == ()


@pytest.mark.parametrize(("tokens_per_step", "warned"), [(0.25, True), (0.5, False)])
def test_a_slow_down_beyond_what_drafts_cost_is_worth_a_look(tokens_per_step: float, warned: bool) -> None:
    slow = Engine(step_ms=12.0, tokens_per_step=tokens_per_step)
    comparison = answer(cell("baseline", 1), cell("eagle3", 1, slow))
    assert ("implausible_slowdown" in {warning.code for warning in comparison.warnings}) is warned


def test_acceptance_near_one_is_a_broken_draft() -> None:
    comparison = answer(
        cell("baseline", 1),
        cell("eagle3", 1, Engine(step_ms=14)) | {"acceptance": {"length": 1.04, "source": "metrics"}},
    )
    assert "1.04 (from metrics)" in found("acceptance_near_one", comparison).text


def test_chunks_refute_nothing() -> None:
    """A server that sends accepted tokens one by one has one token a chunk, however many are accepted."""
    comparison = answer(*pair(acceptance={"length": 1.0, "source": "chunks"}))
    assert comparison.comparisons[0].verdict == "faster"
    assert [w.code for w in comparison.warnings] == ["acceptance_unknown"]
    assert answer(*pair(acceptance={"length": 1.2, "source": "chunks"})).warnings == ()


@pytest.mark.parametrize("acceptance", [None, {"length": 30.0, "source": "chunks"}])
def test_a_speed_up_beyond_anything_plausible_is_no_answer(acceptance: dict[str, Any] | None) -> None:
    quick = cell("eagle3", 1, Engine(step_ms=1.0), prompts=150) | {"acceptance": acceptance}
    comparison = answer(cell("baseline", 1, prompts=150), quick)
    assert comparison.comparisons[0].verdict == "invalid" and comparison.decisions[0].turn_on is None
    assert "beyond what speculation can do" in found("impossible_speedup", comparison).text
    assert answer(cell("baseline", 1), cell("eagle3", 1, Engine(step_ms=2))).decisions[0].turn_on is True


def test_servers_that_name_another_model_are_worth_a_look() -> None:
    before, after = pair()
    for one, name in ((before, "llama"), (after, "qwen")):
        one["capabilities"] = {"usage_in_stream": True, "server_model": name}
    comparison = answer(before, after)
    assert "qwen" in found("server_model", comparison).text and comparison.comparisons[0].verdict == "faster"


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_output_tokens", 256), ("temperature", 0.7), ("ignore_eos", True), ("payload_sha256", "b")],
)
def test_other_work_takes_a_level_out(field: str, value: Any) -> None:
    before, after = pair()
    before["settings"] = before["settings"] | {"payload_sha256": "a"}
    after["settings"] = before["settings"] | {field: value}
    level = answer(before, after).comparisons[0]
    assert level.verdict == "invalid"
    assert level.reasons[0].startswith("unequal settings") and field in level.reasons[0]
    allowed = answer(before, after, allow_difference=True)
    assert allowed.comparisons[0].verdict == "faster" and found("unequal_settings", allowed)


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"loop_lag_ms_p99": 45.0, "loop_lag_ms_mean": 6.1}, "6.10 ms late on average (10 % of the median TTFT)"),
        ({"loop_lag_ms_p99": 90.0, "loop_lag_ms_mean": 60.0}, "4.3 % of the time from the first token to the last"),
        ({"loop_lag_ms_p99": 1.0, "cpu_fraction": 0.97}, "97 % of its processor"),
    ],
)
def test_a_saturated_client(client: dict[str, Any], said: str) -> None:
    text = found("client_saturated", answer(*pair(client=client))).text
    assert said in text
    assert text.endswith(
        "Give it more cores, or measure from another machine."
    )  # the client counts its processes itself


def test_single_late_timers_of_a_small_machine_are_no_finding() -> None:
    client = {"loop_lag_ms_p99": 45.0, "loop_lag_ms_mean": 1.5, "cpu_fraction": 0.6}
    assert answer(*pair(client=client)).warnings == ()


def test_what_a_cell_says_of_its_client_is_not_said_twice() -> None:
    client = {"loop_lag_ms_p99": 1.0, "cpu_fraction": 0.97}
    said = ["client_saturated: the client may have been the bottleneck"]
    assert [w.code for w in answer(*pair(client=client, warnings=said)).warnings] == ["client_saturated"]


def test_prompts_seen_twice_by_an_endpoint() -> None:
    given = [cell(v, c, e) for v, e in (("baseline", BASELINE), ("eagle3", FAST)) for c in (1, 2)]
    for one in given:
        for index, request in enumerate(one["requests"]):
            request["prompt_id"] = f"p{index}"
    reused = [w for w in answer(*given).warnings if w.code == "prompts_reused"]
    assert [w.variant for w in reused] == ["baseline", "eagle3"]
    assert "120 prompts reached baseline more than once" in reused[0].text


def test_settings_that_differ_in_more_than_speculation() -> None:
    settings = {
        "baseline": {"machine_type": "a3-highgpu-8g", "arguments": "--tp=8", "environment A": "1"},
        "eagle3": {"machine_type": "a2-highgpu-8g", "arguments": "--tp=8 --speculative-algo=EAGLE3"},
    }
    warning = found("unequal_settings", answer(*pair(), settings=settings))
    assert "machine_type (a3-highgpu-8g and a2-highgpu-8g)" in warning.text
    assert "arguments" not in warning.text and "environment" not in warning.text


def test_other_machines_and_other_limits_in_the_results() -> None:
    before, after = pair()
    after["environment"] = {"machine_type": "a2-highgpu-8g"}
    after["settings"] = before["settings"] | {"max_output_tokens": 256}
    text = found("unequal_settings", answer(before, after)).text
    assert "machine_type (a3-highgpu-8g and a2-highgpu-8g)" in text and "max_output_tokens (512 and 256)" in text


def test_few_rounds() -> None:
    comparison = answer(cell("baseline", 1, rounds=1), cell("eagle3", 1, FAST, rounds=1))
    assert "1 round" in found("few_rounds", comparison).text


def test_drift_that_keeps_a_level_open() -> None:
    drifting = [cell(v, 1, Engine(step_ms=s, drift=0.25), seed=4) for v, s in (("baseline", 12), ("eagle3", 11))]
    comparison = answer(*drifting)
    assert comparison.comparisons[0].verdict == "inconclusive" and comparison.comparisons[0].drift
    assert "Find out what else uses the servers" in found("drift", comparison).text
    assert "more than 10 times the rounds" in comparison.decisions[0].text
    one_machine = {"environment": {"machines": MACHINES["one-at-a-time"]}}
    text = found("drift", answer(*(one | one_machine for one in drifting))).text
    assert "`run --slots 2`" in text and "rounds (`repeats`" not in text


def test_drift_that_more_rounds_would_settle_gets_that_advice_alone() -> None:
    drifting = [cell(v, 1, Engine(step_ms=s, drift=0.15), seed=4) for v, s in (("baseline", 12), ("eagle3", 9))]
    comparison = answer(*drifting)
    assert comparison.comparisons[0].more_prompts is not None
    assert "in more rounds, would settle" in comparison.decisions[0].text
    text = found("drift", comparison).text
    assert "Measure in more rounds (`repeats`, or `bench --rounds`)" in text
    assert "--slots" not in text and "Find out" not in text


def test_drift_beside_a_sure_verdict_is_said_once_on_the_terminal() -> None:
    drifting = [
        cell(v, level, Engine(step_ms=s, drift=0.12), seed=4)
        for v, s in (("baseline", 30), ("eagle3", 8))
        for level in (1, 2)
    ]
    comparison = answer(*drifting)
    assert [(level.verdict, level.drift) for level in comparison.comparisons] == [("faster", True)] * 2
    shown = io.StringIO()
    print_comparison(comparison, Console(file=shown, width=400))
    (line,) = [line for line in shown.getvalue().splitlines() if "the endpoint drifted" in line]
    assert line.startswith("! eagle3 at concurrency 1 and 2: ")
    assert "not for what slowed one variant in all rounds" in line


@pytest.mark.parametrize("why", ["interrupted: the measurement was ended from outside", "budget: used up"])
def test_a_cell_that_was_cut_short_says_that_alone(why: str) -> None:
    """Too few requests, longer answers, a draft that fails: none of it is said."""
    before, after = pair(warnings=["one_piece: some answers", why], acceptance={"length": 1.0, "source": "chunks"})
    after["requests"], after["rounds"] = after["requests"][:20], after["rounds"][:1]
    after["counts"] |= {"requested": 20, "completed": 20}
    after["metrics"]["mean_output_tokens"] = before["metrics"]["mean_output_tokens"] * 1.05
    comparison = answer(before, after)
    (only,) = comparison.warnings
    assert (only.code, only.concurrency) in {("client", 1), ("budget", None)}
    assert "--resume" in only.text
    level = comparison.comparisons[0]
    assert (level.verdict, level.more_prompts) == ("inconclusive", None)
    ended = why.partition(":")[0].replace("budget", "ended")
    assert level.reasons == (f"eagle3 was {ended} after 20 of the 50 requests that concurrency 1 needs",)


def test_a_cell_that_was_cut_short_and_settles_nothing_is_to_be_measured_to_its_end() -> None:
    given = [cell(v, 1, Engine(step_ms=s), prompts=60) for v, s in (("baseline", 12), ("eagle3", 11.9))]
    assert answer(*given).comparisons[0].short is False
    given[1]["warnings"] = ["interrupted: the measurement was ended from outside"]
    comparison = answer(*given)
    assert "eagle3 was interrupted after 60 requests, before it was through" in comparison.decisions[0].text
    assert "prompt" not in comparison.decisions[0].text


def test_the_headline_of_an_interrupted_run_says_so() -> None:
    before, after = pair()
    plan = {"variants": ("baseline", "eagle3", "ngram")}
    assert "interrupted" not in " ".join(decision.text for decision in answer(before, after, **plan).decisions)
    after |= {"metrics": None, "requests": [], "rounds": []}
    after["failure"] = {"stage": "benchmark", "kind": "interrupted", "message": "No request was sent."}
    eagle3, ngram = answer(before, after, **plan).decisions
    assert "eagle3 was interrupted before a request was sent" in eagle3.text
    assert "ngram has no result: the measurement was interrupted" in ngram.text


def test_a_gain_that_is_paid_with_the_first_token() -> None:
    slow_start = Engine(step_ms=8, prefill_ms=140)
    given = [cell(v, c, e) for v, e in (("baseline", BASELINE), ("eagle3", slow_start)) for c in (1, 4)]
    warning = found("slower_first_token", answer(*given))
    assert "concurrency 1 and 4" in warning.text


def test_a_loss_that_is_made_up_for_elsewhere() -> None:
    """The baseline decodes faster and answers so late that the endpoint does less."""
    late = Engine(step_ms=10, prefill_ms=900)
    given = [cell(v, c, e) for v, e in (("baseline", late), ("eagle3", Engine(step_ms=13))) for c in (1, 4)]
    comparison = answer(*given)
    assert {level.verdict for level in comparison.comparisons} == {"slower"}
    assert (
        "the first token is better than the baseline's at concurrency 1 and 4"
        in found("sooner_first_token", comparison).text
    )
    rate = found("higher_throughput", comparison)
    (said,) = re.findall(r"throughput is better than the baseline's at concurrency 1 and 4 \((.*?)\)", rate.text)
    (decision,) = comparison.decisions
    assert decision.turn_on is False
    assert decision.text.endswith(f", though throughput is higher ({said}).")
    assert not {"slower_first_token", "lower_throughput"} & {warning.code for warning in comparison.warnings}


def test_the_clients_own_words_are_kept() -> None:
    assert found("client", answer(*pair(warnings=["the tokenizer disagreed"]))).text == "the tokenizer disagreed"


def lossless(pairs: int, identical: int, own: int | None) -> Losslessness:
    return Losslessness(
        variant="eagle3", concurrency=1, pairs=pairs, identical=identical,
        baseline_pairs=pairs if own is not None else None, baseline_identical=own,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("identical", "own", "expected"), [(20, 25, 0.0), (60, 95, 0.35), (95, 60, 0.0), (100, 100, 0.0), (50, None, None)]
)
def test_only_an_excess_over_the_baselines_own_differences_counts(
    identical: int, own: int | None, expected: float | None
) -> None:
    result = excess(lossless(100, identical, own))
    assert result is None if expected is None else result == pytest.approx(expected)


def test_answers_are_compared_prompt_by_prompt() -> None:
    before, again = (CellResult.model_validate(cell(v, 1, BASELINE)) for v in ("baseline", "again"))
    changed = cell("eagle3", 1, EAGLE)
    for request, original in zip(changed["requests"], before.requests, strict=True):
        request["text"] = original.text
    for request in changed["requests"][:30]:
        request["text"] = request["text"][:10] + "?" + request["text"][11:]
    result = compare_answers(before, CellResult.model_validate(changed), again)
    assert result is not None
    assert (result.pairs, result.identical) == (120, 90)
    lengths = [len(request["text"]) for request in changed["requests"][:30]]
    assert 10 / max(lengths) <= result.first_divergence <= 10 / min(lengths)
    expected = sum(a.text == b.text for a, b in zip(before.requests, again.requests, strict=True))
    assert result.baseline_identical == expected


def test_worse_than_the_baseline_run_twice_is_reported() -> None:
    before = cell("baseline", 1, BASELINE)
    again, broken = (dict(cell("x", 1, FAST), variant=name) for name in ("again", "eagle3"))
    for one, text in ((again, None), (broken, "nonsense")):
        for request, original in zip(one["requests"], before["requests"], strict=True):
            request["text"] = text or original["text"]
    comparison = answer(before, broken, again, baseline_again="again")
    assert "100 % of the answers differ" in found("not_lossless", comparison).text


def test_the_baseline_run_twice_is_a_control_and_no_candidate() -> None:
    given = cell("baseline", 1, prompts=150), cell("eagle3", 1, FAST, prompts=150), cell("again", 1, prompts=150)
    comparison = answer(*given, baseline_again="again")
    assert [decision.variant for decision in comparison.decisions] == ["eagle3"]
    assert comparison.best[0].variants == ("eagle3",)
    assert {c.variant: c.verdict for c in comparison.comparisons} == {"eagle3": "faster", "again": "inconclusive"}
    assert comparison.warnings == ()


def test_a_second_run_of_the_baseline_that_is_faster_is_a_finding() -> None:
    given = cell("baseline", 1, prompts=150), cell("eagle3", 1, FAST, prompts=150), cell("again", 1, FAST, prompts=150)
    warning = found("baseline_differs", answer(*given, baseline_again="again"))
    assert warning.variant == "again" and "the baseline once more" in warning.text


def test_hashes_serve_where_texts_are_not_kept() -> None:
    before, after = cell("baseline", 1, text=False), cell("eagle3", 1, FAST, text=False)
    for one in (before, after):
        for index, request in enumerate(one["requests"]):
            request["text_sha256"] = f"{index}"
    after["requests"][0]["text_sha256"] = "other"
    [result] = answer(before, after).losslessness
    assert (result.pairs, result.identical, result.first_divergence) == (120, 119, None)


@pytest.mark.parametrize(("allowed", "code"), [(False, "unequal_settings"), (True, "allowed_difference")])
def test_what_differs_beyond_speculation_is_said(allowed: bool, code: str) -> None:
    differing = {"eagle3": [{"key": "max-num-seqs", "baseline": None, "variant": "4", "allowed": allowed}]}
    warning = found(code, answer(*pair(), differences=differing))
    assert "max-num-seqs (not set and 4)" in warning.text and warning.variant == "eagle3"


def test_results_of_an_earlier_run_are_named_with_it() -> None:
    before, after = pair()
    before |= {"run_id": "run-1", "started_at": "2026-11-30T10:00:00+00:00"}
    after |= {"run_id": "run-2"}
    warning = found("earlier_run", answer(before, after, run={"run": "run-2"}))
    assert warning.variant == "baseline"
    assert "at concurrency 1 are those of the earlier run run-1 of 2026-11-30" in warning.text
    assert not [w for w in answer(before, after).warnings if w.code == "earlier_run"]  # files, not a run


def test_a_budget_that_was_used_up_says_what_is_missing() -> None:
    before, after = pair(warnings=["budget: the run's budget was used up"])
    failure = {"stage": "benchmark", "kind": "budget", "message": "not begun"}
    missing = cell("eagle3", 2, FAST) | {"metrics": None, "requests": [], "failure": failure}
    comparison = answer(before, after, missing)
    assert "1 cell of 4 not measured and 1 cell cut short" in found("budget", comparison).text
    assert not [w for w in comparison.warnings if w.code == "client"]


URLS = {"baseline": {"url": "http://localhost:8000/v1"}, "eagle3": {"url": "http://127.0.0.1:8001/v1"}}


def test_servers_of_one_host_that_were_measured_side_by_side_are_said() -> None:
    text = found("shared_host", answer(*pair(), settings=URLS)).text
    assert text.startswith("baseline and eagle3 both run on 127.0.0.1 and were measured side by side")


@pytest.mark.parametrize(
    ("settings", "run_id"),
    [
        (URLS | {"eagle3": {"url": "http://10.0.0.7:8001/v1"}}, "simulated"),
        (URLS, "an earlier one"),  # not measured at that time
        ({"baseline": {"machine": "this-machine"}, "eagle3": {"machine": "this-machine"}}, "simulated"),  # in turns
        ({}, "simulated"),  # files of `bench`
    ],
)
def test_servers_that_were_not_side_by_side_on_one_host_are_not(settings: dict[str, Any], run_id: str) -> None:
    comparison = answer(*pair(run_id=run_id), settings=settings)
    assert not [warning for warning in comparison.warnings if warning.code == "shared_host"]
