"""HTTP/1.1 responses out of raw bytes (RFC 9112), strict, with no I/O.

The measuring connection only looks for the end of a response while the clock runs; what the bytes
mean is worked out here afterwards.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: |$)")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_LAST_CHUNK = re.compile(rb"\r\n0+[ \t]*(?:;[^\r\n]*)?\r\n")
_LENGTH = re.compile(r"[0-9]{1,15}")
_MAX_HEAD, _MAX_TRAILERS = 64 * 1024, 4096


class ProtocolError(Exception):
    """The bytes are not an HTTP/1.1 response.

    The text holds what was found by the line, uncut: a secret that a server repeats is hidden in it first.
    """


@dataclass(frozen=True)
class Head:
    """The head of a response. `length` None: chunked, or to the end of the connection."""

    status: int
    headers: dict[str, str]
    chunked: bool
    length: int | None
    keep_alive: bool
    size: int  # bytes up to where the body begins


def read_head(data: bytes | bytearray) -> Head | None:
    """The head at the start of `data`, interim (1xx) responses skipped; None while it is incomplete."""
    start = 0
    while True:
        end = data.find(b"\r\n\r\n", start)
        if end < 0:
            if len(data) - start > _MAX_HEAD:
                raise ProtocolError("the head of the response has no end")
            if data.startswith(b"\x15\x03"):
                raise ProtocolError("the server answered with a TLS alert: https:// instead of http:// is meant")
            if data and not b"HTTP/1.".startswith(bytes(data[start : start + 7])):
                raise ProtocolError(f"not HTTP/1.1: the response starts with {_line(data, start)!r}")
            return None
        lines = bytes(data[start:end]).split(b"\r\n")
        match = _STATUS_LINE.match(lines[0])
        if match is None:
            raise ProtocolError(f"not a status line: {lines[0]!r}")
        status = int(match[2])
        start = end + 4
        if status >= 200 or status == 101:
            return _head(status, lines[1:], start, kept=match[1] == b"1")


def _line(data: bytes | bytearray, start: int) -> bytes:
    end = data.find(b"\r\n", start)
    return bytes(data[start : end if end >= 0 else len(data)])


def _head(status: int, lines: list[bytes], size: int, *, kept: bool) -> Head:
    """A head out of its lines; `kept`: its version keeps connections unless it says otherwise."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise ProtocolError(f"not a header: {line!r}")
        key, text = name.decode("latin-1").lower(), value.strip().decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
    length: int | None = None
    if status in {204, 304}:
        length = 0
    elif not chunked and "content-length" in headers:
        if not _LENGTH.fullmatch(headers["content-length"]):
            raise ProtocolError(f"not a content length: {headers['content-length']!r}")
        length = int(headers["content-length"])
    connection = headers.get("connection", "").lower()
    kept = "close" not in connection and (kept or "keep-alive" in connection)
    closes = not kept or (length is None and not chunked)
    return Head(status, headers, chunked, length, keep_alive=not closes, size=size)


def chunked_end(data: bytearray) -> bool:
    """Whether `data` ends with a last chunk and its trailers. Looks at the tail only.

    A body that holds these bytes by itself would be taken for the end; `body` then refuses it.
    """
    if not data.endswith(b"\r\n\r\n"):
        return False
    tail = max(0, len(data) - _MAX_TRAILERS)
    return data.rfind(b"\r\n0\r\n", tail) >= 0 or _LAST_CHUNK.search(data, tail) is not None


@dataclass(frozen=True)
class Body:
    """A decoded body; `raw_offset` says where in the connection's bytes a byte of it stood."""

    data: bytes
    complete: bool
    _starts: tuple[int, ...]
    _raw: tuple[int, ...]

    def raw_offset(self, offset: int) -> int:
        piece = bisect_right(self._starts, offset) - 1
        return self._raw[piece] + offset - self._starts[piece]


def body(head: Head, data: bytes | bytearray, *, closed: bool) -> Body:
    """Decode the body that follows `head` in `data`.

    Args:
        closed: the connection ended in order, which is how a body without a length ends.

    Raises:
        ProtocolError: the chunked coding is broken.
    """
    if not head.chunked:
        found = bytes(data[head.size :])
        complete = closed if head.length is None else len(found) >= head.length
        return Body(found if head.length is None else found[: head.length], complete, (0,), (head.size,))
    pieces: list[bytes] = []
    starts: list[int] = []
    raw: list[int] = []
    at, length, complete = head.size, 0, False
    while True:
        match = _CHUNK_SIZE.match(data, at)
        if match is None:
            if b"\r\n" in data[at : at + 32]:
                raise ProtocolError(f"not a chunk size: {_line(data, at)!r}")
            break
        size = int(match[1], 16)
        if size == 0:
            complete = data.endswith(b"\r\n\r\n")
            break
        begin = match.end()
        piece = bytes(data[begin : begin + size])
        starts.append(length)
        raw.append(begin)
        pieces.append(piece)
        length += len(piece)
        at = begin + size + 2
        if len(piece) < size or at > len(data):
            break
        if data[at - 2 : at] != b"\r\n":
            raise ProtocolError(f"a chunk of {size} bytes does not end where it should")
    return Body(b"".join(pieces), complete, tuple(starts) or (0,), tuple(raw) or (head.size,))
