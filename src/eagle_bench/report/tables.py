"""The tables of an answer, as text cells: the same ones on a terminal, in Markdown and in HTML."""

from __future__ import annotations

from dataclasses import dataclass, field

from eagle_bench.comparison import Bounded, CellView, Comparison, Interval, LevelComparison
from eagle_bench.results import CellResult
from eagle_bench.units import NOTHING, count, dollars, milliseconds, percent, rate, significant, times


@dataclass(frozen=True)
class Table:
    """A table with its heads; `numeric` columns stand to the right, the first column heads its row."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = field(default_factory=frozenset)


def name(comparison: Comparison, variant: str) -> str:
    """How a variant is called: its label and its id, where they differ."""
    label = comparison.plan.labels.get(variant)
    return f"{label} ({variant})" if label and label != variant else variant


def bounded_ratio(interval: Interval | None) -> str:
    """A speed-up with its interval, such as "1.32× (1.28–1.36)"."""
    if interval is None:
        return NOTHING
    if interval.low is None or interval.high is None:
        return times(interval.estimate)
    return f"{times(interval.estimate)} ({interval.low:.2f}–{interval.high:.2f})"


def verdicts(comparison: Comparison) -> Table:
    """Each variant at each level against the baseline."""
    rows = tuple(
        (
            level.variant,
            str(level.concurrency),
            level.verdict,
            *(bounded_ratio(getattr(level.speedup, metric, None)) for metric in ("tpot", "throughput", "e2e", "ttft")),
            str(level.paired_prompts) if level.paired_prompts else NOTHING,
        )
        for level in comparison.comparisons
    )
    heads = ("Variant", "Concurrency", "Verdict", "TPOT", "Throughput", "E2E", "TTFT", "Pairs")
    caption = f"Speed-up over {comparison.baseline}, with 95 % intervals: above 1 is better"
    return Table(caption, heads, rows, frozenset({1, 3, 4, 5, 6, 7}))


def measured(comparison: Comparison) -> Table:
    """What each cell measured: medians over its completed requests."""
    cells = {(cell.variant, cell.concurrency): cell for cell in comparison.cells}
    rows = tuple(_measured_row(view, cells.get((view.variant, view.concurrency))) for view in comparison.views)
    heads = (
        "Variant", "Concurrency", "TPOT", "TTFT", "E2E", "TPOT p90", "TTFT p90", "Output", "Requests", "Acceptance", "Failed",
    )  # fmt: skip
    caption = "What was measured: medians of completed requests, 90th percentiles, rates while the concurrency was held"
    return Table(caption, heads, rows, frozenset(range(1, 11)))


def _measured_row(view: CellView, cell: CellResult | None) -> tuple[str, ...]:
    metrics = cell.metrics if cell else None
    tpot_p90 = metrics.tpot_ms.p90 if metrics and metrics.tpot_ms else None
    return (
        view.variant,
        str(view.concurrency),
        *(milliseconds(value.value if value else None) for value in (view.tpot_ms, view.ttft_ms, view.e2e_ms)),
        milliseconds(tpot_p90),
        milliseconds(metrics.ttft_ms.p90 if metrics else None),
        rate(_value(view.output_tokens_per_s), "tok/s"),
        rate(_value(view.requests_per_s), "req/s"),
        significant(cell.acceptance.length) if cell and cell.acceptance else NOTHING,
        _failed(cell),
    )


def costs(comparison: Comparison) -> Table | None:
    """Dollars per million output tokens; None without a price."""
    price = comparison.plan.price_per_hour
    if price is None:
        return None
    compared = {(c.variant, c.concurrency): c for c in comparison.comparisons}
    rows = tuple(
        (
            view.variant,
            str(view.concurrency),
            dollars(view.dollars_per_million_tokens),
            _break_even(compared.get((view.variant, view.concurrency)), price),
        )
        for view in comparison.views
    )
    heads = ("Variant", "Concurrency", "Per million output tokens", "Break-even price per hour")
    caption = f"Cost at {dollars(price)} an hour for each endpoint, fully loaded at that concurrency"
    return Table(caption, heads, rows, frozenset({1, 2, 3}))


def objectives(comparison: Comparison) -> Table | None:
    """Which cells keep the objective; None where none was set."""
    plan = comparison.plan
    limits = [
        f"{metric} ≤ {milliseconds(limit)}"
        for metric, limit in (("TTFT", plan.slo_ttft_ms), ("TPOT", plan.slo_tpot_ms))
        if limit is not None
    ]
    if not limits:
        return None
    cells = {(cell.variant, cell.concurrency): cell for cell in comparison.cells}
    rows = tuple(
        (
            view.variant,
            str(view.concurrency),
            {True: "kept", False: "missed", None: NOTHING}[view.meets_slo],
            rate(_goodput(cells.get((view.variant, view.concurrency))), "req/s"),
        )
        for view in comparison.views
    )
    caption = f"Objective: {' and '.join(limits)} for 90 % of the requests"
    return Table(caption, ("Variant", "Concurrency", "Objective", "Goodput"), rows, frozenset({1, 3}))


def answers(comparison: Comparison) -> Table | None:
    """How many answers equal the baseline's; None where no answers were kept."""
    if not comparison.losslessness:
        return None
    rows = tuple(
        (
            found.variant,
            str(found.concurrency),
            f"{found.identical} of {found.pairs} ({percent(found.identical / found.pairs)})",
            NOTHING
            if found.baseline_identical is None or not found.baseline_pairs
            else f"{found.baseline_identical} of {found.baseline_pairs} ({percent(found.baseline_identical / found.baseline_pairs)})",
            NOTHING if found.first_divergence is None else f"after {percent(found.first_divergence)} of the answer",
        )
        for found in comparison.losslessness
    )
    heads = ("Variant", "Concurrency", "Same as the baseline", "Baseline run twice", "First difference (median)")
    return Table("Answers at temperature 0 that are the same, character for character", heads, rows, frozenset({1}))


def failures(comparison: Comparison) -> Table | None:
    """Failed requests by cause, with the server's words; None where none failed."""
    if not comparison.failures:
        return None
    rows = tuple(
        (
            group.variant,
            str(group.concurrency),
            str(group.count),
            f"{group.kind} {group.status}" if group.status else group.kind,
            group.body or NOTHING,
        )
        for group in comparison.failures
    )
    return Table(
        "Failed requests by cause",
        ("Variant", "Concurrency", "Requests", "Cause", "The server's words"),
        rows,
        frozenset({1, 2}),
    )


def settings(comparison: Comparison) -> Table | None:
    """The variants' settings side by side; a last column says which differ."""
    plan = comparison.plan
    names = sorted({key for values in plan.settings.values() for key in values})
    if not names:
        return None
    rows = []
    for key in names:
        values = [plan.settings.get(variant, {}).get(key, NOTHING) for variant in comparison.variants]
        rows.append((key, *values, "same" if len(set(values)) == 1 else "differs"))
    return Table("Settings of the variants", ("Setting", *comparison.variants, ""), tuple(rows))


def _value(bounded: Bounded | None) -> float | None:
    return bounded.value if bounded else None


def _goodput(cell: CellResult | None) -> float | None:
    return cell.metrics.goodput if cell and cell.metrics else None


def _failed(cell: CellResult | None) -> str:
    if cell is None:
        return "missing"
    if cell.failure is not None:
        return cell.failure.stage.replace("_", " ")
    return f"{cell.counts.failed} of {count(cell.counts.requested, 'request')}" if cell.counts.failed else "0"


def _break_even(compared: LevelComparison | None, price: float) -> str:
    return dollars(price * compared.break_even) if compared and compared.break_even else NOTHING
