"""Paired, hierarchical bootstrap of ratios: prompts inside rounds.

Everything is on the scale of log(top ÷ bottom); above 0 is better. Rows of all arrays are the prompts of
one level, the same prompt in the same row for every variant: that is what "paired" means here. Prompts are
resampled with replacement within their round, for all variants at once, and every statistic is computed again on
each resample; `intervals` makes bounds of that, and adds what rounds differ by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eagle_bench.intervals import MIN_PAIRS, Draws, Floats

Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

RESAMPLES = 10_000
SMOOTHING = 0.7
"""Half-width of the band around the median that is averaged in resamples, × 1/√rows."""
MIN_PAIRS_OF_RATES = 20
"""Fewest pairs with an interval of a ratio of sums: a few long answers weigh more in them than in a median."""

_CHUNK = 1000


class Resamples:
    """Resamples of one level's prompts, drawn within rounds and shared by all of its statistics.

    Args:
        rounds: the round of each row, shape (rows,).
        count: how many resamples.
        seed: the same seed gives the same resamples.
    """

    def __init__(self, rounds: Ints, *, count: int = RESAMPLES, seed: int = 0) -> None:
        self.rounds = rounds
        self.count = count
        self._labels = np.unique(rounds)
        self._weights = _multinomial(rounds, count, np.random.default_rng(seed))

    def median_ratio(self, top: Floats, bottom: Floats) -> Draws | None:
        """Ratio of medians over rows where both are known (not NaN); None without such a row or with a median of 0."""
        paired = np.isfinite(top) & np.isfinite(bottom)
        if not paired.any():
            return None
        estimate = _log_ratio(float(np.median(top[paired])), float(np.median(bottom[paired])))
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = self._medians(paired, top, bottom)
            values = np.log(above) - np.log(below)
        band = _band(int(paired.sum()))

        def ratio(rows: NDArray[np.bool_]) -> float:
            return _log_ratio(smoothed_median(top[rows], band), smoothed_median(bottom[rows], band))

        centre, by_round = ratio(paired), [ratio(rows) for rows in self._rounds(paired)]
        return _draws(estimate, values - centre + estimate, by_round, paired)

    def rate_ratio(
        self,
        top: tuple[Floats, Floats],
        bottom: tuple[Floats, Floats],
        measured: tuple[float, Floats] | None = None,
    ) -> Draws | None:
        """Ratio of rates, each amount ÷ time summed over rows where both sides are known.

        At a held concurrency C the throughput is C × Σ tokens ÷ Σ time (Little's law): so prompts tell its
        noise. `measured` is the log ratio by the clock, in all and of each round; it replaces the estimates.
        """
        paired = np.logical_and.reduce([np.isfinite(column) for column in (*top, *bottom)])
        if not paired.any():
            return None
        columns = np.stack([np.where(paired, column, 0.0) for column in (*top, *bottom)], axis=1)
        scales = columns.sum(axis=0)  # keeps sums of single precision near 1
        if not scales.all():
            return None
        sums = (columns / scales).astype(np.float32).T @ self._weights
        values = _log_rates(sums.T * scales)
        centre = float(_log_rates(scales))
        if measured is None:
            by_round = [float(_log_rates(columns[rows].sum(axis=0))) for rows in self._rounds(paired)]
            return _draws(centre, values, by_round, paired, MIN_PAIRS_OF_RATES)
        estimate, by_clock = measured
        return _draws(estimate, values - centre + estimate, list(by_clock), paired, MIN_PAIRS_OF_RATES)

    def _rounds(self, rows: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
        """The given rows of each round that has some."""
        for label in self._labels:
            mine = rows & (self.rounds == label)
            if mine.any():
                yield mine

    def _medians(self, rows: NDArray[np.bool_], *sides: Floats) -> Iterator[Floats]:
        """Smoothed median of each resample for each side, shape (resamples,), without sorting one.

        A side's rows are sorted once; the band around one half lies within 3 √rows of the middle (six standard
        deviations) in all resamples, and only this window is added up.
        """
        places = np.flatnonzero(rows)
        size, band, half = places.size, _band(places.size), np.float32(0.5)
        reach = math.ceil((3 + SMOOTHING) * math.sqrt(size)) + 2
        first, last = max(0, size // 2 - reach), min(size, size // 2 + reach + 1)
        orders = [places[np.argsort(side[places], kind="stable")] for side in sides]
        masks = np.zeros((1 + len(sides), rows.size), dtype=np.float32)  # all rows, then those below each window
        masks[0, places] = 1
        for mask, order in zip(masks[1:], orders, strict=True):
            mask[order[:first]] = 1
        total, *below = masks @ self._weights
        for side, order, before in zip(sides, orders, below, strict=True):
            window = order[first:last]
            medians = np.empty(self.count)
            for start in range(0, self.count, _CHUNK):  # as much as the processor's cache holds
                part = slice(start, start + _CHUNK)
                running = self._weights[window, part]
                running[0] += before[part]
                np.cumsum(running, axis=0, out=running)
                low, high = total[part] * (half - band), total[part] * (half + band)
                medians[part] = _band_mean(side[window], running, low, high)
            yield medians


def smoothed_median(values: Floats, band: np.float32) -> float:
    """Mean of the quantiles within `band` of one half.

    The median of a resample jumps from one measured value to the next, which makes intervals a third too wide
    where values are few; this one does not.
    """
    running = np.arange(1, values.size + 1, dtype=np.float32)[:, None]
    total, half = np.array([values.size], dtype=np.float32), np.float32(0.5)
    [found] = _band_mean(np.sort(values), running, total * (half - band), total * (half + band))
    return float(found)


def _band(size: int) -> np.float32:
    """Half-width of the band around the median, as a share of the values."""
    return np.float32(min(0.5, SMOOTHING / math.sqrt(size)))


def _band_mean(ordered: Floats, running: Singles, low: Singles, high: Singles) -> Floats:
    """Mean of the quantile functions between two running totals, shape (resamples,).

    Args:
        ordered: the values, rising, shape (rows,).
        running: the weights of each resample up to and with each row, shape (rows, resamples); overwritten.
    """
    np.clip(running, low, high, out=running)
    np.subtract(high, running, out=running)
    # Σ value × (its share of the band), summed by parts: each step between values counts with the band above it.
    above = np.diff(ordered).astype(np.float32) @ running[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(ordered[0] + above / (high - low), dtype=np.float64)


def _log_ratio(top: float, bottom: float) -> float:
    return math.log(top / bottom) if top > 0 and bottom > 0 else math.nan


def _log_rates(sums: Floats) -> Floats:
    """Log ratio of two rates from (amount, time) of the one and the other, along the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sums)
        return np.asarray(logs[..., 0] - logs[..., 1] - logs[..., 2] + logs[..., 3])


def _draws(
    estimate: float, values: Floats, by_round: list[float], paired: NDArray[np.bool_], least: int = MIN_PAIRS
) -> Draws | None:
    """None where the ratio itself is none: a median or a sum of 0."""
    if not math.isfinite(estimate):
        return None
    rounds = np.array([value for value in by_round if math.isfinite(value)])
    return Draws(estimate, values[np.isfinite(values)], rounds, int(paired.sum()), least)


def _multinomial(rounds: Ints, count: int, rng: np.random.Generator) -> Singles:
    """How often each row is in each resample, shape (rows, count); every round keeps its size."""
    weights = np.empty((rounds.size, count), dtype=np.float32)
    for label in np.unique(rounds):
        rows = np.flatnonzero(rounds == label)
        for start in range(0, count, _CHUNK):
            size = min(_CHUNK, count - start)
            picks = rng.integers(rows.size, size=(rows.size, size)) * size + np.arange(size)
            counts = np.bincount(picks.ravel(), minlength=rows.size * size).reshape(rows.size, size)
            weights[rows, start : start + size] = counts
    return weights
