"""A quick look at the table of docs/method.md: how often the intervals hold the truth, how often a verdict is wrong."""

from __future__ import annotations

import pytest

from coverage_table import coverage, wrong
from regimes import WORLDS, World


@pytest.mark.parametrize(
    "world", [WORLDS[0], WORLDS[1], WORLDS[2], WORLDS[6], WORLDS[7], WORLDS[10]], ids=lambda w: w.name
)
def test_intervals_hold_the_truth(world: World) -> None:
    """A quick look at the table of docs/method.md: 250 experiments, so 95 % may come out as 90 to 99.6 %."""
    found = coverage(world, 250, resamples=300)
    assert 90 <= found.tpot_held <= 99.6
    assert found.throughput_held is None if world.prompts < 20 else 90 <= found.throughput_held <= 99.6


def test_no_difference_is_seldom_called_one() -> None:
    alone, together = wrong(WORLDS[1], 60, levels=4, resamples=300)
    assert alone <= 5
    assert together <= 9
