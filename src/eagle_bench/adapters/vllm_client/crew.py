"""Several processes for one cell, where one can't hold its streams.

Each plays its share of every round through vLLM's benchmark as one process would; the records are
merged on the clock that all processes of a machine share (`time.perf_counter()` is CLOCK_MONOTONIC).
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from eagle_bench.adapters.vllm_client.health import Watch
from eagle_bench.adapters.vllm_client.line import Go, Line, Ready, Stop, TokenGiven, TokenWanted
from eagle_bench.adapters.vllm_client.rounds import Outcome, Tally
from eagle_bench.adapters.vllm_client.sender import WARM_UP, Part, Played, Terms
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper, TokenUnavailable
from eagle_bench.errors import EagleBenchError
from eagle_bench.results import RequestError, RequestRecord

STREAMS_EACH = 128  # one process holds 256 with a quarter of a core, but sends a burst of so many too slowly
_GRACE_S = 10.0
_LOST = "The process of the client that was to send this ended before it told what came of it."


def processes_for(concurrency: int) -> int:
    """How many processes a level gets: one for each 128 streams, and a core less than this process may use.

    On two cores a second process made the first token later: it takes the core of whatever else runs there.
    """
    return max(1, min(-(-concurrency // STREAMS_EACH), _cores() - 1))


def _cores() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def hired(count: int) -> Iterator[list[socket.socket]]:
    """Start so many workers and give a socket to each. They end with the block, or with this process."""
    pairs = [socket.socketpair() for _ in range(count)]
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    descriptors = [end.fileno() for end in theirs]
    # A session of their own: Ctrl-C at the terminal is for the cell, which then stops them in order.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "eagle_bench.adapters.vllm_client.worker", *map(str, descriptors)],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    for end in theirs:
        end.close()
    try:
        yield ours
    finally:
        for end in ours:
            end.close()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:  # it still imports; nobody has been forked, or they see the end of their line
            process.kill()
            process.wait()


def share(part: Part, count: int) -> list[Part]:
    """The part of each process: every stream of the level belongs to one, and the stream's prompts with it."""
    return [
        Part(
            [p for j, p in enumerate(part.prompts) if j % part.concurrency % count == index],
            len(range(index, part.concurrency, count)),
            part.number,
            part.origin_s,
        )
        for index in range(count)
    ]


class Crew:
    """Has workers play the rounds."""

    def __init__(self, lines: Sequence[Line], tokens: TokenKeeper) -> None:
        self._lines, self._tokens = lines, tokens
        self._tallies = [Tally() for _ in lines]
        self._watches = [Watch() for _ in lines]

    @classmethod
    async def meet(cls, ends: Sequence[socket.socket], terms: Terms, tokens: TokenKeeper) -> Self:
        """Wait until all have started and tell them the terms.

        Raises:
            EagleBenchError: they did not start; why stands on standard error.
        """
        lines = [await Line.over(end) for end in ends]
        try:
            for line in lines:
                await line.receive()
        except EOFError:
            raise EagleBenchError("the client's processes did not start: what they said stands above.") from None
        for line in lines:
            plain = replace(terms, target=replace(terms.target, token=None), processes=len(lines))
            line.send((plain, tokens.wanted))
        return cls(lines, tokens)

    @property
    def tally(self) -> Tally:
        return sum(self._tallies, Tally())

    @property
    def watches(self) -> list[Watch]:
        return self._watches

    async def play(self, part: Part, on_end: Callable[[], None]) -> Played:
        shares = share(part, len(self._lines))
        self._tallies = [Tally() for _ in shares]
        busy = {index for index, theirs in enumerate(shares) if theirs.prompts}
        waited_for = set(busy)

        def ready(index: int) -> None:
            waited_for.discard(index)
            if not waited_for:
                for each in busy:
                    self._lines[each].send(Go())

        played = await asyncio.gather(*(self._follow(index, shares[index], ready, on_end) for index in sorted(busy)))
        place = {prompt.id: at for at, prompt in enumerate(part.prompts)}
        return Played(
            sorted((one for each in played for one in each.outcomes), key=lambda one: place[one.record.prompt_id]),
            all(each.agrees for each in played),
            self.tally,
            Watch(),
        )

    async def _follow(self, index: int, part: Part, ready: Callable[[int], None], on_end: Callable[[], None]) -> Played:
        """Hand a part out and answer its process until it has played it."""
        line = self._lines[index]
        line.send(part)
        while True:
            try:
                message = await line.receive()
            except EOFError:
                ready(index)
                return self._lost(index, part)
            if isinstance(message, Ready):
                ready(index)
            elif isinstance(message, TokenWanted):
                if message.refused is not None:
                    self._tokens.refused(message.refused)
                line.send(await self._token())
            elif isinstance(message, Tally):
                self._tallies[index] = message
                on_end()
            elif isinstance(message, Played):
                self._tallies[index] = message.tally
                if part.number != WARM_UP:
                    self._watches[index].add(message.watch)
                return message

    async def _token(self) -> TokenGiven:
        try:
            return TokenGiven(await self._tokens.current())
        except TokenUnavailable as error:
            return TokenGiven(None, str(error))

    def _lost(self, index: int, part: Part) -> Played:
        count = len(part.prompts)
        self._tallies[index] = tally = Tally(count, count)
        if part.number == WARM_UP:
            return Played([], True, tally, Watch())
        at_s = time.perf_counter() - part.origin_s
        error = RequestError(kind="other", body=_LOST)
        records = [
            RequestRecord(prompt_id=p.id, kind=p.kind, round=part.number, start_s=at_s, end_s=at_s, error=error)
            for p in part.prompts
        ]
        return Played([Outcome(record) for record in records], True, tally, Watch())

    def stop(self) -> None:
        for line in self._lines:
            line.send(Stop())

    async def close(self) -> None:
        for line in self._lines:
            line.close()
