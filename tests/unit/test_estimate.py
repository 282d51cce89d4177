"""The arithmetic of a plan: hours and dollars from requests and assumptions, checked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from eagle_bench import config_file
from eagle_bench.estimate import Assumptions, Range, estimate, prompts_needed

FIXED = Assumptions(
    ms_per_token=Range(low=10, high=20),
    first_token_ms=Range(low=100, high=200),
    tokens_per_answer=Range(low=100, high=100),
    deploy_min=Range(low=10, high=30),
    teardown_min=Range(low=2, high=4),
    task_start_min=Range(low=1, high=2),
    staging_min=Range(low=5, high=5),
)
DEPLOYED = [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=X"]}]
RUNNING = [{"id": name, "url": f"http://127.0.0.1:1/{name}"} for name in ("baseline", "eagle3")]


def config(variants=DEPLOYED, *, workload=None, **fields):
    return config_file.validate(
        {
            "project": "p",
            "location": "l",
            "model": "owner/name",
            "tokenizer": "owner/name",
            "variants": variants,
            "workload": {"prompts_per_level": 300, **(workload or {})},
            "concurrency": [1, 10],
            "price_per_hour": 60.0,
            **fields,
        }
    )


def test_the_arithmetic_by_hand():
    found = estimate(config(), FIXED)
    # concurrency 1: 300 + 2 to warm up; 10: 300 + 20, ten at a time; 1.1 s to 2.2 s a request
    assert found.requests == 600
    assert found.sweep_h.low == pytest.approx((302 + 32) * 1.1 / 3600)
    assert found.sweep_h.high == pytest.approx((302 + 32) * 2.2 / 3600)
    # 2 levels, smoke test and teardown start; deploy; teardown
    assert found.endpoint_h.low == pytest.approx(found.sweep_h.low + (4 + 10 + 2) / 60)
    assert found.endpoint_h.high == pytest.approx(found.sweep_h.high + (8 + 30 + 4) / 60)
    assert found.run_h.low == pytest.approx(found.endpoint_h.low + (5 + 3) / 60)
    assert found.endpoint_cost is not None and found.run_cost is not None
    assert found.endpoint_cost.high == pytest.approx(found.endpoint_h.high * 60)
    assert found.run_cost.low == pytest.approx(found.endpoint_h.low * 120)
    assert prompts_needed(config()) == 600 + 2 + 20


def test_this_machine_deploys_one_variant_after_another():
    found, in_turn = estimate(config(), FIXED), estimate(config(), FIXED, in_turn=True)
    assert in_turn.run_h.high == pytest.approx(found.run_h.high + found.endpoint_h.high)
    assert estimate(config(RUNNING), FIXED, in_turn=True) == estimate(config(RUNNING), FIXED)


def test_money_is_unknown_without_a_price_and_without_a_machine_of_ours():
    assert estimate(config(price_per_hour=None), FIXED).run_cost is None
    running = estimate(config(RUNNING), FIXED)
    assert running.run_cost is None and running.endpoint_cost is None
    assert running.endpoint_h.low == pytest.approx(running.sweep_h.low + 4 / 60)
    mixed = estimate(config([DEPLOYED[0], RUNNING[1]]), FIXED)
    assert mixed.run_cost == mixed.endpoint_cost is not None


def test_an_early_stop_can_save_rounds_after_the_third():
    whole = estimate(config(repeats=3), FIXED)
    early = estimate(config(repeats=6), FIXED)
    assert early.sweep_h.high == pytest.approx(whole.sweep_h.high)
    assert early.sweep_h.low == pytest.approx((152 + 17) * 1.1 / 3600)
    exact = estimate(config(repeats=6, workload={"precision": None}), FIXED)
    assert exact.sweep_h.low == pytest.approx(whole.sweep_h.low)


def test_answers_are_never_longer_than_allowed():
    assert Assumptions().answer(config().workload) == Range(low=128, high=512)
    short = config(workload={"max_output_tokens": 40}).workload
    assert FIXED.answer(short) == Range(low=40, high=40)
    forced = config(workload={"max_output_tokens": 640, "ignore_eos": True}).workload
    assert FIXED.answer(forced) == Range(low=640, high=640)


def test_a_range_begins_below_its_end():
    with pytest.raises(ValidationError, match="begins above its end"):
        Range(low=2, high=1)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.72, 8.1, "43 min to 8.1 h"),
        (0.0083, 0.13, "30 s to 7.8 min"),
        (1, 1, "1 h"),
        (1.5, 20, "1.5 to 20 h"),
        (0.5, 0.75, "30 to 45 min"),
        (0, 0, "0 s"),
    ],
)
def test_less_than_an_hour_is_said_in_minutes_or_seconds(low, high, said):
    assert Range(low=low, high=high).hours_shown() == said


@given(
    st.integers(1, 2000),
    st.integers(1, 8),
    st.lists(st.integers(1, 200), min_size=1, max_size=5, unique=True),
    st.floats(0.1, 1000),
)
def test_an_estimate_is_a_range_and_more_work_takes_longer(prompts, repeats, levels, price):
    def with_prompts(number):
        given = config(
            workload={"prompts_per_level": number}, repeats=repeats, concurrency=levels, price_per_hour=price
        )
        return estimate(given, Assumptions())

    found, more = with_prompts(prompts), with_prompts(prompts * 2)
    for one in (found.sweep_h, found.endpoint_h, found.run_h, found.run_cost):
        assert 0 < one.low <= one.high
    assert found.sweep_h.high <= found.endpoint_h.high <= found.run_h.high
    assert found.sweep_h.high <= more.sweep_h.high
