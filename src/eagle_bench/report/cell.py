"""One cell: its numbers as scalars and a short page in Markdown for the console, a short table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from eagle_bench.results import CellResult, Summary
from eagle_bench.units import NOTHING, milliseconds, rate, significant


def scalars(cell: CellResult) -> dict[str, float]:
    """Finite numbers of one cell under stable names; what is unknown is absent, never 0."""
    metrics, acceptance = cell.metrics, cell.acceptance
    tpot = metrics.tpot_ms if metrics else None
    values: dict[str, float | None] = {
        "requested": cell.counts.requested,
        "completed": cell.counts.completed,
        "failed": cell.counts.failed,
        "median_tpot_ms": tpot.p50 if tpot else None,
        "p90_tpot_ms": tpot.p90 if tpot else None,
        "median_ttft_ms": metrics.ttft_ms.p50 if metrics else None,
        "p90_ttft_ms": metrics.ttft_ms.p90 if metrics else None,
        "median_e2e_ms": metrics.e2e_ms.p50 if metrics and metrics.e2e_ms else None,
        "output_tokens_per_s": metrics.output_tokens_per_s if metrics else None,
        "requests_per_s": metrics.requests_per_s if metrics else None,
        "goodput": metrics.goodput if metrics else None,
        "acceptance_length": acceptance.length if acceptance else None,
    }
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def render(cell: CellResult) -> str:
    """One cell in Markdown: what it measured, or why it did not."""
    from eagle_bench.report.markdown import escape

    counts = cell.counts
    lines = [f"# {escape(cell.variant)} at concurrency {cell.concurrency}"]
    if cell.failure is not None:
        stage = cell.failure.stage.replace("_", " ")
        lines.append(f"**{escape(stage)} failed:** {escape(cell.failure.message)}")
    lines.append(f"{counts.completed} of {counts.requested} requests completed, {counts.failed} failed.")
    metrics = cell.metrics
    if metrics is not None:
        tpot = metrics.tpot_ms
        rows = [
            ("TPOT, median", milliseconds(tpot.p50 if tpot else None)),
            ("TTFT, median", milliseconds(metrics.ttft_ms.p50)),
            ("E2E, median", milliseconds(metrics.e2e_ms.p50 if metrics.e2e_ms else None)),
            ("Output", rate(metrics.output_tokens_per_s, "tok/s")),
            ("Requests", rate(metrics.requests_per_s, "req/s")),
            ("Acceptance length", significant(cell.acceptance.length) if cell.acceptance else NOTHING),
        ]
        lines.append("\n".join(["| Metric | Value |", "| :-- | --: |", *(f"| {k} | {v} |" for k, v in rows)]))
    lines += [f"- {escape(text)}" for text in cell.warnings]
    return "\n\n".join(lines) + "\n"


def shown(cell: CellResult) -> Iterator[str]:
    """One cell in lines for the terminal: its numbers, and what is suspect."""

    def median(summary: Summary | None) -> str:
        return milliseconds(summary.p50) if summary else NOTHING

    metrics, count = cell.metrics, cell.counts
    rows = [
        ("TPOT, median", median(metrics.tpot_ms) if metrics else NOTHING),
        ("TTFT, median", median(metrics.ttft_ms) if metrics else NOTHING),
        ("E2E, median", median(metrics.e2e_ms) if metrics else NOTHING),
        ("Output", rate(metrics.output_tokens_per_s, "tok/s") if metrics else NOTHING),
        ("Failed", f"{count.failed} of {count.requested}"),
    ]
    if cell.acceptance is not None and cell.acceptance.source != "chunks":
        rows.insert(4, ("Acceptance length", significant(cell.acceptance.length)))
    yield f"{cell.variant} at concurrency {cell.concurrency}"
    yield from (f"  {name:<18} {value:>12}" for name, value in rows)
    yield from (f"  ! {warning}" for warning in cell.warnings)
