"""Intervals against references (scipy, brute force), laws, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from eagle_bench.intervals import AGREEING, DRIFT, DRIFT_OTHERWISE, MIN_PAIRS, Draws, ratios
from eagle_bench.quantiles import chi_squared_quantile, median_interval, t_quantile
from eagle_bench.stats import Resamples, smoothed_median
from regimes import World, experiment

ONE_ROUND = np.zeros(400, dtype=np.int64)


def sides(n: int = 400, ratio: float = 1.3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 0.4, n)
    return 20 * np.exp(hard + rng.normal(0, 0.1, n)), 20 / ratio * np.exp(hard + rng.normal(0, 0.1, n))


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 12, 40, 399, 1000])
@pytest.mark.parametrize("probability", [0.6, 0.95, 0.975, 0.9957])
def test_quantiles_of_student(freedom: int, probability: float) -> None:
    expected = reference.t.ppf(probability, freedom)
    assert t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-9 if freedom < 400 else 2e-3)


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 40])
def test_quantiles_of_chi_squared(freedom: int) -> None:
    assert chi_squared_quantile(0.95, freedom) == pytest.approx(reference.chi2.ppf(0.95, freedom), rel=0.03)


@pytest.mark.parametrize("size", [6, 7, 20, 101, 500, 5000])
def test_median_interval_is_the_order_statistics_one(size: int) -> None:
    values = np.random.default_rng(size).lognormal(3, 1, size)
    expected = reference.quantile_test(values, p=0.5).confidence_interval(0.95)
    found = median_interval(values)
    assert found is not None
    assert found == pytest.approx((expected.low, expected.high), rel=1e-12 if size < 1000 else 0.01)


def test_median_of_five_has_no_interval() -> None:
    assert median_interval(np.arange(1.0, 6.0)) is None


def test_bootstrap_agrees_with_a_plain_one() -> None:
    """scipy resamples pairs and takes plain medians: the same middle, and nearly the same reach where rows are many."""
    rng = np.random.default_rng(3)
    hard = rng.normal(0, 0.4, 4000)
    top, bottom = np.exp(hard + rng.normal(0, 0.3, 4000)), np.exp(hard + rng.normal(0, 0.3, 4000)) / 1.2
    plain = reference.bootstrap(
        (top, bottom),
        lambda a, b, axis=-1: np.log(np.median(a, axis=axis) / np.median(b, axis=axis)),
        paired=True, vectorized=True, n_resamples=1500, method="percentile", batch=100, rng=np.random.default_rng(4),
    ).confidence_interval  # fmt: skip
    draws = Resamples(np.zeros(4000, dtype=np.int64), count=1500).median_ratio(top, bottom)
    assert draws is not None
    low, high = draws.interval()
    width = plain.high - plain.low
    assert 0.75 * width < high - low < 1.1 * width
    assert low == pytest.approx(plain.low, abs=0.25 * width)
    assert high == pytest.approx(plain.high, abs=0.25 * width)


def test_rate_bootstrap_agrees_with_the_delta_method() -> None:
    rng = np.random.default_rng(5)
    tokens, time = rng.lognormal(5, 0.5, 2000), rng.lognormal(2, 0.5, 2000)
    ones = np.ones(2000)
    draws = Resamples(np.zeros(2000, dtype=np.int64), count=4000).rate_ratio((tokens, time), (ones, ones))
    assert draws is not None
    assert draws.estimate == pytest.approx(math.log(tokens.sum() / time.sum()), rel=1e-12)
    influence = tokens / tokens.mean() - time / time.mean()
    assert draws.prompt_variance == pytest.approx(influence.var() / 2000, rel=0.1)


def test_estimate_is_the_ratio_of_medians() -> None:
    top, bottom = sides()
    [found] = ratios([Resamples(ONE_ROUND, count=200).median_ratio(top, bottom)])
    assert found is not None and found.low is not None and found.high is not None
    assert found.estimate == pytest.approx(np.median(top) / np.median(bottom), rel=1e-12)
    assert found.low < found.estimate < found.high
    assert found.pairs == 400


def test_only_rows_of_both_sides_count() -> None:
    top, bottom = sides()
    top[:50], bottom[350:] = np.nan, np.nan
    draws = Resamples(ONE_ROUND, count=200).median_ratio(top, bottom)
    assert draws is not None and draws.pairs == 300
    assert math.exp(draws.estimate) == pytest.approx(np.median(top[50:350]) / np.median(bottom[50:350]))


def test_pairing_makes_intervals_narrow() -> None:
    top, bottom = sides()
    shuffled = np.random.default_rng(0).permutation(bottom)
    shared = Resamples(ONE_ROUND, count=1000)
    paired, unpaired = shared.median_ratio(top, bottom), shared.median_ratio(top, shuffled)
    assert paired is not None and unpaired is not None
    assert paired.prompt_variance < 0.4 * unpaired.prompt_variance


@pytest.mark.parametrize("pairs", [1, 2, MIN_PAIRS - 1])
def test_few_pairs_have_an_estimate_and_no_interval(pairs: int) -> None:
    top, bottom = sides(pairs)
    [found] = ratios([Resamples(np.zeros(pairs, dtype=np.int64), count=200).median_ratio(top, bottom)])
    assert found is not None
    assert (found.low, found.high, found.family_low, found.family_high) == (None, None, None, None)


def test_no_pair_and_a_median_of_zero_have_no_ratio() -> None:
    nothing = np.full(20, np.nan)
    shared = Resamples(np.zeros(20, dtype=np.int64), count=50)
    assert shared.median_ratio(nothing, np.ones(20)) is None
    assert shared.median_ratio(np.ones(20), np.zeros(20)) is None
    assert shared.rate_ratio((np.zeros(20), np.ones(20)), (np.ones(20), np.ones(20))) is None


def test_rounds_that_agree_leave_the_prompts_to_decide_and_rounds_that_do_not_take_over() -> None:
    values = np.random.default_rng(0).normal(0, 0.02, 4000)
    calm = Draws(0.1, 0.1 + values, np.array([0.1, 0.11, 0.095]), 300)
    drifting = Draws(0.1, 0.1 + values, np.array([0.0, 0.1, 0.2]), 300)
    assert not calm.rounds_decide and drifting.rounds_decide
    assert not calm.drifts and drifting.drifts
    low, high = drifting.interval()
    half = reference.t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half))
    assert calm.interval()[1] - calm.interval()[0] < 0.1


@pytest.mark.parametrize("rounds", range(2, 13))
def test_the_choice_between_prompts_and_rounds_holds_the_truth_whatever_the_drift(rounds: int) -> None:
    """The formula of `intervals`, integrated: 94 to 96 % of the cells, with two rounds 94 to 97 %."""
    freedom = rounds - 1
    spread = reference.chi2.ppf((np.arange(4000) + 0.5) / 4000, freedom) / freedom
    calm, student = reference.norm.ppf((1 + AGREEING) / 2), reference.t.ppf(0.975, freedom)
    for true in (*np.linspace(1, 3, 9), *np.geomspace(3.5, 100, 12), 1e4):
        x = true * spread
        half = np.where(x > DRIFT.get(rounds, DRIFT_OTHERWISE), np.maximum(calm, student * np.sqrt(x)), calm)
        held = np.mean(2 * reference.norm.cdf(half / math.sqrt(true)) - 1)
        assert 0.9385 <= held <= (0.968 if rounds == 2 else 0.961)


def test_bounds_of_all_levels_hold_those_of_each() -> None:
    rng = np.random.default_rng(7)
    levels = [Draws(0.05, 0.05 + rng.normal(0, 0.02, 5000), rng.normal(0.05, 0.035, 3), 200) for _ in range(6)]
    for ratio in ratios(levels):
        assert ratio is not None
        assert ratio.family_low <= ratio.low < ratio.estimate < ratio.high <= ratio.family_high
    [alone] = ratios([Draws(0.05, levels[0].values, np.array([]), 200)])
    assert alone is not None and (alone.low, alone.high) == (alone.family_low, alone.family_high)


@settings(max_examples=30, deadline=None)
@given(
    scale=st.floats(0.01, 100),
    values=st.lists(st.tuples(st.floats(0.5, 50), st.floats(0.5, 50)), min_size=MIN_PAIRS, max_size=40),
)
def test_laws(scale: float, values: list[tuple[float, float]]) -> None:
    """Another unit on both sides changes nothing; on one side it multiplies; sides exchanged give the inverse."""
    top, bottom = (np.array(side) for side in zip(*values, strict=True))
    shared = Resamples(np.arange(top.size) % 2, count=100, seed=3)
    one, both = shared.median_ratio(top, bottom), shared.median_ratio(top * scale, bottom * scale)
    other, back = shared.median_ratio(top * scale, bottom), shared.median_ratio(bottom, top)
    assert one and both and other and back
    assert both.estimate == pytest.approx(one.estimate, abs=1e-9)
    assert both.values == pytest.approx(one.values, abs=1e-4)
    assert other.values == pytest.approx(one.values + math.log(scale), abs=1e-4)
    assert back.values == pytest.approx(-one.values, abs=1e-9)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=60))
def test_a_smoothed_median_lies_between_the_neighbours_of_the_median(values: list[float]) -> None:
    ordered = np.sort(np.array(values))
    reach = math.ceil(0.7 * math.sqrt(len(values))) + 1
    middle = len(values) // 2
    low, high = ordered[max(0, middle - reach)], ordered[min(len(values) - 1, middle + reach)]
    assert (
        low * (1 - 1e-5)
        <= smoothed_median(np.array(values), np.float32(0.7 / math.sqrt(len(values))))
        <= high * (1 + 1e-5)
    )


def test_the_same_seed_gives_the_same_draws_and_another_one_others() -> None:
    top, bottom = sides()
    one, same, other = (Resamples(ONE_ROUND, count=100, seed=s).median_ratio(top, bottom) for s in (1, 1, 2))
    assert one and same and other
    assert np.array_equal(one.values, same.values)
    assert not np.array_equal(one.values, other.values)


def test_more_prompts_make_narrower_intervals() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for n in (50, 200, 800):
        run = experiment(World("one round", prompts=n, rounds=1), rng)
        draws = Resamples(run.rounds, count=500).median_ratio(run.baseline, run.variant)
        low, high = draws.interval()
        widths.append(high - low)
    assert widths[0] > 1.4 * widths[1] > 1.4 * 1.4 * widths[2]
