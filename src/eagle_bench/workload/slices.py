"""Staging: which cell of a run sends which prompts.

Each level, each of its rounds and its warm-up get prompts that no other cell of the endpoint sees; all variants get
the same. One pass over the source, with memory for the prompts that are used and 8 bytes for each that could be.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from eagle_bench import config
from eagle_bench.errors import InputError
from eagle_bench.workload import readers, synthetic
from eagle_bench.workload.conversations import Entry
from eagle_bench.workload.filters import Sieve, TokenCounter, sampling_key
from eagle_bench.workload.prompts import (
    MANIFEST,
    PROMPTS,
    TOKENIZER,
    Manifest,
    Prompt,
    Slice,
    StagedPrompt,
    sha256_of,
)

WARM_UP = -1
BUILTIN = "builtin"


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


def stage(
    workload: config.Workload,
    source: Path | None,
    *,
    concurrency: Sequence[int],
    repeats: int,
    requests_at: Callable[[int], int],
    tokenizer: Path | None,
    out: Path,
) -> Manifest:
    """Write the staged folder (see `prompts`) and return its manifest.

    Args:
        source: the file that holds the data set; None for the built-in set and for synthetic shapes.
        concurrency: the levels, each once.
        repeats: rounds of a level; `requests_at(level)` requests are split evenly over them.
        tokenizer: folder of a tokenizer; without one there are no length limits and `prompt_tokens` is None.

    Raises:
        InputError: the source can't be read, or has too few usable prompts: how many there are after which filters,
            how many are needed, what to change.
    """
    wanted = needs(concurrency, repeats, requests_at)
    total = sum(need.requests for need in wanted)
    counter = counter_of(tokenizer)
    sieve = Sieve(counter, workload.min_prompt_tokens, workload.max_prompt_tokens)
    shape = synthetic.shape_of(workload.dataset)
    if shape:
        # The shape says how long a prompt is: the limits are for what people wrote.
        sieve = Sieve(None, 0, 0)
        endless = synthetic.generate(shape, seed=workload.seed, counter=counter)
        candidates = itertools.islice(endless, 2 * total)
        made = (Entry(prompt.id, prompt) for prompt in candidates)
        admitted = (prompt for entry in made if (prompt := sieve.admit(entry)))
        chosen, digest = list(itertools.islice(admitted, total)), None
        if len(chosen) < total:
            raise InputError(
                f"`workload.dataset`: {workload.dataset!r} leaves too little room for {total:,} different prompts.",
                hint="Ask for more input tokens.",
            )
    else:
        path, name = (source, workload.dataset) if source else (builtin_prompts(), BUILTIN)
        entries = readers.read(path, prompt_column=workload.prompt_column, name=name)
        admitted = (prompt for entry in entries if (prompt := sieve.admit(entry)))
        chosen, digest = _sample(admitted, total, workload.seed), _sha256_file(path)
        if len(chosen) < total:
            raise _too_few(name, sieve, wanted, workload)
    label = shape.label(exact=counter is not None, ignore_eos=workload.ignore_eos) if shape else None
    out.mkdir(parents=True, exist_ok=True)
    slices = _write(out / PROMPTS, wanted, iter(chosen))
    if tokenizer is not None:
        from eagle_bench.adapters.tokenizer import copy

        copy(tokenizer, out / TOKENIZER)
    manifest = Manifest(
        source=workload.dataset,
        source_sha256=digest,
        label=label,
        seed=workload.seed,
        read=sieve.read,
        kept=sieve.kept,
        dropped=sieve.dropped(),
        slices=tuple(slices),
        tokenizer=TOKENIZER if tokenizer is not None else None,
    )
    (out / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


def builtin_prompts() -> Path:
    """The file of the built-in data set."""
    return Path(str(resources.files("eagle_bench.builtin") / "prompts.json"))


def counter_of(tokenizer: Path | None) -> TokenCounter | None:
    """Load a tokenizer folder to count with; None without one."""
    if tokenizer is None:
        return None
    from eagle_bench.adapters.tokenizer import load

    return load(tokenizer)


def _sample(prompts: Iterable[Prompt], count: int, seed: int) -> list[Prompt]:
    """`count` of the prompts, or all where there are fewer, in an order that the seed decides. Holds `count` at a time."""
    key = sampling_key(seed)
    return heapq.nsmallest(count, prompts, key=key)


def _write(path: Path, wanted: Sequence[Need], prompts: Iterator[Prompt]) -> list[Slice]:
    slices = []
    with path.open("w", encoding="utf-8") as file:
        for need in wanted:
            part = [
                StagedPrompt(**prompt.model_dump(), concurrency=need.concurrency, round=need.round)
                for prompt in itertools.islice(prompts, need.requests)
            ]
            file.writelines(prompt.model_dump_json(exclude_none=True) + "\n" for prompt in part)
            slices.append(
                Slice(concurrency=need.concurrency, round=need.round, count=len(part), sha256=sha256_of(part))
            )
    return slices


def _sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _too_few(name: str, sieve: Sieve, wanted: Sequence[Need], workload: config.Workload) -> InputError:
    needed = sum(need.requests for need in wanted)
    levels = list(dict.fromkeys(need.concurrency for need in wanted))
    warm_up = sum(need.requests for need in wanted if need.round == WARM_UP)
    drops = "; ".join(f"{drop.count:,} {drop.reason}" for drop in sieve.dropped())
    why = f" Dropped: {drops}." if drops else ""
    rounds = max(need.round for need in wanted) + 1
    least = sum(config.least_requests(level) for level in levels) + warm_up
    if sieve.kept == 0:
        found = f"none of the {sieve.read:,} conversations can be used"
    else:
        found = f"{sieve.kept:,} of the {sieve.read:,} conversations can be used"
    return InputError(
        f"{name}: {found}, and {needed:,} are needed: {needed - warm_up:,} for {len(levels)} levels in {rounds} "
        f"rounds and {warm_up:,} to warm up, none used twice.{why}",
        hint=_what_to_change(sieve, least, levels, workload),
    )


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
            f"these need {least:,} prompts)"
        )
    ways.append("take a larger data set with `workload.dataset`")
    return "To change that: " + ", or ".join(ways) + "."
