"""The pictures of what was measured. Each is a pure function of a comparison and says in words what it shows."""

from __future__ import annotations

from collections.abc import Callable

from eagle_bench.comparison import Bounded, CellView, Comparison
from eagle_bench.report import drawing, svg
from eagle_bench.report.drawing import Chart
from eagle_bench.units import milliseconds, rate, significant

# Where a point's label stands, variant by variant, so that those of equal points do not cover each other.
_BESIDE = ((6, 4, "left"), (6, -11, "left"), (-6, 4, "right"), (-6, -11, "right"))


def over_concurrency(comparison: Comparison) -> list[Chart]:
    """The four charts of the field: TTFT, TPOT, token and request throughput against concurrency."""
    kinds: tuple[tuple[str, str, str, Callable[[float | None], str]], ...] = (
        ("tpot_ms", "Time per output token (TPOT), median", "ms", milliseconds),
        ("ttft_ms", "Time to first token (TTFT), median", "ms", milliseconds),
        ("output_tokens_per_s", "Output throughput", "tokens per second", lambda v: rate(v, "tok/s")),
        ("requests_per_s", "Request throughput", "requests per second", lambda v: rate(v, "req/s")),
    )
    return [chart for kind in kinds if (chart := _over_concurrency(comparison, *kind)) is not None]


def _over_concurrency(
    comparison: Comparison, attribute: str, title: str, unit: str, say: Callable[[float | None], str]
) -> Chart | None:
    lines = _lines(comparison, attribute)
    if not lines:
        return None
    with drawing.axes() as (figure, axes):
        for variant, points in lines.items():
            colour, marker = drawing.look(comparison, variant)
            xs = [comparison.levels.index(level) for level, _ in points]
            values = [value for _, value in points]
            axes.plot(xs, [v.value for v in values], marker=marker, color=colour, label=drawing.short(variant))
            for x, value in zip(xs, values, strict=True):
                if value.low is not None:
                    axes.plot([x, x], [value.low, value.high], color=colour, linewidth=1.3)
        drawing.levels(axes, comparison)
        drawing.from_zero(axes)
        axes.set_ylabel(unit)
        drawing.legend(axes)
        better = "Lower is better." if attribute.endswith("_ms") else "Higher is better."
        told = "; ".join(
            f"{variant}: {', '.join(f'{say(value.value)} at {level}' for level, value in points)}"
            for variant, points in lines.items()
        )
        name = attribute.replace("_", "-")
        caption = f"{better} Bars are 95 % intervals."
        return Chart(name, title, caption, svg.inline(figure, name=name, title=title, description=f"{told}."))


def _lines(comparison: Comparison, attribute: str) -> dict[str, list[tuple[int, Bounded]]]:
    lines: dict[str, list[tuple[int, Bounded]]] = {}
    for view in comparison.views:
        value: Bounded | None = getattr(view, attribute)
        if value is not None:
            lines.setdefault(view.variant, []).append((view.concurrency, value))
    return lines


def frontier(comparison: Comparison) -> Chart | None:
    """What one user gets against what the endpoint gives; None without rates."""
    lines: dict[str, list[tuple[CellView, float, float]]] = {}
    for view in comparison.views:
        if view.user_tokens_per_s and view.output_tokens_per_s:
            lines.setdefault(view.variant, []).append((view, view.user_tokens_per_s, view.output_tokens_per_s.value))
    if not lines:
        return None
    with drawing.axes(drawing.LARGE_WIDTH, drawing.LARGE_HEIGHT) as (figure, axes):
        for index, (variant, points) in enumerate(lines.items()):
            colour, marker = drawing.look(comparison, variant)
            beside = _BESIDE[index % len(_BESIDE)]
            axes.plot(
                [p[1] for p in points],
                [p[2] for p in points],
                marker=marker,
                color=colour,
                label=drawing.short(variant),
            )
            for view, x, y in points:
                axes.annotate(
                    str(view.concurrency),
                    (x, y),
                    xytext=beside[:2],
                    ha=beside[2],
                    textcoords="offset points",
                    size=10,
                    color=colour,
                )
        axes.set_xlabel("tokens per second for one user")
        axes.set_ylabel("tokens per second of the endpoint")
        axes.margins(0.1)
        axes.set_xlim(left=0)
        drawing.from_zero(axes)
        drawing.legend(axes)
        title = "One user's speed against the endpoint's"
        told = "; ".join(
            f"{variant}: "
            + ", ".join(f"{significant(x)} and {significant(y)} at concurrency {v.concurrency}" for v, x, y in points)
            for variant, points in lines.items()
        )
        caption = "Further right a user reads faster, further up the endpoint serves more. Numbers are the concurrency."
        return Chart(
            "frontier", title, caption, svg.inline(figure, name="frontier", title=title, description=f"{told}.")
        )


def distributions(comparison: Comparison) -> list[Chart]:
    """How TPOT and TTFT spread over the requests, cell by cell."""
    kinds = (("tpot", "How TPOT spreads over the requests"), ("ttft", "How TTFT spreads over the requests"))
    return [chart for metric, title in kinds if (chart := _distribution(comparison, metric, title)) is not None]


def _distribution(comparison: Comparison, metric: str, title: str) -> Chart | None:
    views = [view for view in comparison.views if getattr(view, f"{metric}_quantiles_ms")]
    if not views:
        return None
    variants = [v for v in comparison.variants if any(view.variant == v for view in views)]
    step = min(0.24, 0.75 / len(variants))
    with drawing.axes() as (figure, axes):
        shown: set[str] = set()
        for view in views:
            colour, marker = drawing.look(comparison, view.variant)
            quantiles = getattr(view, f"{metric}_quantiles_ms")
            x = (
                comparison.levels.index(view.concurrency)
                + (variants.index(view.variant) - (len(variants) - 1) / 2) * step
            )
            axes.plot([x, x], [quantiles[2], quantiles[38]], color=colour, linewidth=1.3)
            axes.plot(
                [x, x], [quantiles[10], quantiles[30]], color=colour, linewidth=6, alpha=0.45, solid_capstyle="butt"
            )
            label = drawing.short(view.variant) if view.variant not in shown else None
            axes.plot([x], [quantiles[20]], marker, color=colour, markersize=5, label=label)
            shown.add(view.variant)
        drawing.levels(axes, comparison)
        drawing.from_zero(axes)
        axes.set_ylabel("ms")
        drawing.legend(axes)
        told = "; ".join(
            f"{v.variant} at {v.concurrency}: median {milliseconds(q[20])}, half of them {milliseconds(q[10])} to {milliseconds(q[30])}"
            for v in views
            if (q := getattr(v, f"{metric}_quantiles_ms"))
        )
        name = f"{metric}-spread"
        caption = "Dot: median. Thick: the middle half. Thin: 5 % to 95 % of the requests."
        return Chart(name, title, caption, svg.inline(figure, name=name, title=title, description=f"{told}."))


def acceptance(comparison: Comparison) -> Chart | None:
    """Share of drafted tokens accepted at each draft position; None where no engine told."""
    known = [c for c in comparison.cells if c.acceptance and c.acceptance.by_position]
    if not known:
        return None
    with drawing.axes() as (figure, axes):
        shown: set[str] = set()
        told = []
        for cell in known:
            shares = [100 * share for share in (cell.acceptance.by_position or ())] if cell.acceptance else []
            colour, marker = drawing.look(comparison, cell.variant)
            label = drawing.short(cell.variant) if cell.variant not in shown else None
            axes.plot(
                range(1, len(shares) + 1), shares, marker=marker, color=colour, alpha=0.7, linewidth=1.5, label=label
            )
            shown.add(cell.variant)
            told.append(f"{cell.variant} at {cell.concurrency}: {', '.join(f'{share:.0f} %' for share in shares)}")
        most = max(len(c.acceptance.by_position or ()) for c in known if c.acceptance)
        axes.set_xticks(range(1, most + 1))
        axes.set_xlim(0.5, most + 0.5)
        axes.set_ylim(0, 100)
        axes.set_xlabel("position in the draft")
        axes.set_ylabel("% accepted")
        axes.grid(axis="x", visible=False)
        drawing.legend(axes)
        title = "Drafted tokens accepted, by position"
        caption = "One line for each level. A steep fall says that shorter drafts would do."
        return Chart(
            "acceptance",
            title,
            caption,
            svg.inline(figure, name="acceptance", title=title, description="; ".join(told) + "."),
        )
