"""What a cell's requests amount to for a reader: medians with intervals, quantiles to draw, failures by cause."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from eagle_bench import cost
from eagle_bench.comparison import Bounded, CellView, FailureGroup
from eagle_bench.grid import Grid
from eagle_bench.intervals import Floats
from eagle_bench.pairing import Columns, Level
from eagle_bench.quantiles import median_interval
from eagle_bench.results import CellMetrics, CellResult
from eagle_bench.stats import Resamples

QUANTILES = tuple(i / 40 for i in range(41))
_RATE_RESAMPLES = 1000


def view(grid: Grid, variant: str, concurrency: int) -> CellView:
    """One planned cell; without metrics it says why there are none."""
    cell, problem = grid.cells.get((variant, concurrency)), grid.problem(variant, concurrency)
    if cell is None or cell.metrics is None or (variant, concurrency) in grid.twice:
        return CellView(variant=variant, concurrency=concurrency, problem=problem)
    metrics = cell.metrics
    level = Level.of({variant: cell})
    columns = level.columns[variant]
    tokens = Bounded(value=metrics.output_tokens_per_s) if metrics.output_tokens_per_s else None
    requests = Bounded(value=metrics.requests_per_s) if metrics.requests_per_s else None
    if cell.requests:
        ones = np.ones_like(columns.e2e_ms)
        tokens = _rate(level, columns.output_tokens, columns, metrics.output_tokens_per_s)
        requests = _rate(level, ones, columns, metrics.requests_per_s)
    gaps = [r.inter_chunk_ms_p50 for r in cell.requests if r.error is None and r.inter_chunk_ms_p50 is not None]
    return CellView(
        variant=variant,
        concurrency=concurrency,
        problem=problem,
        tpot_ms=_median(columns.tpot_ms, metrics.tpot_ms.p50) if metrics.tpot_ms else None,
        ttft_ms=_median(columns.ttft_ms, metrics.ttft_ms.p50),
        e2e_ms=_median(columns.e2e_ms, metrics.e2e_ms.p50) if metrics.e2e_ms else None,
        output_tokens_per_s=tokens,
        requests_per_s=requests,
        user_tokens_per_s=1000 / metrics.tpot_ms.p50 if metrics.tpot_ms and metrics.tpot_ms.p50 > 0 else None,
        tpot_quantiles_ms=_quantiles(columns.tpot_ms),
        ttft_quantiles_ms=_quantiles(columns.ttft_ms),
        inter_chunk_ms=float(np.median(gaps)) if gaps else None,
        mean_output_tokens=mean_output_tokens(cell, metrics),
        dollars_per_million_tokens=None
        if problem
        else cost.dollars_per_million_tokens(grid.plan.price_per_hour, metrics.output_tokens_per_s),
        meets_slo=None if problem else cost.meets_slo(grid.plan, metrics),
    )


def mean_output_tokens(cell: CellResult, metrics: CellMetrics) -> float | None:
    """Mean length of the completed answers, in tokens."""
    if metrics.mean_output_tokens is not None:
        return metrics.mean_output_tokens
    tokens = [r.output_tokens for r in cell.requests if r.error is None and r.output_tokens is not None]
    return sum(tokens) / len(tokens) if tokens else None


def failure_groups(grid: Grid) -> tuple[FailureGroup, ...]:
    """Failed requests by cell and cause, the most frequent first."""
    groups: list[FailureGroup] = []
    for key in grid.planned():
        errors = Counter(r.error for r in grid.cells[key].requests if r.error) if key in grid.cells else Counter()
        groups += [
            FailureGroup(variant=key[0], concurrency=key[1], kind=e.kind, status=e.status, body=e.body, count=number)
            for e, number in sorted(errors.items(), key=lambda item: (-item[1], item[0].kind, item[0].body))
        ]
    return tuple(groups)


def _known(values: Floats) -> Floats:
    return np.asarray(values[np.isfinite(values)])


def _median(values: Floats, p50: float) -> Bounded:
    bounds = median_interval(_known(values))
    return Bounded(value=p50) if bounds is None else Bounded(value=p50, low=bounds[0], high=bounds[1])


def _quantiles(values: Floats) -> tuple[float, ...]:
    known = _known(values)
    return tuple(float(value) for value in np.quantile(known, QUANTILES)) if known.size else ()


def _rate(level: Level, amount: Floats, columns: Columns, measured: float | None) -> Bounded | None:
    """A measured rate with the relative interval of Σ amount ÷ Σ time over the prompts (Little's law)."""
    if not measured:
        return None
    ones = np.where(np.isfinite(columns.e2e_ms), 1.0, np.nan)
    draws = Resamples(level.rounds, count=_RATE_RESAMPLES).rate_ratio((amount, columns.e2e_ms), (ones, ones))
    bounds = draws.interval() if draws else None
    if draws is None or bounds is None:
        return Bounded(value=measured)
    low, high = (measured * math.exp(bound - draws.estimate) for bound in bounds)
    return Bounded(value=measured, low=low, high=high)
