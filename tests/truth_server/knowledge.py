"""What the truth server was asked to do, and what it knows: settings, journal, counters, tokens."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

MODES = {
    "role-first",
    "usage-with-content",
    "usage-each",
    "usage-always",
    "usage-never",
    "empty",
    "blank",
    "503",
    "429",
    "500",
    "cut",
    "cut-clean",
    "error-event",
    "not-sse",
    "broken-json",
    "slow",
    "hang",
    "close",
    "close-header",
    "until-close",
    "split",
    "token",
    "revoke",
    "vertex",
    "new-limit",
    "spec",
    "v1-only",
    "floats",
}
STREAM_FAULTS = ("empty", "blank", "cut", "cut-clean", "error-event", "not-sse", "broken-json", "hang")
REFUSALS = ((503, "no replica is ready"), (429, "quota exceeded"), (500, "CUDA out of memory"))


@dataclass
class Sent:
    """One write of a stream: when, how many tokens it carried, what for."""

    at_s: float
    tokens: int
    what: str  # "role", "content", "usage", "error"


@dataclass
class Entry:
    """What the server knows about one chat request. Times are `time.perf_counter()`."""

    number: int
    counted: int | None  # among those that `--only` lets through
    connection: int
    received_s: float
    content: str  # of the last message
    body: dict
    authorization: bool
    status: int = 0
    fault: str | None = None
    tokens: int = 0  # sent in all
    sent: list[Sent] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    tokens: int
    tokens_per_chunk: int
    first_ms: float
    token_ms: float
    only: str
    modes: dict[str, float | None]


class Truth:
    """The state of the server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.journal: list[Entry] = []
        self.counted = 0
        self.connections = 0
        self.tokens: dict[str, float] = {}
        self.drafts = self.drafted = self.accepted = 0

    def has(self, mode: str) -> bool:
        return mode in self.settings.modes

    def number(self, mode: str) -> float:
        return self.settings.modes.get(mode) or 0.0

    def hits(self, mode: str, entry: Entry) -> bool:
        every = int(self.number(mode))
        return every > 0 and entry.counted is not None and (entry.counted + 1) % every == 0

    def give_token(self) -> str:
        token = "tok-" + secrets.token_hex(12)
        self.tokens[token] = time.perf_counter() + self.number("token")
        return token

    def revoke(self, entry: Entry) -> None:
        """Take back what was given by now, if this is the request for it."""
        if self.has("revoke") and entry.counted == int(self.number("revoke")):
            self.tokens.clear()

    def admits(self, authorization: str) -> bool:
        return time.perf_counter() < self.tokens.get(authorization.removeprefix("Bearer "), 0.0)

    def metrics(self) -> str:
        lines = ["# TYPE vllm:request_success_total counter", f"vllm:request_success_total {len(self.journal)}.0"]
        if self.has("spec"):
            for name, value in (
                ("drafts", self.drafts),
                ("draft_tokens", self.drafted),
                ("accepted_tokens", self.accepted),
            ):
                label = '{engine="0",model_name="truth"}'
                lines += [
                    f"# TYPE vllm:spec_decode_num_{name}_total counter",
                    f"vllm:spec_decode_num_{name}_total{label} {float(value)}",
                ]
        return "\n".join(lines) + "\n"
