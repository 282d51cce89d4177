"""Metrics against reference values and laws; the oracle shares no code with the product."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench.metrics import cell_metrics, counts, in_one_piece, inter_chunk_ms_p50, round_window, summary, tpot_ms
from eagle_bench.results import RequestError, RequestRecord


def request(
    start: float = 0.0,
    ttft: float | None = 100.0,
    e2e: float | None = 1000.0,
    tokens: int | None = 91,
    *,
    number: int = 0,
    error: str | None = None,
    **more: object,
) -> RequestRecord:
    values = {
        "prompt_id": "p",
        "round": number,
        "start_s": start,
        "ttft_ms": ttft,
        "e2e_ms": e2e,
        "output_tokens": tokens,
        "error": RequestError(kind=error) if error else None,
        **more,
    }
    return RequestRecord.model_validate(values)


def test_tpot_is_the_time_after_the_first_token_over_the_tokens_after_it() -> None:
    assert tpot_ms(request(ttft=100, e2e=1000, tokens=91)) == 10.0


@pytest.mark.parametrize("tokens", [None, 0, 1])
def test_an_answer_without_a_second_token_has_no_tpot(tokens: int | None) -> None:
    assert tpot_ms(request(tokens=tokens)) is None


@pytest.mark.parametrize(
    ("tokens", "took_ms", "seen"),
    [
        (400, 4.2, False),  # a body of 92 KB, read in pieces of 16 KB
        (400, 8.6, False),
        (17, 0.79, False),
        (17, 0.81, True),
        (16, 0.01, True),  # two chunks that a busy client read together
        (400, 24.0, True),
        (2, 0.0, False),
    ],
)
def test_tokens_that_come_faster_than_an_engine_makes_them_have_no_tpot(
    tokens: int, took_ms: float, seen: bool
) -> None:
    record = request(ttft=100, e2e=100 + took_ms, tokens=tokens)
    assert (tpot_ms(record) is not None, in_one_piece(record)) == (seen, not seen)


def test_tpot_does_not_depend_on_how_tokens_are_bundled_in_chunks() -> None:
    assert tpot_ms(request(chunks=91)) == tpot_ms(request(chunks=31))


def test_chunk_latency_is_the_median_gap_and_missing_for_one_chunk() -> None:
    assert inter_chunk_ms_p50([1.0, 1.03, 1.06, 2.0]) == pytest.approx(30)
    assert inter_chunk_ms_p50([1.0]) is None


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=150))
def test_summary_is_the_textbook_quantile(values: list[float]) -> None:
    found = summary(values)
    assert found is not None
    assert found.p50 == pytest.approx(statistics.median(values))
    assert found.p90 == pytest.approx(_quantile(values, 0.9))
    assert found.mean == pytest.approx(math.fsum(values) / len(values))
    if len(values) < 100:
        assert found.p99 is None
    else:
        assert found.p99 == pytest.approx(_quantile(values, 0.99))


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def test_nothing_is_none_and_never_zero() -> None:
    failed = [request(error="overload", ttft=None, e2e=None, tokens=None) for _ in range(5)]
    assert summary([]) is None
    assert round_window([], 4) is None
    window = round_window(failed, 4)
    assert window is not None
    assert window.output_tokens_per_s is None
    assert window.requests_per_s is None
    assert cell_metrics(failed, [window]) is None
    assert cell_metrics([], []) is None


def test_failed_requests_are_counted_and_left_out_of_every_metric() -> None:
    good = [request(ttft=100), request(ttft=200), request(ttft=300)]
    bad = [request(ttft=1, e2e=2, error="empty"), request(ttft=1, e2e=2, error="timeout")]
    found = cell_metrics(good + bad, [])
    assert found == cell_metrics(good, [])
    assert found is not None
    assert found.ttft_ms.p50 == 200
    assert counts(good + bad).model_dump() == {"requested": 5, "completed": 3, "failed": 2, "empty": 1}


@given(st.lists(st.sampled_from([None, "empty", "overload", "timeout"]), max_size=60))
def test_requested_is_completed_and_failed_together(errors: list[str | None]) -> None:
    found = counts([request(error=error) for error in errors])
    assert found.requested == len(errors) == found.completed + found.failed
    assert found.failed == sum(error is not None for error in errors)
    assert found.empty == errors.count("empty")


def simulate(requests: int, concurrency: int, seed: int, token_ms: float = 10.0) -> list[RequestRecord]:
    """A server whose every stream gets one token each `token_ms`, prefill included: the true rate is known."""
    rng = random.Random(seed)
    free = [0.0] * concurrency
    records = []
    for _ in range(requests):
        slot = min(range(concurrency), key=lambda i: free[i])
        tokens = rng.randint(20, 400)
        e2e = tokens * token_ms
        records.append(request(free[slot], token_ms, e2e, tokens, end_s=free[slot] + e2e / 1000))
        free[slot] += e2e / 1000
    return records


@pytest.mark.parametrize("concurrency", [1, 4, 10, 64])
@pytest.mark.parametrize("seed", range(5))
def test_throughput_is_of_the_time_in_which_the_concurrency_was_held(concurrency: int, seed: int) -> None:
    records = simulate(max(50, 5 * concurrency), concurrency, seed)
    window = round_window(records, concurrency)
    assert window is not None
    assert window.output_tokens_per_s is not None
    truth = concurrency * 100.0
    assert window.output_tokens_per_s == pytest.approx(truth, rel=0.01)
    naive = sum(r.output_tokens or 0 for r in records) / window.end_s
    if concurrency > 4:
        assert naive < 0.95 * truth  # what the tail would have done to it


def test_streams_that_end_together_do_not_leave_a_half_full_batch_in_the_window() -> None:
    records = [request(batch * 1.0, 10, 1000, 100, end_s=batch + 1.0) for batch in range(3) for _ in range(4)]
    records.append(request(3.0, 10, 1000, 100, end_s=4.0))
    window = round_window(records, 4)
    assert window is not None
    assert window.window_end_s == 3.0
    assert window.output_tokens_per_s == pytest.approx(400)
    assert window.requests_per_s == pytest.approx(4)


def test_a_concurrency_that_was_never_reached_has_no_rate() -> None:
    window = round_window([request(), request()], 4)
    assert window is not None
    assert window.output_tokens_per_s is None


def test_rates_weigh_rounds_by_the_length_of_their_windows() -> None:
    long = [request(i * 1.0, 10, 1000, 100, end_s=i + 1.0) for i in range(9)]
    short = [request(20 + i * 0.5, 10, 500, 100, number=1, end_s=20.5 + i * 0.5) for i in range(2)]
    windows = [w for w in (round_window(long, 1), round_window(short, 1)) if w]
    found = cell_metrics(long + short, windows)
    assert found is not None
    assert found.output_tokens_per_s == pytest.approx(1100 / 10)


def test_goodput_counts_only_what_met_the_objective() -> None:
    records = [request(i, 100 if i % 4 else 900, 1000, 91 if i % 2 else 31, end_s=i + 1.0, number=0) for i in range(40)]
    windows = [w for w in [round_window(records, 1)] if w]
    met = [
        r for r in records if (r.ttft_ms or 0) <= 500 and (1000 - (r.ttft_ms or 0)) / ((r.output_tokens or 0) - 1) <= 12
    ]
    found = cell_metrics(records, windows, slo_ttft_ms=500, slo_tpot_ms=12)
    assert found is not None
    assert found.goodput == pytest.approx(len(met) / 40, rel=0.05)
    without = cell_metrics(records, windows)
    assert without is not None
    assert without.goodput is None
