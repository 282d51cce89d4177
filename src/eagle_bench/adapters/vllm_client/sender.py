"""Who sends the rounds of a cell: this process alone, or a crew of several (`crew`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eagle_bench.adapters.tokenizer import load as load_tokenizer
from eagle_bench.adapters.vllm_client.health import Watch
from eagle_bench.adapters.vllm_client.pool import Pool
from eagle_bench.adapters.vllm_client.rounds import HELD_BYTES, Outcome, Round, Tally
from eagle_bench.adapters.vllm_client.target import Target, address
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper
from eagle_bench.metrics import cell_metrics, counts
from eagle_bench.results import Capabilities, CellSettings
from eagle_bench.workload.prompts import Prompt

WARM_UP = -1  # the number of the round that is thrown away


@dataclass(frozen=True)
class Terms:
    """What all rounds of a cell have in common.

    Args:
        processes: how many share the cell, and so the memory for answers that are not read yet.
    """

    target: Target
    settings: CellSettings
    capabilities: Capabilities
    tokenizer: Path | None = None
    processes: int = 1


@dataclass(frozen=True)
class Part:
    """A round, or one process's share of it.

    Args:
        number: of the round, `WARM_UP` or from 0.
        origin_s: the cell's start on the clock of all processes (`time.perf_counter()`).
    """

    prompts: Sequence[Prompt]
    concurrency: int
    number: int
    origin_s: float


@dataclass(frozen=True)
class Played:
    """What a part came to: outcomes in the order of its prompts (none of a warm-up), who agrees, how it went."""

    outcomes: list[Outcome]
    agrees: bool  # vLLM's own medians with those of the records
    tally: Tally
    watch: Watch


class Sender(Protocol):
    """Plays the rounds of one cell, one after another."""

    @property
    def tally(self) -> Tally:
        """How the round that runs, or ran last, stands."""

    @property
    def watches(self) -> list[Watch]:
        """What was seen of each process in the measured rounds."""

    async def play(self, part: Part, on_end: Callable[[], None]) -> Played:
        """Play a round; `on_end` is called after each request."""

    def stop(self) -> None:
        """Send nothing more and drop what runs; the round then ends at once."""

    async def close(self) -> None:
        """Close all connections."""


async def _at_once() -> None:
    """Wait for nobody."""


class Alone:
    """This process sends everything."""

    def __init__(self, terms: Terms, tokens: TokenKeeper) -> None:
        self._terms, self._tokens = terms, tokens
        self._count_tokens = load_tokenizer(terms.tokenizer).count_text if terms.tokenizer else None
        self._pool = Pool(address(terms.target.chat_url))
        self._round: Round | None = None
        self._stopped = False
        self._watch = Watch()

    @property
    def tally(self) -> Tally:
        return self._round.tally if self._round is not None else Tally()

    @property
    def watches(self) -> list[Watch]:
        return [self._watch]

    async def play(
        self, part: Part, on_end: Callable[[], None], start: Callable[[], Awaitable[None]] = _at_once
    ) -> Played:
        """Play a part; `start` is awaited when its connections stand and before anything is sent."""
        watch = Watch()
        now = self._round = Round(
            target=self._terms.target,
            settings=self._terms.settings,
            capabilities=self._terms.capabilities,
            tokens=self._tokens,
            pool=self._pool,
            count_tokens=self._count_tokens,
            watch=watch,
            on_end=on_end,
            stopped=self._stopped,
            held_bytes=HELD_BYTES // self._terms.processes,
        )
        await now.prepare(part.prompts, part.concurrency)
        await start()
        theirs = await now.run()
        if part.number == WARM_UP:
            return Played([], True, now.tally, watch)
        self._watch.add(watch)
        outcomes = now.outcomes(part.number, part.origin_s)
        records = [outcome.record for outcome in outcomes]
        agrees = theirs.agrees(counts(records), cell_metrics(records, []))
        return Played(outcomes, agrees, now.tally, watch)

    def stop(self) -> None:
        self._stopped = True
        self._pool.stop()
        if self._round is not None:
            self._round.stop()

    async def close(self) -> None:
        self._pool.close()
