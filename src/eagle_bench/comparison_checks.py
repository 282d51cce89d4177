"""What makes a verdict suspect, by the speed-ups of a level or a variant. The part of `checks` about comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eagle_bench.codes import WarningCode
from eagle_bench.comparison import LevelComparison, Verdict, Warning
from eagle_bench.grid import Grid
from eagle_bench.units import levels, significant, times, times_spread
from eagle_bench.variants import MACHINES
from eagle_bench.verdict import judge, too_good

IMPLAUSIBLE = 3.0
"""Times as slow as the baseline: even drafts that are never right cost less, where nothing else runs."""

_SIDES: tuple[tuple[WarningCode, Verdict, str, str], ...] = (
    ("slower_first_token", "faster", "ttft", "the first token"),
    ("lower_throughput", "faster", "throughput", "throughput"),
    ("sooner_first_token", "slower", "ttft", "the first token"),
    ("higher_throughput", "slower", "throughput", "throughput"),
)
"""Code, the verdict by TPOT, and what points the other way."""
_WEIGH = {"ttft": "what your users feel", "throughput": "what you pay for"}

_ALLOWED_FOR = (
    "The verdict's bounds allow for that, not for what slowed one variant in all rounds: see what else ran meanwhile."
)


def control(grid: Grid, comparisons: Iterable[LevelComparison]) -> Iterator[Warning]:
    """The baseline's second run, where it is not as fast as the first."""
    for comparison in comparisons:
        tpot = comparison.tpot
        if comparison.variant == grid.plan.baseline_again and comparison.verdict in ("faster", "slower") and tpot:
            text = (
                f"this is the baseline once more, and yet {times(tpot.estimate)} as fast: the machines differ, or what "
                "else runs on them does. Take a speed-up of that size for nothing."
            )
            yield _warn("baseline_differs", text, comparison)


def possible(grid: Grid, comparisons: Iterable[LevelComparison]) -> Iterator[Warning]:
    """Speed-ups that speculation can't have made."""
    for comparison in comparisons:
        cell = grid.cells.get((comparison.variant, comparison.concurrency))
        tpot = comparison.tpot
        if cell is not None and (doubt := too_good(tpot, cell.acceptance)) is not None:
            advice = "Something else differs: look for a prefix cache, another batch limit, or another machine."
            yield _warn("impossible_speedup", f"{doubt}. {advice}", comparison)
        if tpot is not None and tpot.estimate < 1 / IMPLAUSIBLE:
            text = (
                f"a token takes {significant(1 / tpot.estimate)} times as long as the baseline's: drafts that are never right "
                "hardly cost so much. See what else ran on the machine meanwhile, and measure again."
            )
            yield _warn("implausible_slowdown", text, comparison)


def drift(grid: Grid, comparisons: Iterable[LevelComparison]) -> Iterator[Warning]:
    for comparison in comparisons:
        if comparison.drift and comparison.verdict != "invalid" and not comparison.short:
            text = "the rounds differ by more than their prompts explain: the endpoint drifted"
            sure = comparison.verdict in ("faster", "slower")
            what = _ALLOWED_FOR if sure else _against_drift(grid, comparison)
            yield _warn("drift", f"{text}. {what}", comparison)


def side_effects(grid: Grid, comparisons: Iterable[LevelComparison]) -> Iterator[Warning]:
    """A gain in TPOT that is paid elsewhere, and a loss that is made up for elsewhere; one warning for all levels of a variant."""
    levels_of = [c for c in comparisons if c.variant in grid.plan.candidates and c.speedup is not None]
    for variant in dict.fromkeys(c.variant for c in levels_of):
        mine = [c for c in levels_of if c.variant == variant]
        for code, verdict, metric, name in _SIDES:
            opposite = "slower" if verdict == "faster" else "faster"
            found = {
                c.concurrency: interval.estimate
                for c in mine
                if c.verdict == verdict
                and (interval := getattr(c.speedup, metric)) is not None
                and judge(interval) == opposite
            }
            if found:
                text = (
                    f"{name} is {'better' if opposite == 'faster' else 'worse'} than the baseline's at concurrency "
                    f"{levels(list(found))} ({times_spread(found.values())}) although output tokens come {verdict}: "
                    f"weigh {_WEIGH[metric]}."
                )
                yield Warning(code=code, variant=variant, text=text)


def _against_drift(grid: Grid, comparison: LevelComparison) -> str:
    """What settles a level whose rounds differ: the one thing that can be done about it."""
    cells = [grid.cells.get((name, comparison.concurrency)) for name in (grid.plan.baseline, comparison.variant)]
    if all(cell is not None and cell.environment.get("machines") == MACHINES["one-at-a-time"] for cell in cells):
        return "`run --slots 2`, where memory holds two variants, lets them take turns, and what slows both cancels."
    if comparison.more_prompts is None:
        return "Find out what else uses the servers or their machines, and measure again without it."
    return "Measure in more rounds (`repeats`, or `bench --rounds`): larger ones do not help."


def _warn(code: WarningCode, text: str, found: LevelComparison) -> Warning:
    return Warning(code=code, variant=found.variant, concurrency=found.concurrency, text=text)
