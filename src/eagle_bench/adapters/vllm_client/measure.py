"""One cell: one endpoint at one concurrency, warm-up and rounds, into a `CellResult`."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from eagle_bench.adapters.tokenizer import load as load_tokenizer
from eagle_bench.adapters.vllm_client import engine
from eagle_bench.adapters.vllm_client.cell import Cell
from eagle_bench.adapters.vllm_client.crew import Crew, hired, processes_for
from eagle_bench.adapters.vllm_client.event_loop import event_loop
from eagle_bench.adapters.vllm_client.sender import Alone, Sender, Terms
from eagle_bench.adapters.vllm_client.target import Progress, Target, address
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper
from eagle_bench.errors import InputError
from eagle_bench.results import CellResult, CellSettings
from eagle_bench.workload.prompts import Prompt, StagedPrompt


def measure(
    target: Target,
    warmup: Sequence[Prompt],
    measured: Sequence[StagedPrompt],
    *,
    variant: str,
    concurrency: int,
    settings: CellSettings,
    tokenizer: Path | None = None,
    run_id: str | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    processes: int | None = None,
    deadline_s: float | None = None,
    on_signal: Callable[[int], None] = lambda _: None,
) -> CellResult:
    """Measure one cell with vLLM's benchmark.

    What goes wrong with the endpoint is in the result, never an exception: a cell without a
    successful request has `metrics` None and a `failure`. SIGTERM and SIGINT end the measurement
    early; what was measured is returned with the warning "interrupted".

    Args:
        warmup: sent first, through the same path, and thrown away.
        measured: each belongs to the round it names; rounds run one after another.
        tokenizer: a folder with `tokenizer.json`, for servers that send no usage.
        on_progress: called every few seconds, and at the ends of rounds.
        processes: how many send; None: as many as the concurrency needs and the machine has cores for.
        deadline_s: when to end the measurement early, in seconds since 1970; the warning is "budget" then.
        on_signal: hears the number of the signal that ended it.

    Raises:
        InputError: no prompts, a URL that can't be used, another vLLM than the pinned one, or tokens
            that nobody counts (no usage from the server and no tokenizer).
        EagleBenchError: the processes that should send did not start.
    """
    if not measured:
        raise InputError("there are no prompts to measure.")
    address(target.chat_url)
    if tokenizer is not None:
        load_tokenizer(tokenizer)  # what is wrong with it is said before anything starts
    engine.check_version()
    count = processes_for(concurrency) if processes is None else processes

    def run(start: Callable[[Terms, TokenKeeper], Awaitable[Sender]]) -> CellResult:
        told = (on_progress, deadline_s, on_signal)
        cell = Cell(target, variant, concurrency, settings, start, tokenizer, run_id, *told)
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            return runner.run(cell.run(warmup, measured))

    if count > 1:
        with hired(count) as ends:
            return run(lambda terms, tokens: Crew.meet(ends, terms, tokens))
    engine.load()
    gc.collect()
    gc.freeze()  # vLLM's imports leave a heap that takes a fifth of a second to look through
    try:
        return run(_alone)
    finally:
        gc.unfreeze()


async def _alone(terms: Terms, tokens: TokenKeeper) -> Sender:
    return Alone(terms, tokens)
