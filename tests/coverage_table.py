"""The coverage table of docs/method.md: how often an interval holds the truth, and how often it is wrong.

python tests/coverage_table.py [--experiments 4000] [--sweeps 500] [--write docs/method.md]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eagle_bench.intervals import Draws, Ratio, ratios
from eagle_bench.stats import Resamples
from regimes import WORLDS, Experiment, World, experiment

RESAMPLES = 1000
START, END = "<!-- coverage table: begin -->", "<!-- coverage table: end -->"


@dataclass(frozen=True)
class Outcome:
    """What became of the experiments in one world; shares in per cent."""

    tpot_held: float
    tpot_width: float
    throughput_held: float | None
    throughput_width: float | None


def draws_of(run: Experiment, seed: int, resamples: int = RESAMPLES) -> tuple[Draws | None, Draws | None]:
    """The bootstrap of the TPOT ratio and of the throughput ratio."""
    shared = Resamples(run.rounds, count=resamples, seed=seed)
    tpot = shared.median_ratio(run.baseline, run.variant)
    throughput = shared.rate_ratio((run.tokens, run.tokens * run.variant), (run.tokens, run.tokens * run.baseline))
    return tpot, throughput


def coverage(world: World, experiments: int, resamples: int = RESAMPLES) -> Outcome:
    """How often the 95 % intervals hold the truth, and how wide they are in the median."""
    rng = np.random.default_rng(20260101)
    held: tuple[list[bool], list[bool]] = ([], [])
    widths: tuple[list[float], list[float]] = ([], [])
    for seed in range(experiments):
        for kind, draws in enumerate(draws_of(experiment(world, rng), seed, resamples)):
            [found] = ratios([draws])
            if found is not None and found.low is not None and found.high is not None:
                held[kind].append(found.low <= world.ratio <= found.high)
                widths[kind].append(100 * (found.high - found.low) / found.estimate)
    throughput = (100 * float(np.mean(held[1])), float(np.median(widths[1]))) if held[1] else (None, None)
    return Outcome(100 * float(np.mean(held[0])), float(np.median(widths[0])), *throughput)


def wrong(world: World, sweeps: int, levels: int = 6, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Verdicts of "faster" or "slower" where there is no difference, in per cent.

    Returns:
        the share of levels called so when each is measured alone, and of sweeps with at least one such level.
    """
    rng = np.random.default_rng(20260102)
    alone = together = 0
    for sweep in range(sweeps):
        seeds = range(sweep * levels, (sweep + 1) * levels)
        draws = [draws_of(experiment(world.without_difference(), rng), seed, resamples)[0] for seed in seeds]
        alone += sum(_misses(ratio) for level in draws for ratio in ratios([level]))
        together += any(_misses(ratio) for ratio in ratios(draws))
    return 100 * alone / (sweeps * levels), 100 * together / sweeps


def _misses(ratio: Ratio | None) -> bool:
    if ratio is None or ratio.family_low is None or ratio.family_high is None:
        return False
    return not ratio.family_low <= 1 <= ratio.family_high


def table(experiments: int, sweeps: int) -> str:
    """The table, row by row; each is shown as it comes."""
    head = (
        "| world | TPOT: held by | width | throughput: held by | width | wrong, one level | wrong, any of six |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    )
    rows = []
    for world in WORLDS:
        found, (one, six) = coverage(world, experiments), wrong(world, sweeps)
        rows.append(
            f"| {world.name} | {found.tpot_held:.1f} % | {found.tpot_width:.0f} % "
            f"| {_share(found.throughput_held, 1)} | {_share(found.throughput_width, 0)} | {one:.1f} % | {six:.1f} % |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return "\n".join((*head, *rows))


def _share(value: float | None, digits: int) -> str:
    return "no interval" if value is None else f"{value:.{digits}f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=4000)
    parser.add_argument("--write", type=Path, help="a Markdown file that holds the table between two comments")
    parser.add_argument("--sweeps", type=int, default=500)
    options = parser.parse_args()
    found = table(options.experiments, options.sweeps)
    if options.write:
        text = options.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        _, _, after = rest.partition(END)
        options.write.write_text(f"{before}{START}\n{found}\n{END}{after}", encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
