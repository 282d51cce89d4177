"""Worlds with a known truth, to see how often an interval holds it. Shares no code with the product.

An experiment is one run of a benchmark in such a world: prompts in rounds, a value for each prompt and side
(NaN where it failed). The true ratio is the same in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

TRUE_RATIO = 1.15


@dataclass(frozen=True)
class World:
    """How requests come out. Spreads are standard deviations of logarithms."""

    name: str
    prompts: int = 150
    rounds: int = 3
    hardness: float = 0.35
    noise: float = 0.12
    outliers: float = 0.0
    failing: tuple[float, float] = (0.0, 0.0)
    fail_when_hard: bool = False
    drift: float = 0.0
    shared_drift: float = 0.0
    ratio: float = TRUE_RATIO

    def without_difference(self) -> World:
        return replace(self, ratio=1.0)


WORLDS = (
    World("one round", rounds=1),
    World("three rounds"),
    World("small n: 12 prompts", prompts=12, rounds=1),
    World("small n: 24 prompts in 3 rounds", prompts=24),
    World("1000 prompts", prompts=1000),
    World("skewed lengths", hardness=1.2, noise=0.25),
    World("outliers: 5 % of the requests 8 times as slow", outliers=0.05),
    World("unequal failures: 2 % and 20 %, the hard ones first", failing=(0.02, 0.20), fail_when_hard=True),
    World("drift both variants share, 10 %", shared_drift=0.10),
    World("drift of each variant, 1 %", drift=0.01),
    World("drift of each variant, 3 %", drift=0.03),
    World("drift of each variant, 10 %", drift=0.10),
    World("drift of each variant, 3 %, five rounds", drift=0.03, rounds=5),
    World("drift of each variant, 3 %, two rounds", drift=0.03, rounds=2),
    World("two rounds", rounds=2),
)


@dataclass(frozen=True)
class Experiment:
    rounds: np.ndarray
    tokens: np.ndarray
    baseline: np.ndarray
    variant: np.ndarray


def experiment(world: World, rng: np.random.Generator) -> Experiment:
    """One run: times per token of both sides, the variant's `world.ratio` times as fast."""
    n = world.prompts
    rounds = np.arange(n) % world.rounds
    hard = rng.normal(0, world.hardness, n)
    tokens = np.maximum(2, np.round(np.exp(rng.normal(5, 0.8, n))))
    common = rng.normal(0, world.shared_drift, world.rounds)
    sides = []
    for failing, speed in zip(world.failing, (1.0, world.ratio), strict=True):
        drift = common + rng.normal(0, world.drift, world.rounds)
        values = 10 * np.exp(hard + rng.normal(0, world.noise, n) + drift[rounds]) / speed
        values = np.where(rng.random(n) < world.outliers, 8 * values, values)
        chance = failing * 2 * (hard > np.median(hard)) if world.fail_when_hard else failing
        sides.append(np.where(rng.random(n) < chance, np.nan, values))
    return Experiment(rounds, tokens, sides[0], sides[1])
