"""Sockets that know when the kernel had the bytes that they hand out.

A process that answers 64 requests reads the last of them milliseconds after it came. Linux stamps each segment as it
comes (`SO_TIMESTAMPNS`, socket(7)); elsewhere the moment of the read has to do.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

_SO_TIMESTAMPNS = 35  # socket.h; Python names it from 3.14 on
_TIMESPEC = struct.Struct("@ll")
_STAMPS = sys.platform == "linux"
_ROOM = socket.CMSG_SPACE(_TIMESPEC.size) if _STAMPS else 0


class Arrivals(socket.socket):
    """A connection; `at_s` is when the last byte that was read had come, as `time.perf_counter()`."""

    at_s = 0.0

    def recv(self, size: int, flags: int = 0) -> bytes:
        data, notes, _, _ = self.recvmsg(size, _ROOM, flags)
        self._note(notes)
        return data

    def recv_into(self, buffer, nbytes: int = 0, flags: int = 0) -> int:
        count, notes, _, _ = self.recvmsg_into([buffer], _ROOM, flags)
        self._note(notes)
        return count

    def _note(self, notes: list[tuple[int, int, bytes]]) -> None:
        now_s, wall_ns = time.perf_counter(), time.time_ns()
        self.at_s = now_s
        for level, kind, data in notes:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                seconds, ns = _TIMESPEC.unpack(data[: _TIMESPEC.size])
                self.at_s = now_s - (wall_ns - (seconds * 1_000_000_000 + ns)) / 1e9


class Listener(socket.socket):
    """A bound socket for a server to listen at; `connections` has what it accepted, by file descriptor."""

    def __init__(self, port: int) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.bind(("127.0.0.1", port))
        if _STAMPS:  # here: connections inherit it, and what comes before they are accepted is stamped, too
            self.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.connections: dict[int, Arrivals] = {}

    def accept(self) -> tuple[Arrivals, object]:
        plain, address = super().accept()
        connection = Arrivals(fileno=plain.detach())
        self.connections[connection.fileno()] = connection
        return connection, address
