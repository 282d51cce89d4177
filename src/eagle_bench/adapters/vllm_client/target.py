"""What is measured, and what is told while it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from eagle_bench.errors import InputError


@dataclass(frozen=True)
class Target:
    """An OpenAI-compatible endpoint.

    Args:
        base_url: requests go to `{base_url}/chat/completions`; http or https.
        model: the name sent in requests; "" for a Vertex AI endpoint.
        token: gives a bearer token that is valid now; asked again and again, so it must cache.
        metrics_url: the engine's Prometheus page, where it can be reached.
    """

    base_url: str
    model: str = ""
    token: Callable[[], str] | None = field(default=None, repr=False)
    metrics_url: str | None = None

    @property
    def chat_url(self) -> str:
        return self.base_url.rstrip("/") + "/chat/completions"


@dataclass(frozen=True)
class Progress:
    """Where a cell stands. `note` is a sentence for the person who waits."""

    concurrency: int
    round: int
    rounds: int
    done: int
    total: int
    failed: int
    left_s: float | None = None
    note: str | None = None

    def __str__(self) -> str:
        if self.note:
            return f"c={self.concurrency} {self.note}"
        left = f", about {self.left_s:.0f} s left" if self.left_s is not None else ""
        where = f"round {self.round + 1}/{self.rounds}" if self.round >= 0 else "warm-up"
        return f"c={self.concurrency} {where}: {self.done}/{self.total} requests, {self.failed} failed{left}"


@dataclass(frozen=True)
class Address:
    """A URL taken apart for one HTTP/1.1 request."""

    host: str
    port: int
    secure: bool
    path: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def address(url: str) -> Address:
    """Take a URL apart.

    Raises:
        InputError: it is not an http or https URL with a host.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise InputError(f"{url}: the port is not a number.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(f"{url}: not a URL that can be measured: it must start with http:// or https:// and a host.")
    if parts.username or parts.password:
        raise InputError(f"{parts.hostname}: the URL carries a user name or password; give a token instead.")
    secure = parts.scheme == "https"
    path = parts.path or "/"
    return Address(
        host=parts.hostname,
        port=port or (443 if secure else 80),
        secure=secure,
        path=f"{path}?{parts.query}" if parts.query else path,
    )
