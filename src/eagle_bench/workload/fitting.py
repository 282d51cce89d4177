"""The levels and the prompts per level that a data set has prompts enough for."""

from __future__ import annotations

from collections.abc import Sequence

from eagle_bench.load import least_requests
from eagle_bench.workload.needs import warmup_requests

USUAL_LEVELS, USUAL_PROMPTS = (1, 2, 4, 6, 8, 10), 1000
# What is tried, in this order: more levels are worth more than more prompts, as long as these settle something.
_TRIED = (
    (USUAL_LEVELS, (USUAL_PROMPTS, 500, 200)),
    ((1, 2, 4), (200, 100, 50)),
    ((1, 2), (50,)),
    ((1,), (50,)),
)
_FEWER = (USUAL_PROMPTS, 500, 200, 100, 50)


def levels_for(prompts: int) -> tuple[int, ...]:
    """The levels to measure with so many prompts; the usual ones where they are too few for any."""
    return next((levels for levels, tried in _TRIED if _fits(prompts, levels, tried)), USUAL_LEVELS)


def prompts_per_level(prompts: int, levels: Sequence[int]) -> int:
    """Prompts for each of these levels, of so many in all; the usual number where they are too few."""
    tried = next((tried for usual, tried in _TRIED if usual == tuple(levels)), _FEWER)
    return _fits(prompts, levels, tried) or USUAL_PROMPTS


def _fits(prompts: int, levels: Sequence[int], tried: Sequence[int]) -> int | None:
    return next((each for each in tried if _needed(levels, each) <= prompts), None)


def _needed(levels: Sequence[int], each: int) -> int:
    return sum(max(each, least_requests(level)) + warmup_requests(level) for level in levels)
