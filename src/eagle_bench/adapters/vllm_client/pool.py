"""Connections that are open before a request asks for one."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import time
from contextlib import suppress

from eagle_bench.adapters.vllm_client.exchange import LONGEST_BYTES, Exchange
from eagle_bench.adapters.vllm_client.target import Address
from eagle_bench.adapters.vllm_client.wire import Connection, Turns

_CONNECT_TIMEOUT_S = 30.0
_ERRNO = re.compile(r"\[Errno (\d+)\]")
_CERTIFICATE_HINT = " SSL_CERT_FILE can name a file with the certificates to trust."
_TLS_HINT = " Does this port speak TLS? If it does not, http:// is meant."


def _cause(error: OSError) -> str:
    """What went wrong in few words: asyncio names each address that it tried."""
    tried = [] if isinstance(error, ssl.SSLError) else _ERRNO.findall(str(error))
    return " and ".join(dict.fromkeys(os.strerror(int(number)) for number in tried)) or error.strerror or str(error)


class Pool:
    """Connections to one address, opened ahead and kept alive.

    A server that closes a connection after each answer without announcing it is found out (in the
    warm-up, as a rule), and then gets a connection for each request, still opened ahead. Writing on
    one that is just being closed would fail a request that the server never saw.
    """

    def __init__(
        self,
        address: Address,
        *,
        tls: ssl.SSLContext | None = None,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
    ) -> None:
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self._tls = (tls or ssl.create_default_context()) if address.secure else None
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._keeps_alive = True
        self._turns: Turns | None = None

    async def open(self, count: int) -> None:
        """Have `count` open connections ready. What can't be opened shows at the requests."""
        self._idle = [connection for connection in self._idle if self._reusable(connection)]
        missing = max(0, count - len(self._idle))
        await asyncio.gather(*(self._open_one() for _ in range(missing)))

    async def unreachable(self) -> str | None:
        """Why no connection can be made, in a sentence; None where one is open now."""
        try:
            self._idle.append(await self._connect(self._connect_timeout_s))
        except (OSError, ssl.SSLError) as error:
            return self._said(error, self._connect_timeout_s)
        return None

    async def send(self, request: bytes, timeout_s: float, longest_bytes: int = LONGEST_BYTES) -> Exchange:
        """Send one request over an open connection; every fault is in the exchange, none is raised."""
        exchange = Exchange(longest_bytes)
        asked_s = time.perf_counter()
        try:
            connection = await self._take(timeout_s)
        except (OSError, ssl.SSLError) as error:
            exchange.fail("connection", self._said(error, min(timeout_s, self._connect_timeout_s)))
            return exchange
        exchange.connect_s = time.perf_counter() - asked_s
        if self._stopped:
            connection.close()
            exchange.fail("stopped", "The measurement was stopped.")
            return exchange
        self._busy.add(connection)
        try:
            await connection.send(request, exchange, timeout_s)
        finally:
            self._busy.discard(connection)
        self._give_back(connection, exchange)
        return exchange

    def stop(self) -> None:
        """End every request that runs and take no more."""
        self._stopped = True
        for connection in tuple(self._busy):
            connection.abort("stopped", "The measurement was stopped.")

    def close(self) -> None:
        self._stopped = True
        for task in self._opening:
            task.cancel()
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _said(self, error: OSError, within_s: float) -> str:
        """Why a connection could not be made."""
        where = f"{self._address.host} port {self._address.port}"
        if isinstance(error, TimeoutError):
            what = "TLS connection" if self._tls else "connection"
            return f"{where}: no {what} within {within_s:g} s.{_TLS_HINT if self._tls else ''}"
        certificate = isinstance(error, ssl.SSLCertVerificationError)
        hint = _CERTIFICATE_HINT if certificate else _TLS_HINT if isinstance(error, ssl.SSLError) else ""
        return f"{where}: {_cause(error)}.{hint}"

    def _reusable(self, connection: Connection) -> bool:
        usable = connection.usable()
        self._keeps_alive = self._keeps_alive and not connection.closed_at_once
        return usable and (self._keeps_alive or connection.fresh)

    def _give_back(self, connection: Connection, exchange: Exchange) -> None:
        if exchange.fault is None and self._reusable(connection):
            self._idle.append(connection)
            return
        self._keeps_alive = self._keeps_alive and not connection.closed_at_once
        connection.close()
        if not self._stopped:
            task = asyncio.create_task(self._open_one())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_one(self) -> None:
        with suppress(OSError, ssl.SSLError, TimeoutError):
            self._idle.append(await self._connect(self._connect_timeout_s))

    async def _take(self, timeout_s: float) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if self._reusable(connection):
                return connection
            connection.close()
        return await self._connect(min(timeout_s, self._connect_timeout_s))

    async def _connect(self, timeout_s: float) -> Connection:
        turns = self._turns = self._turns or Turns()
        _, connection = await asyncio.wait_for(
            asyncio.get_running_loop().create_connection(
                lambda: Connection(turns),
                self._address.host,
                self._address.port,
                ssl=self._tls,
                server_hostname=self._address.host if self._tls else None,
            ),
            timeout_s,
        )
        return connection
