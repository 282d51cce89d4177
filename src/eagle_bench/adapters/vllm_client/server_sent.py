"""Server-sent events in the body of an answer, and the JSON in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from eagle_bench.adapters.vllm_client import http1

_BOM = b"\xef\xbb\xbf"


def is_stream(head: http1.Head, data: bytes) -> bool:
    data = data.removeprefix(_BOM)
    if head.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return not data.strip() or any(data.startswith(b) or b"\n" + b in data for b in (b"data:", b":", b"event:"))
    return not data.strip() or data.lstrip().startswith((b"data:", b":", b"event:"))


def events(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The data of each server-sent event, and the offset of its last byte."""
    lines: list[bytes] = []
    last, at = 0, len(_BOM) if data.startswith(_BOM) else 0
    while at < len(data):
        end = data.find(b"\n", at)
        stop = len(data) if end < 0 else end
        line = data[at:stop].rstrip(b"\r")
        if line.startswith(b"data:"):
            lines.append(line[6:] if line.startswith(b"data: ") else line[5:])
            last = at + len(line) - 1
        elif not line and lines:
            yield b"\n".join(lines), last
            lines = []
        at = stop + 1
    if lines:
        yield b"\n".join(lines), last


def event_of(payload: bytes) -> Any:
    """An event's JSON; None where it is none: NaN and nesting beyond what can be read included."""
    try:
        return json.loads(payload, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")
