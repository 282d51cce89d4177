"""The prompts of one cell straight from a file: what `eagle-bench bench` sends."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path

from eagle_bench.errors import InputError
from eagle_bench.workload import readers, synthetic
from eagle_bench.workload.filters import TokenCounter, sampling_key, text_of, unique_id
from eagle_bench.workload.needs import split_evenly, warmup_requests
from eagle_bench.workload.prompts import Prompt, StagedPrompt
from eagle_bench.workload.slices import counter_of

WARM_UP_TOKENS = 128  # of an answer, where nothing says how long it is
BYTES_PER_WORD = 6
FEWEST_WORDS = 8  # below, random words could repeat


def cell_prompts(
    path: Path,
    *,
    concurrency: int,
    num_prompts: int | None,
    rounds: int,
    tokenizer: Path | None,
    seed: int,
    prompt_column: str | None = None,
    max_output_tokens: int | None = None,
) -> tuple[list[Prompt], list[StagedPrompt]]:
    """The warm-up (2 × concurrency) and the measured prompts of one cell, the latter in rounds.

    All prompts of the file are measured, in its order, where `num_prompts` is None or their number; of more, the
    seed and the concurrency choose. The file is the user's: no length limit, and prompts that begin alike are taken.
    A prompt that stands there twice is refused where it would be sent twice. The warm-up comes from what is left
    over, and is made up in like length where too little is: a measured prompt is never sent before it is measured.

    Args:
        max_output_tokens: the answer's limit; a row's own `output_tokens` holds where it is lower.

    Raises:
        InputError: the file can't be read, or holds fewer different prompts than asked for (both numbers are named).
    """
    prompts, repeats, problems = _distinct(path, prompt_column)
    asked = num_prompts if num_prompts is not None else len(prompts) + len(repeats)
    if not prompts:
        reasons = "; ".join(f"{count} {reason}" for reason, count in problems.items())
        raise InputError(f"{path}: no prompts to measure: none of its entries can be used: {reasons}.")
    if asked > len(prompts):
        raise _too_few(path, asked, len(prompts), repeats, problems)
    if rounds > asked:
        raise InputError(f"{path}: {rounds} rounds can't share {asked} prompts.", hint="Lower the number of rounds.")
    counter = counter_of(tokenizer)
    order = sorted(prompts, key=sampling_key(seed, f"{concurrency}"))
    taken = {prompt.id for prompt in order[:asked]}
    ready = [_ready(prompt, counter, max_output_tokens) for prompt in prompts if prompt.id in taken]
    measured, rest = [], iter(ready)
    for index, count in enumerate(split_evenly(asked, rounds)):
        for prompt in itertools.islice(rest, count):
            measured.append(StagedPrompt(**prompt.model_dump(), concurrency=concurrency, round=index))
    spare = order[asked : asked + warmup_requests(concurrency)]
    if len(spare) < warmup_requests(concurrency):
        return _made_up(measured, warmup_requests(concurrency), seed, counter, max_output_tokens), measured
    return [_ready(prompt, counter, max_output_tokens) for prompt in spare], measured


def _distinct(path: Path, column: str | None) -> tuple[list[Prompt], list[tuple[str, str]], dict[str, int]]:
    """The different prompts in order, the places of each repetition and of what it repeats, and what can't be sent."""
    prompts: list[Prompt] = []
    repeats: list[tuple[str, str]] = []
    problems: dict[str, int] = {}
    places: dict[bytes, str] = {}
    ids: set[str] = set()
    for entry in readers.read(path, prompt_column=column):
        if entry.prompt is None:
            problem = entry.problem or "unusable"
            problems[problem] = problems.get(problem, 0) + 1
            continue
        first = places.setdefault(text_of(entry.prompt.messages), entry.place)
        if first != entry.place:
            repeats.append((entry.place, first))
            continue
        prompts.append(entry.prompt.model_copy(update={"id": unique_id(entry.prompt.id, ids)}))
    return prompts, repeats, problems


def _ready(prompt: Prompt, counter: TokenCounter | None, limit: int | None) -> Prompt:
    own = prompt.max_tokens
    return prompt.model_copy(
        update={
            "prompt_tokens": counter.count(prompt.messages) if counter else None,
            "max_tokens": min(own, limit) if own and limit else own or limit,
        }
    )


def _made_up(
    measured: Sequence[Prompt], count: int, seed: int, counter: TokenCounter | None, limit: int | None
) -> list[Prompt]:
    """Random words as long as the measured prompts are in the median: they warm the engine, not its prefix cache."""
    lengths = [sum(len(message.content.encode()) for message in prompt.messages) for prompt in measured]
    outputs = [prompt.max_tokens for prompt in measured if prompt.max_tokens]
    words = max(FEWEST_WORDS, round(statistics.median(lengths) / BYTES_PER_WORD))
    tokens_out = round(statistics.median(outputs)) if outputs else limit or WARM_UP_TOKENS
    made = synthetic.generate(synthetic.Shape(words, tokens_out), seed=seed, counter=None, prefix="warm-up")
    return [_ready(prompt, counter, limit) for prompt in itertools.islice(made, count)]


def _too_few(
    path: Path, asked: int, there: int, repeats: Sequence[tuple[str, str]], problems: dict[str, int]
) -> InputError:
    left_out = [f"{count} {reason}" for reason, count in problems.items()]
    if repeats:
        where, first = repeats[0]
        left_out.append(f"{len(repeats)} the same as an earlier one ({where} repeats {first})")
    why = f" Left out: {'; '.join(left_out)}." if left_out else ""
    hint = f"Ask for {there} or fewer (`--num-prompts {there}`), or give a file with more."
    if repeats:
        hint += " A prompt sent twice would measure the engine's prefix cache."
    return InputError(f"{path}: {asked} prompts were asked for, and it holds {there} different ones.{why}", hint=hint)
