"""Quantiles that numpy has not: Student's t, chi-squared, and exact bounds of a median."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_NORMAL_FROM = 400
"""Degrees of freedom from which Student's t is taken as normal."""


def median_interval(values: NDArray[np.float64], alpha: float = 0.05) -> tuple[float, float] | None:
    """Bounds of a median from order statistics (exact, no distribution assumed); None with too few values."""
    size = values.size
    below, term = 0.0, 0.5**size if size < 1000 else 0.0
    if size >= 1000:  # the binomial's normal limit, exact to the rank here
        rank = math.floor(size / 2 - NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(size) / 2)
    else:
        rank = 0
        while below + term <= alpha / 2:
            below += term
            rank += 1
            term *= (size - rank + 1) / rank
    if rank < 1:
        return None
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[size - rank])


def t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t for whole degrees of freedom, probability > 1/2 (Abramowitz & Stegun 26.7.3–4)."""
    if freedom > _NORMAL_FROM:
        return NormalDist().inv_cdf(probability)
    low, high = 0.0, 1.0
    while _t_central(high, freedom) < 2 * probability - 1:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _t_central(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return high


def chi_squared_quantile(probability: float, freedom: int) -> float:
    """Quantile of chi-squared, to 3 % where it matters (Wilson and Hilferty: Abramowitz & Stegun 26.4.17)."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NormalDist().inv_cdf(probability) * math.sqrt(part)) ** 3)


def _t_central(t: float, freedom: int) -> float:
    """Probability that |T| < t."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    if odd:
        return 2 / math.pi * (angle + sine * total)
    return sine * total
