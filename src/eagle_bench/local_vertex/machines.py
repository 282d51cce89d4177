"""What fits on one machine: slots for engines, and turns where several engines share it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

FIRST_PATIENCE_S = 30.0


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

    def ahead_of(self, holder: str) -> tuple[str, ...]:
        """Whose turn this holder waits for; empty where it waits for none."""
        waits = any(waiting == holder and not granted.done() for waiting, granted in self._waiting)
        return (self._holder,) if waits and self._holder is not None else ()

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
    """This computer as a region with `slots` machines of the type asked for.

    Slots are given first come, first served; but one is kept for who is expected, until it comes. Where it stays away
    while another waits for `FIRST_PATIENCE_S` (its deploy was refused, say), the slot is anybody's.
    """

    def __init__(self, slots: int, linger_s: float) -> None:
        self.slots = slots
        self._first: str | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._holders: list[str] = []
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._turns = Turns(linger_s) if slots > 1 else None

    @property
    def mode(self) -> Literal["one-at-a-time", "turns"]:
        """How measurements that share this machine keep out of each other's way: `one-at-a-time` or `turns`."""
        return "turns" if self._turns else "one-at-a-time"

    def ahead_of(self, holder: str) -> tuple[str, ...]:
        """Who has what this one waits for, a slot or a turn; empty where it waits for nothing."""
        if any(waiting == holder for waiting, _ in self._waiting):
            return (*self._holders, *((self._first,) if self._first else ()))
        return self._turns.ahead_of(holder) if self._turns else ()

    def expect(self, holder: str) -> None:
        """Keep a slot for this one: it comes first, of those that have none yet."""
        self._keep_no_longer()
        self._first = holder

    async def take_slot(self, holder: str) -> None:
        """Wait for a free slot, as for machines in a full region."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if holder == self._first:
            self._waiting.appendleft((holder, granted))
            self._keep_no_longer()
        else:
            self._waiting.append((holder, granted))
            self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_slot_back(holder)
            else:
                self._waiting.remove((holder, granted))
            raise

    def give_slot_back(self, holder: str) -> None:
        self._holders.remove(holder)
        self._grant()

    def _keep_no_longer(self) -> None:
        self._first = None
        if self._patience:
            self._patience.cancel()
            self._patience = None
        self._grant()

    def _grant(self) -> None:
        free = self.slots - len(self._holders) - (1 if self._first else 0)
        if self._first and self._waiting and free == 0 and self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(FIRST_PATIENCE_S, self._keep_no_longer)
        for holder, granted in tuple(self._waiting):
            if free > 0 and not granted.done():
                self._waiting.remove((holder, granted))
                self._holders.append(holder)
                granted.set_result(None)
                free -= 1

    @asynccontextmanager
    async def turn_of(self, holder: str) -> AsyncIterator[None]:
        """Use the machine alone; with one slot that is always so."""
        if self._turns is None:
            yield
        else:
            async with self._turns.of(holder):
                yield
