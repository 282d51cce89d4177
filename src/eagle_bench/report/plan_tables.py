"""A run's plan in words: its endpoints as a table, what it takes in all, and what was taken for granted."""

from __future__ import annotations

from collections.abc import Iterator

from eagle_bench.estimate import Range
from eagle_bench.report.tables import Table
from eagle_bench.run_plan import PlannedEndpoint, RunPlan
from eagle_bench.units import NARROW_SPACE, count, dollars, levels

UNKNOWN = "not known"


def endpoints(plan: RunPlan) -> Table:
    """What serves each variant, for how long, at what price."""
    heads = ("Variant", "Serves", "Price", "Hours", "Cost")
    return Table("Endpoints", heads, tuple(_row(one) for one in plan.endpoints), frozenset({2, 3, 4}))


def totals(plan: RunPlan) -> Iterator[str]:
    """The whole run."""
    found = plan.estimate
    yield (
        f"The run: {between(found.run_h, 'h')}, {money(found.run_cost)}; {count(found.requests, 'request')} an endpoint "
        f"at concurrency {levels(plan.levels)}, {count(plan.prompts_needed, 'prompt')}, none used twice."
    )
    if found.run_cost is None and any(one.kind == "deployed" for one in plan.endpoints):
        yield "Set `price_per_hour` (of one endpoint) for the cost: prices differ by region and contract."


def assumptions(plan: RunPlan) -> Iterator[str]:
    """What the hours rest on. None of it was measured."""
    taken = plan.assumptions
    answer = taken.tokens_per_answer
    tokens = f"{between(answer, 'tokens')} an answer" if answer else "a quarter of `max_output_tokens` to all of them"
    yield (
        f"Assumed, not measured: {between(taken.ms_per_token, 'ms')} a token, {between(taken.first_token_ms, 'ms')} to "
        f"the first one, {tokens}; {between(taken.deploy_min, 'min')} to deploy, {between(taken.teardown_min, 'min')} "
        f"to give back, {between(taken.task_start_min, 'min')} to start each task. "
        "`--ms-per-token` and `--answer-tokens` narrow it."
    )


def between(found: Range, unit: str) -> str:
    """A range as people write it, to two digits: "0.7 to 7.6 h"."""
    low, high = (f"{float(f'{end:.2g}'):,.10g}".replace(",", NARROW_SPACE) for end in (found.low, found.high))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def money(found: Range | None) -> str:
    """Whole dollars: more would say more than is known."""
    if found is None:
        return UNKNOWN
    return " to ".join(f"${end:,.0f}".replace(",", NARROW_SPACE) for end in (found.low, found.high))


def _row(one: PlannedEndpoint) -> tuple[str, ...]:
    if one.kind != "deployed":
        return (one.variant, f"{one.what} (runs already, is never touched)", "", between(one.hours, "h"), "")
    machine = ", ".join(filter(None, [one.machine, one.accelerators]))
    price = UNKNOWN if one.price_per_hour is None else f"{dollars(one.price_per_hour)}/h"
    return one.variant, f"{one.what} on {machine}", price, between(one.hours, "h"), money(one.cost)
