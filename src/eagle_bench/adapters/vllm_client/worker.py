"""A process that sends its share of each round, and the one that starts them.

    python -m eagle_bench.adapters.vllm_client.worker FD…

imports vLLM once and then forks a worker for each socket: 15 s of CPU are paid for one time, and no
library of the calling process is forked in a state that it does not expect. A worker ends when the
other end of its line is gone, whatever ended the cell.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from eagle_bench.adapters.vllm_client import engine
from eagle_bench.adapters.vllm_client.event_loop import event_loop
from eagle_bench.adapters.vllm_client.line import Go, Line, Ready, Stop, TokenGiven, TokenWanted
from eagle_bench.adapters.vllm_client.sender import Alone, Part
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper
from eagle_bench.errors import ServiceError


class Worker:
    """Does what comes over the line until the line ends."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._go = asyncio.Event()
        self._tokens: asyncio.Queue[TokenGiven] = asyncio.Queue()

    async def work(self) -> None:
        self._line.send(Ready())
        terms, wants_tokens = await self._line.receive()
        sender = Alone(terms, TokenKeeper(_OverTheLine(self._ask, self._loop) if wants_tokens else None))
        async with asyncio.TaskGroup() as tasks:
            while True:
                message = await self._line.receive()
                if isinstance(message, Part):
                    self._go.clear()
                    tasks.create_task(self._play(sender, message))
                elif isinstance(message, Go):
                    self._go.set()
                elif isinstance(message, Stop):
                    sender.stop()
                elif isinstance(message, TokenGiven):
                    self._tokens.put_nowait(message)

    async def _play(self, sender: Alone, part: Part) -> None:
        self._line.send(await sender.play(part, lambda: self._line.send(sender.tally), self._start))

    async def _start(self) -> None:
        self._line.send(Ready())
        await self._go.wait()

    async def _ask(self, refused: str | None) -> str:
        self._line.send(TokenWanted(refused))
        given = await self._tokens.get()
        if given.token is None:
            raise ServiceError(given.reason, kind="authentication")
        return given.token


class _OverTheLine:
    """The supplier of a worker's keeper, which asks one at a time and from a thread."""

    def __init__(self, ask: Callable[[str | None], Coroutine[Any, Any, str]], loop: asyncio.AbstractEventLoop) -> None:
        self._ask, self._loop = ask, loop
        self._refused: str | None = None

    def __call__(self) -> str:
        refused, self._refused = self._refused, None
        return asyncio.run_coroutine_threadsafe(self._ask(refused), self._loop).result()

    def refused(self, token: str) -> None:
        """Remember it for the next time."""
        self._refused = token


async def _serve(end: socket.socket) -> None:
    try:
        await Worker(await Line.over(end)).work()
    except* EOFError:
        pass  # the cell is over, or its process is gone


def main(descriptors: list[int]) -> None:
    engine.load()
    gc.collect()
    gc.freeze()  # what the imports left is shared with the workers, and never looked through again
    ends = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    for mine in ends:
        if os.fork():
            continue
        for other in ends:
            if other is not mine:
                other.close()
        status = 1
        try:
            with asyncio.Runner(loop_factory=event_loop()) as runner:
                runner.run(_serve(mine))
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    for end in ends:
        end.close()
    for _ in ends:
        os.wait()
    os._exit(0)  # the libraries that vLLM imports have much to say at an orderly end


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
