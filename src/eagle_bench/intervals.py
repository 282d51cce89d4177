"""From resamples to bounds: 95 % intervals of one level, and of all levels of a variant at once.

Two sources of noise, and how an interval holds both (proven by simulation, see docs/method.md):

* Prompts: the percentiles of the resamples.
* Rounds. A server is not the same machine an hour later. Where the rounds' own estimates spread more than
  their prompts explain (`DRIFT` × the bootstrap's variance), the interval is Student's over the rounds
  (batch means: Law and Kelton, Simulation Modeling and Analysis, 9.5.3), else the prompts'. A plain bootstrap
  of three rounds would cover 75 % instead of 95 %.

Choosing between the two by the data is a preliminary test (Bancroft, Ann. Math. Stat. 15, 1944; Bozivich, Bancroft
and Hartley, ibid. 27, 1956), and what is chosen holds the truth neither as often as the one nor as the other. With V
the variance of an estimate, P the prompts' part of it, l = V ÷ P >= 1, r rounds and x = spread of the rounds ÷ P, which
is l × chi-squared of r − 1 degrees ÷ (r − 1) and independent of the estimate, the truth is held in

    E[2 F(h(x) ÷ sqrt(l)) − 1],  h(x) = F⁻¹((1 + AGREEING) ÷ 2) for x <= DRIFT, max(that, t(r − 1) sqrt(x)) above

of the cells (F is the normal distribution). AGREEING and DRIFT are chosen so that this is 94 to 96 % for every l, and
for two rounds 94 to 97 %. With 95 % where the rounds agree it would be 93 to 97 % for three rounds and 92 to 98 % for
two, whatever h is above DRIFT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eagle_bench.quantiles import chi_squared_quantile, t_quantile

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
AGREEING = 0.88
"""Confidence of the prompts' interval where the rounds agree: those of rounds that don't hardly ever miss."""
DRIFT = {2: 0.12, 3: 0.40, 4: 0.52}
DRIFT_OTHERWISE = 0.63
"""Share of the prompts' variance above which the rounds decide, by their number."""
_SURELY = 0.95
"""How sure it must be that rounds differ by more than their prompts explain, before an endpoint is said to drift."""
MIN_PAIRS = 8
"""Fewest pairs with an interval: below, even the widest interval that the data can give covers too little."""


@dataclass(frozen=True)
class Ratio:
    """A ratio above 1 where the variant is better.

    `low` and `high` bound it with 95 % confidence; `family_low` and `family_high` bound the ratios of all
    levels at once with 95 % confidence. None where there is too little data to say.
    """

    estimate: float
    low: float | None = None
    high: float | None = None
    family_low: float | None = None
    family_high: float | None = None
    pairs: int = 0
    drift: bool = False


@dataclass(frozen=True)
class Draws:
    """Bootstrap of one log ratio: the estimate, the resampled values, and each round's own estimate."""

    estimate: float
    values: Floats
    by_round: Floats
    pairs: int
    least: int = MIN_PAIRS

    @property
    def prompt_variance(self) -> float:
        """Variance of the estimate from the choice of prompts."""
        return float(np.var(self.values)) if self.values.size else math.nan

    @property
    def round_variance(self) -> float:
        """Variance of the estimate as the spread of the rounds shows it; NaN for fewer than two rounds."""
        rounds = self.by_round.size
        return float(np.var(self.by_round, ddof=1) / rounds) if rounds > 1 else math.nan

    @property
    def excess(self) -> float:
        """Spread of the rounds ÷ the spread that their prompts explain; 1 is no drift, NaN is unknown."""
        return self.round_variance / self.prompt_variance if self.prompt_variance > 0 else math.nan

    @property
    def rounds_decide(self) -> bool:
        """Whether the rounds spread enough for the interval to be theirs."""
        return self.excess > DRIFT.get(self.by_round.size, DRIFT_OTHERWISE)

    @property
    def drifts(self) -> bool:
        """Whether the rounds surely differ by more than their prompts explain."""
        freedom = self.by_round.size - 1
        return freedom > 0 and self.excess > chi_squared_quantile(_SURELY, freedom) / freedom

    def interval(self) -> tuple[float, float] | None:
        """Bounds that hold the log ratio with 95 % confidence; None with too few pairs."""
        if self.pairs < self.least or not self.values.size:
            return None
        rounds = self.by_round.size
        low, high = _percentiles(self, 1 - (AGREEING if rounds > 1 else CONFIDENCE))
        if self.rounds_decide:
            half = t_quantile((1 + CONFIDENCE) / 2, rounds - 1) * math.sqrt(self.round_variance)
            low, high = min(low, self.estimate - half), max(high, self.estimate + half)
        return low, high


def ratios(levels: Sequence[Draws | None]) -> list[Ratio | None]:
    """The levels of one variant as ratios, with bounds for each alone and for all of them at once.

    The bounds for all are the widest of three: the prompts' percentiles and Student's interval over the rounds,
    both with Šidák's correction, the latter with the variance that drift adds pooled over the levels and the
    prompts' never below the levels' mean; and the level's own interval. They decide verdicts, so they are never the lucky ones.
    """
    known = [draws for draws in levels if draws is not None and draws.pairs >= draws.least]
    alpha = 1 - CONFIDENCE ** (1 / max(1, len(known)))
    drifts = [(d.round_variance - d.prompt_variance, d.by_round.size - 1) for d in known if d.by_round.size > 1]
    freedom = sum(df for _, df in drifts)
    drift = sum(variance * df for variance, df in drifts) / freedom if freedom else 0.0
    usual = sum(draws.prompt_variance for draws in known) / max(1, len(known))

    def both(draws: Draws | None) -> Ratio | None:
        if draws is None:
            return None
        estimate = math.exp(draws.estimate)
        own = draws.interval()
        if own is None:
            return Ratio(estimate, pairs=draws.pairs)
        low, high = _percentiles(draws, alpha)
        if freedom:
            half = t_quantile(1 - alpha / 2, freedom) * math.sqrt(max(0.0, max(usual, draws.prompt_variance) + drift))
            low, high = min(low, draws.estimate - half), max(high, draws.estimate + half)
        family = min(low, own[0]), max(high, own[1])
        return Ratio(
            estimate,
            low=math.exp(own[0]),
            high=math.exp(own[1]),
            family_low=math.exp(family[0]),
            family_high=math.exp(family[1]),
            pairs=draws.pairs,
            drift=draws.drifts,
        )

    return [both(draws) for draws in levels]


def _percentiles(draws: Draws, alpha: float) -> tuple[float, float]:
    """Percentile interval, stretched about the estimate for small samples as Student's t is to the normal.

    The percentiles are the α/2 × (resamples + 1)-th values from both ends (Davison and Hinkley, Bootstrap Methods and
    their Application, 5.2): others lie too near to the middle where resamples are few.
    """
    low, high = np.quantile(draws.values, [alpha / 2, 1 - alpha / 2], method="weibull")
    freedom = draws.pairs - 1
    normal = NormalDist().inv_cdf(1 - alpha / 2)
    stretch = t_quantile(1 - alpha / 2, freedom) / normal * math.sqrt(draws.pairs / freedom)
    return (
        draws.estimate + (float(low) - draws.estimate) * stretch,
        draws.estimate + (float(high) - draws.estimate) * stretch,
    )
