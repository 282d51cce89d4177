"""Which host a URL names, and who shares one: servers on one machine slow each other where they are measured side by side."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from eagle_bench.units import conjunction

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def host_of(url: str) -> str | None:
    """The host of a URL, the names of this machine as one."""
    host = urlsplit(url).hostname
    return LOOPBACK[0] if host in LOOPBACK else host


def on_one(host: str, names: Sequence[str]) -> str:
    """That variants share a host, in words."""
    return f"{conjunction(list(names))} {'both' if len(names) == 2 else 'all'} run on {host}"
