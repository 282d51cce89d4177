"""A run's plan in words: its endpoints as a table, what it takes in all, and what was taken for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eagle_bench.estimate import Range
from eagle_bench.report.table import Table
from eagle_bench.run_plan import Check, PlannedEndpoint, RunPlan, Status
from eagle_bench.units import NARROW_SPACE, conjunction, count, dollars, levels

UNKNOWN = "not known"


def endpoints(plan: RunPlan) -> Table:
    """What serves each variant, for how long, at what price. The model, whose name is long, is named once, above."""
    heads = ("Variant", "Where", "Price", "Time", "Cost")
    models = [one.what for one in plan.endpoints if one.kind == "deployed"]
    caption = (
        f"Endpoints, deployed with {models[0]}" if models else "Endpoints, which run already and are never touched"
    )
    table = Table(caption, heads, tuple(_row(one) for one in plan.endpoints), frozenset({2, 3, 4}))
    return table if _paid(plan) else table.only("Variant", "Where", "Time")


def totals(plan: RunPlan) -> Iterator[str]:
    """The whole run."""
    found = plan.estimate
    said = money(found.run_cost) if found.run_cost else f"its cost {UNKNOWN} without `price_per_hour`"
    cost = f", {said}" if _paid(plan) else ""
    yield (
        f"The run: {found.run_h.hours_shown()}{cost}; {count(found.requests, 'request')} an endpoint "
        f"at concurrency {levels(plan.levels)}, {count(plan.prompts_needed, 'prompt')}, none used twice."
    )
    if found.run_cost is None and _paid(plan):
        yield "Set `price_per_hour` (of one endpoint) for the cost: prices differ by region and contract."


def assumptions(plan: RunPlan) -> Iterator[str]:
    """What the hours rest on. None of it was measured."""
    taken = plan.assumptions
    answer = taken.tokens_per_answer
    tokens = f"{answer.shown('tokens')} an answer" if answer else "a quarter of `max_output_tokens` to all of them"
    parts = [
        f"{taken.ms_per_token.shown('ms')} a token, {taken.first_token_ms.shown('ms')} to the first one, {tokens}",
        f"{taken.task_start_min.shown('min')} to start each task",
    ]
    if _deploys(plan):
        deployed = f"{taken.deploy_min.shown('min')} to deploy, {taken.teardown_min.shown('min')} to give back"
        parts.insert(1, deployed)
    yield f"Assumed, not measured: {'; '.join(parts)}. `--ms-per-token` and `--answer-tokens` narrow it."


def conclusion(checks: Sequence[Check]) -> str:
    """What all checks together mean: what is against the run, and how much was not looked at."""
    refused, warned = _names(checks, "refused"), _names(checks, "warning")
    if refused:
        said = f"It may not run: {conjunction(refused)} refused."
    elif warned:
        said = f"Nothing is refused; a warning stands at {conjunction(warned)}."
    else:
        said = "Nothing was found against it."
    if not (left := _names(checks, "not checked")):
        return said
    return f"{said} {count(len(left), 'check was', 'checks were')} not made: there the run may still fail."


def _names(checks: Sequence[Check], status: Status) -> list[str]:
    return [check.name for check in checks if check.status == status]


def _deploys(plan: RunPlan) -> bool:
    return any(one.kind == "deployed" for one in plan.endpoints)


def _paid(plan: RunPlan) -> bool:
    """Whether somebody is paid for machines, or it is asked what they cost."""
    return _deploys(plan) and not (plan.on_this_machine and plan.estimate.run_cost is None)


def money(found: Range | None) -> str:
    """Whole dollars: more would say more than is known."""
    if found is None:
        return UNKNOWN
    return " to ".join(f"${end:,.0f}".replace(",", NARROW_SPACE) for end in (found.low, found.high))


def _row(one: PlannedEndpoint) -> tuple[str, ...]:
    if one.kind == "deployed":
        where = ", ".join(filter(None, [one.machine, one.accelerators]))
        price = UNKNOWN if one.price_per_hour is None else f"{dollars(one.price_per_hour)}/h"
        return one.variant, where, price, one.hours.hours_shown(), money(one.cost)
    where = one.what
    if one.kind == "endpoint":
        _, project, _, location, _, name = one.what.split("/")
        where = f"endpoint {name} in {project}, {location}"
    return one.variant, where, "", one.hours.hours_shown(), ""
