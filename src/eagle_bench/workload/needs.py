"""How many prompts a run needs, slice by slice, and what to say when there are too few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from eagle_bench import config
from eagle_bench.errors import InputError
from eagle_bench.units import whole
from eagle_bench.workload.filters import Sieve

WARM_UP = -1


class Need(NamedTuple):
    """One slice to fill."""

    concurrency: int
    round: int
    requests: int


def warmup_requests(concurrency: int) -> int:
    """Requests before a cell, thrown away: 2 × concurrency."""
    return 2 * concurrency


def split_evenly(requests: int, rounds: int) -> list[int]:
    """Requests per round: they differ by one at most, the larger first."""
    return [requests // rounds + (index < requests % rounds) for index in range(rounds)]


def needs(concurrency: Sequence[int], repeats: int, requests_at: Callable[[int], int]) -> list[Need]:
    """The slices of a run in order: per level the warm-up, then the rounds."""
    slices = []
    for level in concurrency:
        requests = requests_at(level)
        if requests < repeats:
            raise InputError(
                f"`repeats`: {repeats} rounds can't share the {requests} requests of concurrency {level}.",
                hint="Lower `repeats` or raise `workload.prompts_per_level`.",
            )
        slices.append(Need(level, WARM_UP, warmup_requests(level)))
        slices += [Need(level, index, count) for index, count in enumerate(split_evenly(requests, repeats))]
    return slices


def shortage(name: str, sieve: Sieve, wanted: Sequence[Need], workload: config.Workload) -> InputError:
    """The error of too few prompts: how many there are after which filters, how many are needed, what to change."""
    needed = sum(need.requests for need in wanted)
    levels = list(dict.fromkeys(need.concurrency for need in wanted))
    warm_up = sum(need.requests for need in wanted if need.round == WARM_UP)
    drops = "; ".join(f"{whole(drop.count)} {drop.reason}" for drop in sieve.dropped())
    why = f" Dropped: {drops}." if drops else ""
    rounds = max(need.round for need in wanted) + 1
    least = sum(config.least_requests(level) for level in levels) + warm_up
    if sieve.kept == 0:
        found = f"none of the {whole(sieve.read)} conversations can be used"
    else:
        found = f"{whole(sieve.kept)} of the {whole(sieve.read)} conversations can be used"
    return InputError(
        f"{name}: {found}, and {whole(needed)} are needed: {whole(needed - warm_up)} for {len(levels)} levels in {rounds} "
        f"rounds and {whole(warm_up)} to warm up, none used twice.{_where_they_end(sieve.kept, wanted)}{why}",
        hint=_what_to_change(sieve, least, levels, workload),
    )


def _where_they_end(kept: int, wanted: Sequence[Need]) -> str:
    """The first level that can't be filled: the levels take their prompts one after another."""
    left = kept
    for level in dict.fromkeys(need.concurrency for need in wanted):
        needed = sum(need.requests for need in wanted if need.concurrency == level)
        if left < needed:
            return (
                f" Concurrency {level} is left with {whole(left)} of the {whole(needed)} that it needs." if kept else ""
            )
        left -= needed
    return ""


def _what_to_change(sieve: Sieve, least: int, levels: Sequence[int], workload: config.Workload) -> str:
    ways = []
    if any("prompt_tokens" in drop.reason for drop in sieve.dropped()):
        ways.append(
            f"widen `workload.min_prompt_tokens` ({workload.min_prompt_tokens}) "
            f"and `workload.max_prompt_tokens` ({workload.max_prompt_tokens})"
        )
    if sieve.kept >= least:
        ways.append(f"lower `workload.prompts_per_level` ({workload.prompts_per_level})")
    elif sieve.kept and len(levels) > 1:
        ways.append(
            f"measure fewer or lower levels in `concurrency` (with the least of max(50, 20 × concurrency) requests, "
            f"these need {whole(least)} prompts)"
        )
    ways.append("take a larger data set with `workload.dataset`")
    return "To change that: " + ", or ".join(ways) + "."
