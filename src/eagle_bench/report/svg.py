"""Matplotlib's SVG made fit to stand inside a page: no outside address, the page's colours and font.

Charts are drawn in the marker colours of `INK`, `LINE`, `SURFACE` and `SERIES`; in the SVG they become CSS
variables, so that one picture is right in light, in dark and in print.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from eagle_bench.plain_text import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, LINE, SURFACE, GOOD, BAD = "#010101", "#020202", "#030303", "#040404", "#050505", "#060606"
SERIES = ("#0a0a00", "#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04", "#0a0a05")
MARKERS = ("o", "s", "^", "D", "v", "P")
_VARIABLES = {
    INK: "ink", MUTED: "muted", LINE: "line", SURFACE: "surface", GOOD: "good", BAD: "bad",
    **{colour: f"series-{i}" for i, colour in enumerate(SERIES)},
}  # fmt: skip

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.id": None,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 11,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 11,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
}


def inline(figure: Figure, *, name: str, title: str, description: str) -> str:
    """A figure as `<svg>` for HTML, with its text alternative. The same figure gives the same bytes.

    Args:
        name: prefix of the ids, different for each picture of a page.
    """
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _adopt(out.getvalue(), name=name, title=title, description=description)


def _adopt(text: str, *, name: str, title: str, description: str) -> str:
    head, body = text[text.index("<svg") :].split(">", 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    body = re.sub(r"<[^>]+>", lambda tag: _tag(tag.group(), name), body)  # what a label says stays as it is
    body = re.sub(r"\n\s*", "\n", body)
    heads = f'<title id="{name}-title">{escape(plain(title))}</title><desc id="{name}-desc">{escape(plain(description))}</desc>'
    return (
        f'<svg class="chart" viewBox="{box.group(1) if box else ""}" role="img" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-desc">{heads}{body}'
    )


def _tag(tag: str, name: str) -> str:
    """One tag with the page's colours and font, ids of its own, and hundredths of a pixel."""
    tag = tag.replace("xlink:href", "href")
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"font-family: [^;\"]+;? ?", "", tag)
    tag = re.sub("|".join(_VARIABLES), lambda found: f"var(--{_VARIABLES[found.group()]})", tag)
    tag = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", tag)
    return re.sub(r"(\d\.\d{2})\d+", r"\1", tag)
