"""The picture of the answer: the speed-up at each level, with its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle_bench.comparison import Comparison, Interval, LevelComparison
from eagle_bench.report import drawing, svg
from eagle_bench.report.drawing import Chart
from eagle_bench.report.tables import bounded_ratio
from eagle_bench.units import times

_CLEAR = 5  # pixels between the line at 1 and the words beside it


def speedup(comparison: Comparison) -> Chart | None:
    """TPOT speed-up per level with intervals; None where no level has one."""
    found = [c for c in comparison.comparisons if c.tpot]
    if not found:
        return None
    with drawing.axes(drawing.LARGE_WIDTH, drawing.LARGE_HEIGHT) as (figure, axes):
        _speedups(axes, comparison, found)
        caption = (
            "Above 1 the variant is faster. Thick bars are 95 % intervals of each level, thin ones hold for all levels "
            "at once and decide the verdict."
        )
        title = "Speed-up per output token, by concurrency"
        told = "; ".join(f"{c.variant} at {c.concurrency}: {bounded_ratio(c.tpot)}, {c.verdict}" for c in found)
        return Chart("speedup", title, caption, svg.inline(figure, name="speedup", title=title, description=f"{told}."))


def _speedups(axes: Any, comparison: Comparison, found: Sequence[LevelComparison]) -> None:
    others = [variant for variant in comparison.variants if variant != comparison.baseline]
    axes.axhline(1, color=svg.INK, linewidth=1.2, zorder=1)
    step = min(0.22, 0.7 / len(others))
    for index, variant in enumerate(others):
        colour, marker = drawing.look(comparison, variant)
        mine = [c for c in found if c.variant == variant]
        label = drawing.short(variant) if len(others) > 1 else None
        for c in mine:
            x = comparison.levels.index(c.concurrency) + (index - (len(others) - 1) / 2) * step
            tpot = c.tpot
            if tpot is None:
                continue
            _whiskers(axes, x, tpot, colour)
            solid = c.verdict in ("faster", "slower")
            axes.plot([x], [tpot.estimate], marker, color=colour, markersize=7, markeredgewidth=1.8,
                      markerfacecolor=colour if solid else svg.SURFACE, zorder=4, label=label)  # fmt: skip
            label = None
            if len(others) == 1:
                top = max(tpot.estimate, tpot.family_high or tpot.high or 0)
                axes.annotate(
                    times(tpot.estimate),
                    (x, top),
                    xytext=(0, 5),
                    textcoords="offset points",
                    ha="center",
                    weight="bold",
                )
    drawing.levels(axes, comparison)
    axes.set_ylabel(f"times as fast as {drawing.short(comparison.baseline)}")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.9), max(high, 1.1) + 0.06 * (high - low))
    # Beside the axes, on both sides of 1 and clear of it: nothing is drawn there.
    for text, away, side in (("faster →", _CLEAR, "bottom"), ("← slower", -_CLEAR, "top")):
        axes.annotate(text, (1, 1), xycoords=axes.get_yaxis_transform(), xytext=(4, away), textcoords="offset points",
                      rotation=90, ha="left", va=side, color=svg.MUTED, size=10)  # fmt: skip
    if len(others) > 1:
        drawing.legend(axes, drawing.LARGE_WIDTH)


def _whiskers(axes: Any, x: float, interval: Interval, colour: str) -> None:
    if interval.family_low is not None:
        axes.plot([x, x], [interval.family_low, interval.family_high], color=colour, linewidth=1.3, zorder=2)
    if interval.low is not None:
        axes.plot(
            [x, x],
            [interval.low, interval.high],
            color=colour,
            linewidth=5,
            alpha=0.45,
            solid_capstyle="butt",
            zorder=3,
        )
