"""A closed loop of clients on a server with a known truth. Shares no code with the product.

Every stream sends its next request when its last one is answered. Each round the server is a little faster
or slower (`drift`), each request too (`noise`), some are much slower (`tail`), and one request's luck
may carry over to the stream's next (`memory`). Spreads are standard deviations of logarithms.
"""

from __future__ import annotations

import heapq
import math
import statistics
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Regime:
    name: str
    concurrency: int = 4
    each: int = 40  # requests a round
    rounds: int = 8
    noise: float = 0.05
    drift: float = 0.0
    tail: float = 0.0  # share of requests three times as slow
    memory: float = 0.0
    lengths: tuple[int, int] = (100, 140)
    precision: float = 0.02


@dataclass(frozen=True)
class Answered:
    start_s: float
    first_s: float
    last_s: float
    tokens: int


def play(regime: Regime, rng: np.random.Generator) -> list[Answered]:
    """One round."""
    level = 10.0 * math.exp(regime.drift * rng.standard_normal())  # ms a token
    lengths = rng.integers(*regime.lengths, endpoint=True, size=regime.each)
    luck = rng.standard_normal(regime.each)
    slow = np.where(rng.random(regime.each) < regime.tail, 3.0, 1.0)
    streams = [(0.0, index, 0.0) for index in range(regime.concurrency)]  # when free, which, its last luck
    answered = []
    for tokens, fresh, factor in zip(lengths, luck, slow, strict=True):
        start, index, last = heapq.heappop(streams)
        own = regime.memory * last + math.sqrt(1 - regime.memory**2) * fresh
        tpot_s = level * math.exp(regime.noise * own) * factor / 1000
        first = start + 0.05
        end = first + tpot_s * (int(tokens) - 1)
        answered.append(Answered(start, first, end, int(tokens)))
        heapq.heappush(streams, (end, index, own))
    return answered


def rate(regime: Regime, answered: list[Answered]) -> float:
    """Tokens per second until the first end after which fewer streams run than the level says."""
    ends = sorted(one.last_s for one in answered)
    closes = ends[-regime.concurrency]
    tokens = 0.0
    for one in answered:
        part = 1.0 if one.last_s <= closes else max(0.0, (closes - one.first_s) / (one.last_s - one.first_s))
        tokens += (1 if closes >= one.first_s else 0) + (one.tokens - 1) * part
    return tokens / closes


def truth(regime: Regime, rounds: int = 1500) -> tuple[float, float]:
    """Median TPOT in ms and tokens per second of a cell that went on and on."""
    rng = np.random.default_rng(0)
    played = [play(regime, rng) for _ in range(rounds)]
    tpots = [1000 * (one.last_s - one.first_s) / (one.tokens - 1) for answered in played for one in answered]
    return statistics.median(tpots), statistics.fmean(rate(regime, answered) for answered in played)
