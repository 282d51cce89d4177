"""What fits on one machine: slots for engines, and turns where several engines share it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal


class Turns:
    """Who may use the machine now. First come, first served, between holders.

    A holder keeps its turn while it has work in flight and for `linger_s` after the last: one level of a sweep
    is one turn. Work of others waits meanwhile, so what a client sends first at a level (the warm-up) can wait long.
    """

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._holder: str | None = None
        self._in_flight = 0
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._passing: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def of(self, holder: str) -> AsyncIterator[None]:
        """Wait for the turn, hold it for the block."""
        await self._enter(holder)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, holder: str) -> None:
        if self._holder in {None, holder}:
            self._take(holder)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((holder, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._leave()
            else:
                self._waiting.remove((holder, granted))
            raise

    def _take(self, holder: str) -> None:
        self._holder, self._in_flight = holder, self._in_flight + 1
        if self._passing:
            self._passing.cancel()
            self._passing = None

    def _leave(self) -> None:
        self._in_flight -= 1
        if self._in_flight == 0:
            self._passing = asyncio.get_running_loop().call_later(self._linger_s, self._pass_on)

    def _pass_on(self) -> None:
        self._holder, self._passing = None, None
        if not self._waiting:
            return
        following = self._waiting[0][0]
        others: deque[tuple[str, asyncio.Future[None]]] = deque()
        for holder, granted in self._waiting:
            if holder == following and not granted.done():
                self._take(holder)
                granted.set_result(None)
            elif not granted.done():
                others.append((holder, granted))
        self._waiting = others


class Machine:
    """This computer as a region with `slots` machines of the type asked for."""

    def __init__(self, slots: int, linger_s: float) -> None:
        self.slots = slots
        self._free = asyncio.Semaphore(slots)
        self._turns = Turns(linger_s) if slots > 1 else None

    @property
    def mode(self) -> Literal["one-at-a-time", "turns"]:
        """How measurements that share this machine keep out of each other's way: `one-at-a-time` or `turns`."""
        return "turns" if self._turns else "one-at-a-time"

    @property
    def full(self) -> bool:
        return self._free.locked()

    async def take_slot(self) -> None:
        """Wait, first come first served, for a free slot, as for machines in a full region."""
        await self._free.acquire()

    def give_slot_back(self) -> None:
        self._free.release()

    @asynccontextmanager
    async def turn_of(self, holder: str) -> AsyncIterator[None]:
        """Use the machine alone; with one slot that is always so."""
        if self._turns is None:
            yield
        else:
            async with self._turns.of(holder):
                yield
