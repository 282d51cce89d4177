"""How long the rest of a cell takes, by what is done of it."""

from __future__ import annotations

import asyncio

import pytest

from eagle_bench.adapters.vllm_client import course
from eagle_bench.adapters.vllm_client.rounds import Tally
from eagle_bench.adapters.vllm_client.target import Progress


@pytest.mark.parametrize("concurrency", [1, 4, 10])
def test_the_first_estimate_is_near_at_every_concurrency(concurrency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of 3 s each, the first of which has just ended, of 100."""
    clock_s = 0.0
    monkeypatch.setattr(course.time, "perf_counter", lambda: clock_s)
    cell = course.Course(concurrency, 1, Tally, lambda _: None)
    cell.begin(100, 1)
    assert cell.left_s(0) is None
    clock_s = 3.0
    left_s = cell.left_s(1)
    assert left_s is not None and 0.6 < left_s / (3.0 * 100 / concurrency) < 2
    assert cell.left_s(100) == 0


def test_what_it_tells_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s, said = 0.0, list[Progress]()
    monkeypatch.setattr(course.time, "perf_counter", lambda: clock_s)

    async def round_of_fifty() -> None:
        nonlocal clock_s
        cell = course.Course(2, 2, Tally, said.append)
        cell.begin(100, 2)
        async with cell.telling(0):
            clock_s = 51.0
        cell.over(50, 0, 0)

    asyncio.run(round_of_fifty())
    assert [str(one) for one in said] == ["c=2 round 1/2: 50/100 requests, 0 failed, about 49 s left"]
