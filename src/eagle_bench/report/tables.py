"""The tables of an answer, as text cells: the same ones on a terminal, in Markdown and in HTML."""

from __future__ import annotations

from eagle_bench.comparison import Bounded, CellView, Comparison, Interval, LevelComparison
from eagle_bench.report.table import Table
from eagle_bench.results import CellResult
from eagle_bench.units import NOTHING, dollars, milliseconds, percent, rate, significant, times, whole


def name(comparison: Comparison, variant: str) -> str:
    """How a variant is called: its label and its id, where they differ."""
    label = comparison.plan.labels.get(variant)
    return f"{label} ({variant})" if label and label != variant else variant


def bounded_ratio(interval: Interval | None) -> str:
    """A speed-up with its interval, such as "1.32× (1.28–1.36)"."""
    return _ratio(interval.estimate, interval.low, interval.high) if interval else NOTHING


def decided_ratio(interval: Interval | None) -> str:
    """A speed-up with the bounds that its verdict rests on: those that hold for all levels at once."""
    if interval is None or interval.family_low is None or interval.family_high is None:
        return bounded_ratio(interval)
    return _ratio(interval.estimate, interval.family_low, interval.family_high)


def _ratio(estimate: float, low: float | None, high: float | None) -> str:
    return times(estimate) if low is None or high is None else f"{times(estimate)} ({low:.2f}–{high:.2f})"


def verdicts(comparison: Comparison) -> Table:
    """Each variant at each level against the baseline."""
    rows = tuple(
        (
            level.variant,
            str(level.concurrency),
            level.verdict,
            decided_ratio(level.tpot),
            *(bounded_ratio(getattr(level.speedup, metric, None)) for metric in ("throughput", "e2e", "ttft")),
            str(level.paired_prompts) if level.paired_prompts else NOTHING,
        )
        for level in comparison.comparisons
    )
    heads = ("Variant", "Concurrency", "Verdict", "TPOT", "Throughput", "E2E", "TTFT", "Pairs")
    caption = (
        f"Speed-up over {comparison.baseline}, above 1 is better, with 95 % intervals: of TPOT for all levels at once "
        "(they decide), of the others for each level"
    )
    return Table(caption, heads, rows, frozenset({1, 3, 4, 5, 6, 7}), keys=2)


PERCENTILES = ", 90th percentiles"


def measured(comparison: Comparison) -> Table:
    """What each cell measured: medians over its completed requests."""
    cells = {(cell.variant, cell.concurrency): cell for cell in comparison.cells}
    rows = tuple(_measured_row(view, cells.get((view.variant, view.concurrency))) for view in comparison.views)
    heads = (
        "Variant", "Concurrency", "TPOT", "TTFT", "E2E", "TPOT p90", "TTFT p90", "Output", "Requests", "Acceptance", "Failed",
    )  # fmt: skip
    proxy = "; ≈ is tokens a chunk, which is no more than a hint" if any("≈" in row[9] for row in rows) else ""
    caption = (
        f"What was measured: medians of completed requests{PERCENTILES}, rates while the concurrency was held{proxy}"
    )
    return Table(caption, heads, rows, frozenset(range(1, 11)), keys=2)


def _acceptance_length(cell: CellResult | None) -> str:
    if cell is None or cell.acceptance is None:
        return NOTHING
    length = significant(cell.acceptance.length)
    return f"≈ {length}" if cell.acceptance.source == "chunks" else length


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
        _acceptance_length(cell),
        _failed(cell),
    )


def costs(comparison: Comparison) -> Table | None:
    """Dollars per million output tokens, the variants side by side; None without a price."""
    price = comparison.plan.price_per_hour
    if price is None:
        return None
    views = {(view.variant, view.concurrency): view for view in comparison.views}
    compared = {(c.variant, c.concurrency): c for c in comparison.comparisons}
    others = [variant for variant in comparison.variants if variant != comparison.baseline]
    rows = tuple(
        (
            str(level),
            *(dollars(views[variant, level].dollars_per_million_tokens) for variant in comparison.variants),
            *(_break_even(compared.get((variant, level)), price) for variant in others),
        )
        for level in comparison.levels
    )
    heads = ("Concurrency", *comparison.variants, *(f"{variant}: break-even" for variant in others))
    caption = (
        f"Dollars per million output tokens at {dollars(price)} an hour, the endpoint busy at that concurrency; break-even: "
        f"the price per hour at which a token costs what it costs with {comparison.baseline}"
    )
    return Table(caption, heads, rows, frozenset(range(1, len(heads))))


def objectives(comparison: Comparison) -> Table | None:
    """Which cells keep the objective, the variants side by side; None where none was set."""
    plan = comparison.plan
    limits = [
        f"{metric} ≤ {milliseconds(limit)}"
        for metric, limit in (("TTFT", plan.slo_ttft_ms), ("TPOT", plan.slo_tpot_ms))
        if limit is not None
    ]
    if not limits:
        return None
    views = {(view.variant, view.concurrency): view for view in comparison.views}
    goodput = {(cell.variant, cell.concurrency): _goodput(cell) for cell in comparison.cells}
    rows = tuple(
        (str(level), *(_kept(views[variant, level], goodput.get((variant, level))) for variant in comparison.variants))
        for level in comparison.levels
    )
    caption = (
        f"Objective: {' and '.join(limits)} for 90 % of the requests; in brackets the goodput, requests that keep it"
    )
    return Table(caption, ("Concurrency", *comparison.variants), rows)


def _kept(view: CellView, goodput: float | None) -> str:
    said = {True: "kept", False: "missed", None: NOTHING}[view.meets_slo]
    return said if goodput is None or view.problem else f"{said} ({rate(goodput, 'req/s')})"


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
    caption = "Answers at temperature 0 that are the same, character for character"
    return Table(caption, heads, rows, frozenset({1}), keys=2)


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
        keys=2,
    )


def _value(bounded: Bounded | None) -> float | None:
    return bounded.value if bounded else None


def _goodput(cell: CellResult) -> float | None:
    return cell.metrics.goodput if cell.metrics else None


def _failed(cell: CellResult | None) -> str:
    if cell is None:
        return "missing"
    if cell.failure is not None:
        return cell.failure.stage.replace("_", " ")
    return f"{cell.counts.failed} of {cell.counts.requested}" if cell.counts.failed else "0"


def _break_even(compared: LevelComparison | None, price: float) -> str:
    return dollars(price * compared.break_even) if compared and compared.break_even else NOTHING


def acceptance(comparison: Comparison) -> Table | None:
    """Tokens a step of each speculative cell, with the source; None where none is known."""
    known = [cell for cell in comparison.cells if cell.acceptance]
    if not known:
        return None
    said = {"response": "the responses", "metrics": "the server's metrics", "chunks": "tokens per chunk (a proxy)"}
    rows = tuple(
        (
            cell.variant,
            str(cell.concurrency),
            significant(cell.acceptance.length),
            _number(cell.acceptance.drafted_tokens),
            _number(cell.acceptance.accepted_tokens),
            _share(cell.acceptance.drafts, cell.acceptance.steps),
            said[cell.acceptance.source],
        )
        for cell in known
        if cell.acceptance
    )
    heads = ("Variant", "Concurrency", "Acceptance length", "Drafted", "Accepted", "Steps with a draft", "Told by")
    caption = "Tokens that one step of the target model yields; 1 is no help"
    return Table(caption, heads, rows, frozenset({1, 2, 3, 4, 5}), keys=2)


def _share(part: int | None, whole: int | None) -> str:
    return NOTHING if part is None or not whole else percent(part / whole)


def _number(value: int | None) -> str:
    return NOTHING if value is None else whole(value)
