"""Connections that stamp what they read before they look at it.

The clock of a request runs from just before its first byte is written to the moment after `recv`
returned the bytes in question. Connections are opened before (`pool`), and waiting for one is measured apart.
Nothing is parsed while other streams wait to be read: a response's end is looked for after every
ready socket has been stamped, and its meaning is worked out when the round is over.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections import deque
from typing import cast

from eagle_bench.adapters.vllm_client import http1
from eagle_bench.adapters.vllm_client.exchange import Exchange

_CLOSES_AT_ONCE_S = 1.0  # a server that closes within this after an answer does not keep connections


# Where every connection reads into: an event loop reads one after another, and what was read is copied at once.
_SCRATCH = memoryview(bytearray(256 * 1024))


class Turns:
    """Lets those whose requests have ended go on, one after another.

    Who goes on sends the next request, which takes as long as many reads do. When streams end together, the sockets are
    asked for what has come between one and the next, else the last tokens of all of them would be stamped late.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def wait(self, done: asyncio.Future[None]) -> None:
        self._waiting.append(done)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        done = self._waiting[0]
        if not done.done():
            done.set_result(None)
        self._loop.call_soon(self._pause)

    def _pause(self) -> None:
        """Leave one step of the loop to him who was let go."""
        self._waiting.popleft()
        if self._waiting:
            self._loop.call_soon(self._next)


class Connection(asyncio.BufferedProtocol):
    """One kept-alive connection, one request at a time.

    Buffered: reading into a buffer that is already there costs less than a new one for each read.
    """

    def __init__(self, turns: Turns) -> None:
        self._loop = asyncio.get_running_loop()
        self._turns = turns
        self._exchange: Exchange | None = None
        self._done: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._look_planned = False
        self._usable = False
        self._answered_s: float | None = None
        self.closed_at_once = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(0)  # uvloop would put small writes off until the loop comes round
        self._usable = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return _SCRATCH

    def buffer_updated(self, nbytes: int) -> None:
        now = time.perf_counter()
        data = bytes(_SCRATCH[:nbytes])
        exchange = self._exchange
        if exchange is None:  # bytes that nobody asked for: never reuse this one
            self._usable = False
            return
        exchange.stamps.append(now)
        exchange.data += data
        exchange.ends.append(len(exchange.data))
        head = exchange.head
        # A chunked body ends with an empty line; a short read may hold the rest of one.
        may_end = head is None or not head.chunked or data.endswith(b"\r\n\r\n") or len(data) < 5
        if may_end and not self._look_planned:
            self._look_planned = True
            self._loop.call_soon(self._look)
        if len(exchange.data) > exchange.longest_bytes:
            limit = f"{exchange.longest_bytes / 2**20:.0f} MiB"
            self.abort("protocol", f"The answer is longer than {limit}, which no answer of this length needs.")

    def connection_lost(self, exc: Exception | None) -> None:
        self._usable = False
        exchange = self._exchange
        if exchange is None or not exchange.data:
            self._note_close()
        if exchange is None:
            return
        self._look()
        if self._exchange is None:
            return
        head = exchange.head
        exchange.closed = exc is None
        if exc is None and head is not None and not head.chunked and head.length is None:
            self._finish()
        elif head is None and not exchange.data:
            exchange.fail("dropped", "The server closed the connection before it answered.")
            self._finish()
        else:
            exchange.fail("dropped", "The server closed the connection in the middle of the answer.")
            self._finish()

    async def send(self, request: bytes, exchange: Exchange, timeout_s: float) -> None:
        """Write the request and wait for the end of the response, whatever that is."""
        transport = self._transport
        if transport is None:
            exchange.fail("dropped", "The connection was never made.")
            return
        if transport.is_closing():  # by who took it and let go of it at once: uvloop raises where it is written to
            exchange.fail("dropped", "The server closed the connection before anything was sent.")
            return
        self._exchange = exchange
        self._done = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, self._expire, timeout_s)
        exchange.sent_s = time.perf_counter()
        transport.write(request)
        try:
            await self._done
        finally:
            timer.cancel()
            if self._exchange is not None:  # cancelled from outside
                self.abort("stopped", "The measurement was stopped.")

    def usable(self) -> bool:
        """Whether the next request may go here: still open, and nothing waits to be read (such as its end)."""
        if not self._usable or self._transport is None:
            return False
        if not self._transport.is_closing():
            poll = select.poll()
            poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN | select.POLLHUP)
            if not poll.poll(0):
                return True
        self._note_close()
        return False

    @property
    def fresh(self) -> bool:
        """Whether no answer has come over it yet."""
        return self._answered_s is None

    def _note_close(self) -> None:
        answered, now = self._answered_s, time.perf_counter()
        self.closed_at_once = self.closed_at_once or (answered is not None and now - answered < _CLOSES_AT_ONCE_S)

    def abort(self, kind: str, text: str) -> None:
        """End what runs here and drop the connection."""
        exchange = self._exchange
        self._usable = False
        if self._transport is not None:
            self._transport.abort()
        if exchange is not None:
            exchange.fail(kind, text)
            self._finish()

    def close(self) -> None:
        self._usable = False
        if self._transport is not None:
            self._transport.close()

    def _expire(self, timeout_s: float) -> None:
        self.abort("timeout", f"No end of the answer within {timeout_s:g} s.")

    def _look(self) -> None:
        """See whether the response is complete. Runs after the sockets that were ready have been stamped."""
        self._look_planned = False
        exchange = self._exchange
        if exchange is None:
            return
        try:
            head = exchange.head
            if head is None:
                head = exchange.head = http1.read_head(exchange.data)
            if head is None:
                return
        except http1.ProtocolError as error:
            self.abort("protocol", f"{error}.")
            return
        if head.chunked:
            ended = http1.chunked_end(exchange.data)
        else:
            ended = head.length is not None and len(exchange.data) - head.size >= head.length
        if ended:
            self._usable = self._usable and head.keep_alive
            self._finish()

    def _finish(self) -> None:
        exchange, done = self._exchange, self._done
        self._exchange = self._done = None
        if exchange is not None and exchange.fault is None:
            exchange.ended_s = exchange.stamps[-1] if exchange.stamps else time.perf_counter()
        if exchange is not None:
            self._answered_s = exchange.ended_s
        if done is not None and not done.done():
            self._turns.wait(done)
