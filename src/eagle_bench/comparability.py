"""What speaks against comparing two cells, or for too little to tell: in words, for the reasons of a verdict."""

from __future__ import annotations

from statistics import median

from eagle_bench.comparison import Plan
from eagle_bench.config import least_requests
from eagle_bench.grid import cut_short, interrupted
from eagle_bench.metrics import in_one_piece, tpot_ms
from eagle_bench.pairing import different_prompts, unproven_prompts
from eagle_bench.results import CellResult
from eagle_bench.settings_checks import unequal_work
from eagle_bench.units import count


def incomparable(plan: Plan, baseline: CellResult, variant: CellResult) -> list[str]:
    """Why two good cells still can't be compared: other prompts, tokens counted otherwise, or other work asked for."""
    reasons = []
    if different_prompts(baseline, variant):
        reasons.append(f"{baseline.variant} and {variant.variant} got different prompts")
    elif (unproven := unproven_prompts(baseline, variant)) and not _alike(baseline, variant):
        reasons.append(unproven)
    if not plan.allow_difference and (differing := unequal_work(baseline, variant)):
        reasons.append(f"unequal settings: {'; '.join(differing)}")
    if baseline.token_source and variant.token_source and baseline.token_source != variant.token_source:
        reasons.append(
            f"tokens come from the server's usage in one variant and from the tokenizer in the other "
            f"({baseline.variant}: {baseline.token_source}, {variant.variant}: {variant.token_source})"
        )
    return reasons


def _alike(one: CellResult, other: CellResult) -> bool:
    """Whether two cells know their prompts in the same way."""
    return one.prompts is None or other.prompts is None or one.prompts.known_by == other.prompts.known_by


def too_short(plan: Plan, cells: tuple[CellResult, CellResult], pairs: int) -> list[str]:
    """What is too little for a verdict: requests of a cell, or pairs, which only failures may make fewer."""
    concurrency = cells[0].concurrency
    needed = least_requests(concurrency)
    said = [
        f"{cell.variant} {_ended(cell) if cut_short(cell) else 'has'} {cell.counts.completed} of the {needed} "
        f"requests that concurrency {concurrency} needs"
        for cell in cells
        if cell.counts.completed < needed
    ]
    if not said and pairs and pairs < needed * (1 - 2 * plan.max_failure_rate):
        told = f"only {count(pairs, 'prompt')} can be paired (the same round and prompt in both, two tokens or more)"
        said.append(f"{told}, of the {needed} that concurrency {concurrency} needs")
    return said


def ended_early(cells: tuple[CellResult, CellResult]) -> list[str]:
    """Which cells were ended before their time: the rest of them may settle it."""
    return [
        f"{cell.variant} {_ended(cell)} {count(cell.counts.completed, 'request')}, before it was through"
        for cell in cells
        if cut_short(cell)
    ]


def _ended(cell: CellResult) -> str:
    return "was interrupted after" if interrupted(cell) else "was ended after"


def came_in_one_piece(cell: CellResult) -> bool:
    """Whether the median time per output token is none: tokens came all at once, or before the first one."""
    if not cell.requests:
        return bool(cell.metrics and cell.metrics.tpot_ms and cell.metrics.tpot_ms.p50 <= 0)
    times_ms = [0.0 if in_one_piece(request) else tpot_ms(request) for request in cell.requests]
    known = [value for value in times_ms if value is not None]
    return bool(known) and median(known) <= 0
