"""One cell: one endpoint at one concurrency, warm-up and rounds, into a `CellResult`."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from eagle_bench.adapters.tokenizer import load as load_tokenizer
from eagle_bench.adapters.vllm_client import engine
from eagle_bench.adapters.vllm_client.cell import Cell
from eagle_bench.adapters.vllm_client.target import Progress, Target, address
from eagle_bench.errors import InputError
from eagle_bench.results import (
    CellResult,
    CellSettings,
)
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

    Raises:
        InputError: no prompts, a URL that can't be used, another vLLM than the pinned one, or tokens
            that nobody counts (no usage from the server and no tokenizer).
    """
    if not measured:
        raise InputError("there are no prompts to measure.")
    address(target.chat_url)
    count_tokens = load_tokenizer(tokenizer).count_text if tokenizer else None
    engine.load()
    gc.collect()
    gc.freeze()  # vLLM's imports leave a heap that takes a fifth of a second to look through
    cell = Cell(target, variant, concurrency, settings, count_tokens, run_id, on_progress)
    try:
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            return runner.run(cell.run(warmup, measured))
    finally:
        gc.unfreeze()


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed (vLLM's server brings it): it costs two thirds of the CPU for each chunk."""
    try:
        import uvloop
    except ImportError:
        return None
    return cast(Callable[[], asyncio.AbstractEventLoop], uvloop.new_event_loop)
