"""What is measured, and what is told while it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, urlsplit

from eagle_bench.errors import InputError
from eagle_bench.secrecy import CHAT_PATH, FULL_URL, without_credentials

_IN_A_PATH = "/%:@!$&'()*+,;=~"  # stays as it is (RFC 3986)
_HOST = re.compile(r"[0-9A-Za-z._-]+")


@dataclass(frozen=True)
class Target:
    """An OpenAI-compatible endpoint.

    Args:
        base_url: requests go to `{base_url}/chat/completions`; http or https.
        model: the name sent in requests; "" for a Vertex AI endpoint.
        token: gives a bearer token that is valid now; asked again and again, so it must cache.
        metrics_url: the engine's Prometheus page, where it can be reached.

    Raises:
        InputError: the base URL has a query or a fragment, or is that of the chat route.
    """

    base_url: str
    model: str = ""
    token: Callable[[], str] | None = field(default=None, repr=False)
    metrics_url: str | None = None

    def __post_init__(self) -> None:
        for sign, what in (("?", "a query"), ("#", "a fragment")):
            if sign in self.base_url:
                shown = without_credentials(self.base_url)
                raise InputError(f"{shown}: a base URL can't have {what} ({sign}…): a path is put behind it.")
        if self.base_url.rstrip("/").endswith(CHAT_PATH):
            raise InputError(f"{without_credentials(self.base_url)}: {FULL_URL}.")

    @property
    def chat_url(self) -> str:
        return self.base_url.rstrip("/") + CHAT_PATH


def metrics_beside(base_url: str) -> str:
    """Where an engine has its `/metrics`: beside the `/v1` of its API. It is of the same host, so the token may go there."""
    return f"{base_url.rstrip('/').removesuffix('/v1')}/metrics"


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
    """Take a URL apart; a host and a path beyond ASCII are encoded as browsers do.

    Raises:
        InputError: it is not an http or https URL with a host, or something in it can't be sent.
    """
    shown = without_credentials(url)
    # `urlsplit` would drop line breaks without a word.
    if not url.isprintable() or " " in url:
        raise InputError(f"{shown!r}: a URL can't hold spaces, line breaks or characters that can't be printed.")
    try:
        parts = urlsplit(url)
    except ValueError:  # its words repeat what stands before the host
        raise InputError(f"{shown}: not a URL: its host can't be read.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(f"{shown}: not a URL that can be measured: it must start with http:// or https:// and a host.")
    if parts.username or parts.password:
        raise InputError(f"{parts.hostname}: the URL carries a user name or password; give a token instead.")
    if parts.fragment:
        raise InputError(f"{shown}: a fragment (#…) can't be sent to a server.")
    path = quote(parts.path, safe=_IN_A_PATH) or "/"
    return Address(
        host=_host(shown, parts.hostname),
        port=_port(shown, parts) or (443 if parts.scheme == "https" else 80),
        secure=parts.scheme == "https",
        path=f"{path}?{quote(parts.query, safe=_IN_A_PATH + '?')}" if parts.query else path,
    )


def _host(url: str, name: str) -> str:
    """The host in ASCII (RFC 3490), an IPv6 address as it is."""
    if ":" in name:
        if not name.isascii():
            raise InputError(f"{url}: {name[:80]} is not an IPv6 address.")
        return name
    try:
        host = name.encode("idna").decode("ascii")
    except UnicodeError:
        raise InputError(
            f"{url}: {name[:80]} is not the name of a host: its parts between the dots have 1 to 63 characters."
        ) from None
    # IDNA's normal form can bring in what no host holds: U+00A8 becomes a space.
    if not _HOST.fullmatch(host):
        raise InputError(f"{url}: {name[:80]} is not the name of a host: it has letters, digits, dots and hyphens.")
    return host


def _port(url: str, parts: SplitResult) -> int | None:
    try:
        port = parts.port
    except ValueError:
        given = parts.netloc.rpartition(":")[2]
        number = given.isascii() and given.isdigit()
        wrong = f"the port {given} is not between 1 and 65535" if number else f"the port {given!r} is not a number"
        if "@" in url:  # what passes for a port may be the beginning of a password
            wrong = "its port can't be read"
        raise InputError(f"{url}: {wrong}.") from None
    if port == 0:
        raise InputError(f"{url}: the port 0 is not between 1 and 65535.")
    return port
