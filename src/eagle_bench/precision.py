"""When a cell knows enough: 95 % intervals of its median TPOT and its throughput, looked at after rounds. Pure.

- Median: the exact binomial interval between order statistics; no assumption on the distribution.
- Throughput: batch means. Each round's window is cut into equal spans, the rate of each is one
  observation, and Student's interval holds for their mean (Law and Kelton, Simulation Modeling).
- Looking more than once: each look is taken at 1 − 0.05 ÷ looks (Bonferroni), so that the interval at
  which a cell happens to stop still covers the truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

from eagle_bench.config import least_requests
from eagle_bench.metrics import round_window, tokens_until, tpot_ms
from eagle_bench.results import RequestRecord, Saving

LEAST_ROUNDS = 3
_SPANS = 10  # of each round's window


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """The interval between the order statistics that hold the median with this confidence; None if too few."""
    n = len(values)
    tail, below = (1 - confidence) / 2, 0.0
    rank = 0
    while rank < n // 2:
        below += math.comb(n, rank) / 2**n
        if below > tail:
            break
        rank += 1
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[n - rank]


def throughput_interval(
    rounds: Sequence[Sequence[RequestRecord]], concurrency: int, confidence: float = 0.95
) -> tuple[float, float] | None:
    """The interval of the output tokens per second at full concurrency; None where it was never held."""
    rates: list[float] = []
    for records in rounds:
        window = round_window(records, concurrency)
        if window is None or window.output_tokens_per_s is None:
            continue
        begin, length = window.window_start_s, (window.window_end_s - window.window_start_s) / _SPANS
        done = [record for record in records if record.error is None]
        until = [sum(tokens_until(r, begin + span * length) for r in done) for span in range(_SPANS + 1)]
        rates += [(later - earlier) / length for earlier, later in itertools.pairwise(until)]
    if len(rates) < _SPANS:
        return None
    half = _student(confidence, len(rates) - 1) * stdev(rates) / math.sqrt(len(rates))
    return fmean(rates) - half, fmean(rates) + half


def enough(
    rounds: Sequence[Sequence[RequestRecord]], *, planned: Sequence[int], concurrency: int, precision: float
) -> Saving | None:
    """Whether a cell may end after these whole rounds, and what that saves; None: go on.

    Args:
        rounds: the records of each round that is over.
        planned: how many requests each planned round has.
        precision: the width that both intervals must stay under, as a share of their middle.
    """
    done = sum(planned[: len(rounds)])
    if len(rounds) < LEAST_ROUNDS or len(rounds) >= len(planned) or done < least_requests(concurrency):
        return None
    looks = len(planned) - LEAST_ROUNDS
    confidence = 1 - 0.05 / looks
    tpots = [value for records in rounds for value in map(tpot_ms, records) if value is not None]
    widths = [
        _width(median_interval(tpots, confidence)),
        _width(throughput_interval(rounds, concurrency, confidence)),
    ]
    if any(width is None or width > precision for width in widths):
        return None
    return Saving(
        rounds=len(planned) - len(rounds),
        requests=sum(planned) - done,
        tpot_width=widths[0] or 0.0,
        throughput_width=widths[1] or 0.0,
    )


def _width(interval: tuple[float, float] | None) -> float | None:
    if interval is None or sum(interval) <= 0:
        return None
    return 2 * (interval[1] - interval[0]) / sum(interval)


def _student(confidence: float, freedom: int) -> float:
    """Student's quantile by its expansion around the normal one (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
