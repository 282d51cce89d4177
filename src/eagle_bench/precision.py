"""When a cell knows enough: 95 % intervals of its median TPOT and its throughput, looked at after rounds. Pure.

A round is one observation. Requests of one round share what the server was like meanwhile, so that an
interval made from requests as if each stood alone is far too narrow where rounds differ: with 1 % between
rounds it held the truth in 70 of 100 cells. Student's interval over rounds needs no assumption on what
happens inside them (batch means: Law and Kelton, Simulation Modeling and Analysis, 9.5.3).

Ending at the first look at which the interval is narrow favours looks that underrate the spread. The
interval is therefore taken at 96.5 %; what a cell ends with then holds the truth in 93 to 97 of 100
cells, which the tests show by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from eagle_bench.config import least_requests
from eagle_bench.metrics import round_window, tpot_ms
from eagle_bench.quantiles import t_quantile
from eagle_bench.results import RequestRecord, Saving

LEAST_ROUNDS = 3
CONFIDENCE = 0.965  # of each look, for 95 % at the look that ends the cell

Interval = tuple[float, float]


def tpot_interval(rounds: Sequence[Sequence[RequestRecord]]) -> Interval | None:
    """The interval of the cell's median TPOT, in milliseconds; None where a round has none, or there is one only."""
    values = [[value for value in map(tpot_ms, records) if value is not None] for records in rounds]
    if not all(values):
        return None
    whole = [value for each in values for value in each]
    return _interval(median(whole), [median(each) for each in values])


def throughput_interval(rounds: Sequence[Sequence[RequestRecord]], concurrency: int) -> Interval | None:
    """The interval of the output tokens per second at full concurrency; None where a round never held it."""
    windows = [round_window(records, concurrency) for records in rounds]
    rates = [window.output_tokens_per_s for window in windows if window is not None]
    known = [rate for rate in rates if rate is not None]
    return _interval(fmean(known), known) if known and len(known) == len(rounds) else None


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
    tpot, throughput = _width(tpot_interval(rounds)), _width(throughput_interval(rounds, concurrency))
    if tpot is None or throughput is None or max(tpot, throughput) > precision:
        return None
    return Saving(
        rounds=len(planned) - len(rounds),
        requests=sum(planned) - done,
        tpot_width=tpot,
        throughput_width=throughput,
    )


def _interval(centre: float, by_round: Sequence[float]) -> Interval | None:
    """Student's interval around what the cell as a whole says, its spread that of the rounds."""
    if len(by_round) < 2:
        return None
    half = t_quantile((1 + CONFIDENCE) / 2, len(by_round) - 1) * stdev(by_round) / math.sqrt(len(by_round))
    return centre - half, centre + half


def _width(interval: Interval | None) -> float | None:
    if interval is None or sum(interval) <= 0:
        return None
    return 2 * (interval[1] - interval[0]) / sum(interval)
