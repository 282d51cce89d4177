"""Where a cell stands, told every few seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from eagle_bench.adapters.vllm_client.rounds import Tally
from eagle_bench.adapters.vllm_client.target import Progress

_TICK_S = 2.0


class Course:
    """Counts what is done of the warm-up, then of all rounds, and tells it.

    Args:
        running: what the round that runs has come to so far.
        tell: gets each `Progress`.
    """

    def __init__(
        self, concurrency: int, rounds: int, running: Callable[[], Tally], tell: Callable[[Progress], None]
    ) -> None:
        self._at = Progress(concurrency, -1, rounds, 0, 0, 0)
        self._running = running
        self._tell = tell
        self._ended = Tally()
        self._began_s = 0.0

    @property
    def tally(self) -> Tally:
        """Of the rounds that are over and of the one that runs."""
        return self._ended + self._running()

    def left_s(self, done: int) -> float | None:
        """Seconds that the rest would take at the pace so far; None before anything is done.

        What is in flight counts half: when the first of many is done, the others nearly are, and the pace is theirs, too.
        """
        if not done:
            return None
        rest = self._at.total - done
        half = min(self._at.concurrency, rest) / 2
        return (time.perf_counter() - self._began_s) / (done + half) * (rest - half)

    def begin(self, total: int, rounds: int) -> None:
        """Count from nothing again: so many requests, in so many rounds."""
        self._at = replace(self._at, rounds=rounds, done=0, total=total, failed=0)
        self._ended, self._began_s = Tally(), time.perf_counter()

    @asynccontextmanager
    async def telling(self, number: int) -> AsyncIterator[None]:
        """Tell how round `number` goes while the block runs."""
        self._at = replace(self._at, round=number)

        async def tick() -> None:
            while True:
                await asyncio.sleep(_TICK_S)
                self._tell_of(self.tally)

        task = asyncio.create_task(tick())
        try:
            yield
        finally:
            task.cancel()

    def over(self, done: int, failed: int, slow_failures: int) -> None:
        """A round is over: what all rounds up to it came to, and how many of its own failures were slow ones."""
        self._ended = Tally(done, failed, self._ended.slow_failures + slow_failures)
        self._tell_of(self._ended)

    def note(self, text: str) -> None:
        """Tell a sentence."""
        self._tell(replace(self._at, note=text))

    def _tell_of(self, tally: Tally) -> None:
        self._at = replace(self._at, done=tally.done, failed=tally.failed)
        self._tell(replace(self._at, left_s=self.left_s(tally.done)))
