"""The early stop: intervals that cover what they claim, also where a cell stopped because of them."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eagle_bench.precision import _student, enough, median_interval, throughput_interval
from eagle_bench.results import RequestRecord


@pytest.mark.parametrize("freedom", [9, 19, 29, 100])
@pytest.mark.parametrize("confidence", [0.95, 0.99, 0.995])
def test_students_quantile_is_scipys(freedom: int, confidence: float) -> None:
    assert _student(confidence, freedom) == pytest.approx(stats.t.ppf((1 + confidence) / 2, freedom), rel=0.002)


@given(st.integers(0, 120))
def test_the_medians_interval_is_the_widest_that_the_binomial_needs(n: int) -> None:
    found = median_interval([float(i) for i in range(n)])
    if found is None:
        assert 2 * 0.5**n > 0.05 or n == 0
        return
    rank = int(found[0]) + 1
    assert n - 1 - found[1] == found[0]
    assert 2 * stats.binom.cdf(rank - 1, n, 0.5) <= 0.05 + 1e-12


def serve(rounds: int, each: int, concurrency: int, seed: int, noise: float) -> list[list[RequestRecord]]:
    """Rounds on a server whose median TPOT is 10 ms and whose streams differ by `noise`."""
    rng = random.Random(seed)
    made = []
    for number in range(rounds):
        free = [1000.0 * number] * concurrency
        records = []
        for _ in range(each):
            slot = min(range(concurrency), key=lambda i: free[i])
            tokens, tpot = rng.randint(50, 150), 10 * rng.lognormvariate(0, noise)
            e2e = tokens * tpot
            start = free[slot]
            free[slot] += e2e / 1000
            records.append(
                RequestRecord(
                    prompt_id="p",
                    round=number,
                    start_s=start,
                    end_s=free[slot],
                    ttft_ms=tpot,
                    e2e_ms=e2e,
                    output_tokens=tokens,
                )
            )
        made.append(records)
    return made


def test_the_interval_of_the_median_at_which_a_cell_stopped_covers_the_truth() -> None:
    covered = stopped = 0
    for seed in range(400):
        rounds = serve(8, 40, 4, seed, noise=0.1)
        for over in range(3, 9):
            saving = enough(rounds[:over], planned=[40] * 8, concurrency=4, precision=0.05)
            if saving is not None or over == 8:
                stopped += over < 8
                tpots = [(r.e2e_ms - r.ttft_ms) / (r.output_tokens - 1) for rs in rounds[:over] for r in rs]
                low, high = median_interval(tpots, 1 - 0.05 / 5) or (0, 0)
                covered += low <= 10 <= high
                break
    assert stopped > 200
    assert covered / 400 >= 0.95


def test_the_interval_of_the_throughput_covers_the_truth() -> None:
    truth = statistics.fmean(
        sum(r.output_tokens or 0 for r in records) / (max(r.end_s or 0 for r in records) - records[0].start_s)
        for records in serve(1, 20_000, 4, 99, noise=0.3)
    )
    inside = 0
    for seed in range(300):
        low, high = throughput_interval(serve(3, 80, 4, seed, noise=0.3), 4) or (0, 0)
        inside += low <= truth <= high
    assert 0.91 <= inside / 300 <= 1.0


def test_it_never_stops_below_the_methods_least_or_after_the_last_round() -> None:
    exact = serve(6, 10, 1, 0, noise=0.0001)
    for over in range(1, 7):
        saving = enough(exact[:over], planned=[10] * 6, concurrency=1, precision=0.5)
        assert (saving is not None) == (over == 5)
    assert enough(exact[:3], planned=[10] * 6, concurrency=1, precision=0.5) is None


def test_what_is_saved_is_told() -> None:
    saving = enough(serve(6, 40, 2, 1, noise=0.01)[:3], planned=[40] * 6, concurrency=2, precision=0.1)
    assert saving is not None
    assert (saving.rounds, saving.requests) == (3, 120)
    assert 0 < saving.tpot_width < 0.1
