"""What all pictures of a report share: their size, the look of each variant, the axis of levels, the legend."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from eagle_bench.comparison import Comparison
from eagle_bench.plain_text import plain
from eagle_bench.report import svg

WIDTH, HEIGHT = 340, 240  # what a phone has for it, so that text is never drawn smaller than it is read
LARGE_WIDTH, LARGE_HEIGHT = 400, 280
_LETTER, _KEY = 6.6, 40  # of a legend, in pixels: a letter, and the mark before a name with its gaps


@dataclass(frozen=True)
class Chart:
    """One picture: its heading, what to see in it, and the SVG."""

    name: str
    title: str
    caption: str
    svg: str


@contextmanager
def axes(width: float = WIDTH, height: float = HEIGHT) -> Iterator[tuple[Any, Any]]:
    """A figure with one pair of axes, in pixels of the page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(svg.STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ")  # the page's font draws the text, not Matplotlib's
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
        yield figure, figure.subplots()


def look(comparison: Comparison, variant: str) -> tuple[str, str]:
    """Colour and marker of a variant, the same in all pictures; the baseline is grey."""
    if variant == comparison.baseline:
        return svg.MUTED, "o"
    others = [v for v in comparison.variants if v != comparison.baseline]
    place = others.index(variant)
    return svg.SERIES[place % len(svg.SERIES)], svg.MARKERS[(place + 1) % len(svg.MARKERS)]


def levels(axes: Any, comparison: Comparison) -> None:
    """Levels as equal steps: they are the ones that were measured, not a scale."""
    axes.set_xticks(range(len(comparison.levels)), [str(level) for level in comparison.levels])
    axes.set_xlim(-0.5, len(comparison.levels) - 0.5)
    axes.set_xlabel("concurrency")
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)


def legend(axes: Any, width: float = WIDTH) -> None:
    """Above the axes, where it can't hide a point, in as many columns as there is room for."""
    names = axes.get_legend_handles_labels()[1]
    column = _KEY + _LETTER * max(len(name) for name in names)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=max(1, min(3, len(names), int((width - 50) // column))),
        borderaxespad=0,
        handlelength=1.6,
        columnspacing=1.2,
    )


def short(text: str) -> str:
    """A name that leaves room for the picture; the page says it in full."""
    shown = plain(text.replace("\n", " "))
    shown = f" {shown}" if shown.startswith("_") else shown  # Matplotlib leaves such names out of its legend
    return shown if len(shown) <= 16 else f"{shown[:15]}…"


def from_zero(axes: Any) -> None:
    """Times and rates start at 0; room above, so that no mark or label is cut."""
    axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
