"""From cells to a `Comparison`: pair, resample, judge, decide. Pure: the same cells give the same answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eagle_bench import checks, cost, intervals, losslessness, stats, verdict
from eagle_bench.comparability import came_in_one_piece, ended_early, incomparable, too_short
from eagle_bench.comparison import Comparison, Interval, LevelBest, LevelComparison, Plan, Speedup
from eagle_bench.grid import Grid
from eagle_bench.intervals import MIN_PAIRS, Draws, Ratio
from eagle_bench.pairing import Columns, Level, unproven_prompts
from eagle_bench.rates import rates
from eagle_bench.results import CellResult
from eagle_bench.stats import Resamples
from eagle_bench.units import change, conjunction, count, times
from eagle_bench.views import failure_groups, view

METRICS = ("tpot", "e2e", "throughput", "ttft")


def compare(plan: Plan, cells: Iterable[CellResult], *, resamples: int = stats.RESAMPLES, seed: int = 0) -> Comparison:
    """The whole answer: every planned cell is in it, measured or named as missing.

    Args:
        plan: what was to be measured; variants in the order of the report.
        cells: what came in, in any order, failed cells too.
        resamples, seed: of the bootstrap; the same ones give the same numbers.
    """
    grid = Grid.of(plan, cells)
    levels = {level: _LevelDraws.of(grid, level, resamples, seed) for level in sorted(plan.levels)}
    comparisons = tuple(
        comparison
        for variant in plan.variants
        if variant != plan.baseline
        for comparison in _judge(grid, variant, levels)
    )
    decisions = tuple(
        cost.with_savings(verdict.decide(variant, mine), plan, grid)
        for variant in plan.candidates
        if (mine := [c for c in comparisons if c.variant == variant])
    )
    views = tuple(view(grid, variant, level) for variant, level in grid.planned())
    lossless = tuple(
        found
        for variant, level in grid.planned()
        if (cell := grid.cells.get((variant, level))) is not None
        and variant in plan.candidates
        and (baseline := grid.cells.get((plan.baseline, level))) is not None
        and (found := losslessness.compare_answers(baseline, cell, grid.cells.get((plan.baseline_again or "", level))))
    )
    kept = tuple(cost.for_plan(plan, grid.cells[key]) for key in grid.planned() if key in grid.cells)
    return Comparison(
        plan=plan,
        baseline=plan.baseline,
        variants=plan.variants,
        levels=tuple(sorted(plan.levels)),
        cells=kept,
        comparisons=comparisons,
        decisions=decisions,
        warnings=checks.warnings(grid, comparisons, lossless),
        best=tuple(
            _best(level, draws, [c for c in comparisons if c.variant in plan.candidates])
            for level, draws in levels.items()
        ),
        views=views,
        failures=failure_groups(grid),
        losslessness=lossless,
    )


@dataclass(frozen=True)
class _LevelDraws:
    """The bootstrap of one level, shared by its variants, and each variant's draws against the baseline."""

    level: Level | None
    resamples: Resamples | None
    draws: Mapping[str, Mapping[str, Draws | None]]

    @classmethod
    def of(cls, grid: Grid, concurrency: int, resamples: int, seed: int) -> _LevelDraws:
        plan = grid.plan
        usable = {v: grid.cells[v, concurrency] for v in plan.variants if grid.problem(v, concurrency) is None}
        level = Level.of(usable)
        if plan.baseline not in usable or not level.rounds.size:
            return cls(None, None, {})
        shared = Resamples(level.rounds, count=resamples, seed=seed + concurrency)
        baseline = usable[plan.baseline]
        draws = {
            variant: _draws(shared, level.columns[plan.baseline], level.columns[variant], baseline, cell)
            for variant, cell in usable.items()
            if variant != plan.baseline and baseline.requests and cell.requests
        }
        return cls(level, shared, draws)


def _draws(
    shared: Resamples, before: Columns, after: Columns, baseline: CellResult, cell: CellResult
) -> dict[str, Draws | None]:
    clock = rates(cell, baseline)
    return {
        "tpot": shared.median_ratio(before.tpot_ms, after.tpot_ms),
        "e2e": shared.median_ratio(before.e2e_ms, after.e2e_ms),
        "ttft": shared.median_ratio(before.ttft_ms, after.ttft_ms),
        "throughput": None
        if clock is None
        else shared.rate_ratio(
            (after.output_tokens, after.e2e_ms),
            (before.output_tokens, before.e2e_ms),
            (math.log(clock.ratio), clock.by_round),
        ),
    }


def _judge(grid: Grid, variant: str, levels: Mapping[int, _LevelDraws]) -> list[LevelComparison]:
    """All levels of one variant: bounds first, as they hold for all levels at once, then a verdict each."""
    ratios = {
        metric: dict(
            zip(levels, intervals.ratios([_of(level, variant, metric) for level in levels.values()]), strict=True)
        )
        for metric in METRICS
    }
    return [_level(grid, variant, concurrency, {m: ratios[m][concurrency] for m in METRICS}) for concurrency in levels]


def _of(level: _LevelDraws, variant: str, metric: str) -> Draws | None:
    return level.draws.get(variant, {}).get(metric)


def _level(grid: Grid, variant: str, concurrency: int, ratios: Mapping[str, Ratio | None]) -> LevelComparison:
    baseline = grid.plan.baseline
    problems = [p for v in (baseline, variant) if (p := grid.problem(v, concurrency)) is not None]
    if not problems:
        problems = incomparable(grid.plan, grid.cells[baseline, concurrency], grid.cells[variant, concurrency])
    if problems:
        return LevelComparison(
            variant=variant, concurrency=concurrency, verdict="invalid", reasons=tuple(problems), speedup=None
        )
    cells = grid.cells[baseline, concurrency], grid.cells[variant, concurrency]
    speedup = _speedup(ratios, *cells)
    tpot, ratio = speedup.tpot, ratios["tpot"]
    found, reasons = verdict.judge(tpot), []
    pairs = ratio.pairs if ratio else 0
    unproven, whole = unproven_prompts(*cells), [cell.variant for cell in cells if came_in_one_piece(cell)]
    short = too_short(grid.plan, cells, pairs) or (ended_early(cells) if found == "inconclusive" else [])
    if (doubt := verdict.too_good(tpot, cells[1].acceptance)) is not None:
        reasons.append(f"{doubt}: something else differs")
        found = "invalid"
    elif whole:
        reasons.append(
            f"the answers of {conjunction(whole)} came in one piece (no time between their tokens), so there is "
            "no time per output token"
        )
    elif not all(cell.requests for cell in cells):
        reasons.append("the results hold no single requests (save them with details), so there is no interval")
    elif unproven:
        reasons.append(unproven)
    elif tpot is None:
        reasons.append("no answer has two tokens or more, so there is no time per output token")
    elif tpot.family_low is None:
        reasons.append(
            f"only {count(pairs, 'prompt')} completed in both variants: too few for an interval, which takes {MIN_PAIRS}"
        )
    elif short:
        reasons += short
        found = "inconclusive"
    else:
        more = speedup.throughput
        if found == "inconclusive" and more and more.low and more.low > 1:
            reasons.append(f"throughput is higher ({times(more.low)} to {times(more.high)}), on which no verdict rests")
        reasons.append(_because(found, tpot))
    unsettled = found == "inconclusive"
    return LevelComparison(
        variant=variant,
        concurrency=concurrency,
        verdict=found,
        reasons=tuple(reasons),
        speedup=speedup,
        paired_prompts=pairs,
        short=bool(short),
        more_prompts=verdict.more_prompts(tpot, pairs) if unsettled and not short else None,
        drift=bool(ratio and ratio.drift),
        break_even=speedup.throughput.estimate if speedup.throughput and found != "invalid" else None,
    )


def _because(found: str, tpot: Interval) -> str:
    bounds = f"{times(tpot.family_low)} to {times(tpot.family_high)}"
    if found == "inconclusive":
        told = "no measurable difference" if verdict.within_noise(tpot) else "both faster and slower are possible"
        return f"the TPOT speed-up lies in {bounds}: {told}"
    return (
        f"output tokens come {times(tpot.estimate)} as fast ({bounds}; throughput per stream {change(tpot.estimate)})"
    )


def _speedup(ratios: Mapping[str, Ratio | None], baseline: CellResult, variant: CellResult) -> Speedup:
    def without_interval(metric: str) -> float | None:
        if metric == "throughput":
            clock = rates(variant, baseline)
            return clock.ratio if clock else None
        top, bottom = (getattr(cell.metrics, f"{metric}_ms") for cell in (baseline, variant))
        return top.p50 / bottom.p50 if top and bottom and min(top.p50, bottom.p50) > 0 else None

    def interval(metric: str) -> Interval | None:
        ratio = ratios[metric]
        if ratio is not None:
            return Interval(
                estimate=ratio.estimate,
                low=ratio.low,
                high=ratio.high,
                family_low=ratio.family_low,
                family_high=ratio.family_high,
            )
        estimate = without_interval(metric)
        return None if estimate is None else Interval(estimate=estimate, low=None, high=None)

    return Speedup(**{metric: interval(metric) for metric in METRICS})


def _best(concurrency: int, level: _LevelDraws, comparisons: Iterable[LevelComparison]) -> LevelBest:
    """The fastest of the variants that beat the baseline, with those that can't be told from it."""
    speedups = {
        c.variant: c.tpot.estimate
        for c in comparisons
        if c.concurrency == concurrency and c.verdict == "faster" and c.tpot
    }
    ranked = sorted(speedups, key=lambda variant: -speedups[variant])
    if not ranked or level.level is None or level.resamples is None:
        return LevelBest(concurrency=concurrency, variants=())
    first = level.level.columns[ranked[0]]
    tied = [ranked[0]]
    for other in ranked[1:]:
        draws = level.resamples.median_ratio(level.level.columns[other].tpot_ms, first.tpot_ms)
        bounds = draws.interval() if draws else None
        if bounds is None or bounds[0] <= 0:
            tied.append(other)
    return LevelBest(concurrency=concurrency, variants=tuple(tied))
