"""The line between a cell and a process that sends for it: whole messages over a pair of sockets.

Messages are pickled: both ends are this package, on one machine, and the sockets have no name that
anybody else could connect to. A bearer token goes over it when it is asked for and is kept nowhere.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from dataclasses import dataclass, field
from typing import Any, Self

_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Ready:
    """The process has started, or its connections for the next round stand."""


@dataclass(frozen=True)
class Go:
    """All connections of all processes stand: begin."""


@dataclass(frozen=True)
class Stop:
    """Send nothing more and drop what runs."""


@dataclass(frozen=True)
class TokenWanted:
    """A bearer token that is valid now, please; not the one that a server refused."""

    refused: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TokenGiven:
    """The token, or why there is none."""

    token: str | None = field(repr=False)
    reason: str = ""


class Line:
    """One end. `receive` raises EOFError when the other end is gone, `send` then does nothing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def over(cls, end: socket.socket) -> Self:
        return cls(*await asyncio.open_connection(sock=end))

    def send(self, message: object) -> None:
        if not self._writer.is_closing():
            data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
            self._writer.write(_LENGTH.pack(len(data)) + data)

    async def receive(self) -> Any:
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))  # noqa: S301 (see above)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError from error

    def close(self) -> None:
        self._writer.close()
