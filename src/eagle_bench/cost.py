"""Money and promises: what a token costs, and which levels keep the objective of an interactive user."""

from __future__ import annotations

from eagle_bench.comparison import CellView, Decision, Plan
from eagle_bench.grid import Grid
from eagle_bench.metrics import cell_metrics
from eagle_bench.rates import rates
from eagle_bench.results import CellMetrics, CellResult
from eagle_bench.units import dollars


def dollars_per_million_tokens(price_per_hour: float | None, output_tokens_per_s: float | None) -> float | None:
    """Price per hour ÷ output tokens per hour × 10⁶."""
    if price_per_hour is None or not output_tokens_per_s:
        return None
    return price_per_hour / (output_tokens_per_s * 3600) * 1e6


def meets_slo(plan: Plan, metrics: CellMetrics) -> bool | None:
    """Whether nine of ten requests keep each limit that the plan sets (p90 ≤ limit); None without limits."""
    limits = ((metrics.ttft_ms, plan.slo_ttft_ms), (metrics.tpot_ms, plan.slo_tpot_ms))
    seen = [(summary.p90 if summary else None, limit) for summary, limit in limits if limit is not None]
    if not seen or any(p90 is None for p90, _ in seen):
        return None
    return all(p90 <= limit for p90, limit in seen if p90 is not None)


def largest_meeting_slo(views: list[CellView]) -> int | None:
    """The largest concurrency up to which every level is known to keep the objective; None where the first is not."""
    largest = None
    for view in sorted(views, key=lambda view: view.concurrency):
        if not view.meets_slo:
            break
        largest = view.concurrency
    return largest


def with_savings(decision: Decision, plan: Plan, grid: Grid) -> Decision:
    """A decision to turn a variant on, with what that saves at its limit where the price is known."""
    level = decision.up_to_concurrency
    if plan.price_per_hour is None or level is None:
        return decision
    both = rates(grid.cells[plan.baseline, level], grid.cells[decision.variant, level])
    before, after = (
        dollars_per_million_tokens(plan.price_per_hour, rate)
        for rate in ((both.one, both.other) if both else (None, None))
    )
    if before is None or after is None:
        return decision
    told = "saves" if after < before else "costs"
    more = "" if after < before else " more"
    sentence = f"At concurrency {level} it {told} {dollars(abs(before - after))}{more} per million output tokens."
    return decision.model_copy(update={"text": f"{decision.text} {sentence}"})


def for_plan(plan: Plan, cell: CellResult) -> CellResult:
    """A cell without its requests, with the goodput of this plan's objective, whatever the client was told then."""
    told = (cell.settings.slo_ttft_ms, cell.settings.slo_tpot_ms) if cell.settings else (None, None)
    asked = plan.slo_ttft_ms, plan.slo_tpot_ms
    bare = cell.model_copy(update={"requests": ()})
    if cell.metrics is None or asked in (told, (None, None)):
        return bare
    anew = cell_metrics(cell.requests, cell.rounds, slo_ttft_ms=asked[0], slo_tpot_ms=asked[1])
    goodput = anew.goodput if anew else None
    return bare.model_copy(update={"metrics": cell.metrics.model_copy(update={"goodput": goodput})})
