"""One request, and what came back for it: raw bytes, and when each of them was read."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left

from eagle_bench.adapters.vllm_client import http1

LONGEST_BYTES = 64 * 1024 * 1024


class Exchange:
    """One request and the raw bytes that came back.

    Attributes:
        sent_s: `time.perf_counter()` just before the first byte was written; None: never sent.
        ended_s: when the response was complete, or had failed.
        fault: why it failed below HTTP, with `fault_kind` "timeout", "dropped", "connection",
            "protocol" or "stopped".
        longest_bytes: more than this is no answer to the request, and ends it.
    """

    __slots__ = (
        "closed",
        "connect_s",
        "data",
        "ended_s",
        "ends",
        "fault",
        "fault_kind",
        "head",
        "longest_bytes",
        "sent_s",
        "stamps",
    )

    def __init__(self, longest_bytes: int = LONGEST_BYTES) -> None:
        self.longest_bytes = longest_bytes
        self.sent_s: float | None = None
        self.connect_s = 0.0
        self.ended_s = 0.0
        self.data = bytearray()
        self.stamps = array("d")
        self.ends = array("q")
        self.head: http1.Head | None = None
        self.closed = False
        self.fault: str | None = None
        self.fault_kind: str | None = None

    def arrival_s(self, raw_offset: int) -> float:
        """When the byte at `raw_offset` of the connection's bytes was read."""
        return self.stamps[bisect_left(self.ends, raw_offset + 1)]

    def fail(self, kind: str, text: str) -> None:
        self.fault_kind, self.fault = kind, text
        self.ended_s = time.perf_counter()
