"""Staging: which cell of a run sends which prompts.

Each level, each of its rounds and its warm-up get prompts that no other cell of the endpoint sees; all variants get
the same. One pass over the source, with memory for the prompts that are used and some 300 bytes for each that could be.
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
from eagle_bench.units import whole
from eagle_bench.workload import readers, synthetic
from eagle_bench.workload.conversations import Entry
from eagle_bench.workload.filters import Sieve, TokenCounter, sampling_key
from eagle_bench.workload.needs import Need, needs, shortage
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

BUILTIN = "builtin"


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
    counter = counter_of(tokenizer)
    shape = synthetic.shape_of(workload.dataset)
    chosen = _from_shape(shape, workload, counter, wanted) if shape else _from_file(source, workload, counter, wanted)
    out.mkdir(parents=True, exist_ok=True)
    slices = _write(out / PROMPTS, wanted, iter(chosen.prompts))
    if tokenizer is not None:
        from eagle_bench.adapters.tokenizer import copy

        copy(tokenizer, out / TOKENIZER)
    manifest = Manifest(
        source=workload.dataset,
        source_sha256=chosen.source_sha256,
        label=chosen.label,
        seed=workload.seed,
        read=chosen.sieve.read,
        kept=chosen.sieve.kept,
        dropped=chosen.sieve.dropped(),
        slices=tuple(slices),
        tokenizer=TOKENIZER if tokenizer is not None else None,
    )
    (out / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


def count_usable(workload: config.Workload, source: Path) -> int:
    """How many prompts of a file can be used, without length limits.

    Raises:
        InputError: it can't be read.
    """
    sieve = Sieve(None, workload.min_prompt_tokens, workload.max_prompt_tokens)
    entries = readers.read(source, prompt_column=workload.prompt_column, name=workload.dataset)
    return sum(1 for _ in _admitted(sieve, entries))


def builtin_prompts() -> Path:
    """The file of the built-in data set."""
    return Path(str(resources.files("eagle_bench.builtin") / "prompts.json"))


def counter_of(tokenizer: Path | None) -> TokenCounter | None:
    """Load a tokenizer folder to count with; None without one."""
    if tokenizer is None:
        return None
    from eagle_bench.adapters.tokenizer import load

    return load(tokenizer)


class _Chosen(NamedTuple):
    """The prompts of a run in the order in which the slices take them, and what is told of where they came from."""

    prompts: list[Prompt]
    sieve: Sieve
    source_sha256: str | None = None
    label: str | None = None


def _from_file(
    source: Path | None, workload: config.Workload, counter: TokenCounter | None, wanted: Sequence[Need]
) -> _Chosen:
    path, name = (source, workload.dataset) if source else (builtin_prompts(), BUILTIN)
    sieve = Sieve(counter, workload.min_prompt_tokens, workload.max_prompt_tokens)
    entries = readers.read(path, prompt_column=workload.prompt_column, name=name)
    total = sum(need.requests for need in wanted)
    # A sample in an order that the seed decides: only the prompts that are used are held.
    prompts = heapq.nsmallest(total, _admitted(sieve, entries), key=sampling_key(workload.seed))
    if len(prompts) < total:
        raise shortage(name, sieve, wanted, workload)
    with path.open("rb") as file:
        return _Chosen(prompts, sieve, source_sha256=hashlib.file_digest(file, "sha256").hexdigest())


def _from_shape(
    shape: synthetic.Shape, workload: config.Workload, counter: TokenCounter | None, wanted: Sequence[Need]
) -> _Chosen:
    sieve = Sieve(None, 0, 0)  # the shape says how long a prompt is: the limits are for what people wrote
    total = sum(need.requests for need in wanted)
    candidates = itertools.islice(synthetic.generate(shape, seed=workload.seed, counter=counter), 2 * total)
    entries = (Entry(prompt.id, prompt) for prompt in candidates)
    prompts = list(itertools.islice(_admitted(sieve, entries), total))
    if len(prompts) < total:
        raise InputError(
            f"`workload.dataset`: {workload.dataset!r} leaves too little room for {whole(total)} different prompts.",
            hint="Ask for more input tokens.",
        )
    label = shape.label(exact=counter is not None, ignore_eos=workload.ignore_eos)
    return _Chosen(prompts, sieve, label=label)


def _admitted(sieve: Sieve, entries: Iterable[Entry]) -> Iterator[Prompt]:
    return (prompt for entry in entries if (prompt := sieve.admit(entry)))


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
