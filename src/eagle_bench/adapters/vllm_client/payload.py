"""The request: one body for all variants but for the messages, and its head."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from eagle_bench import __version__
from eagle_bench.adapters.vllm_client.target import Address
from eagle_bench.errors import EagleBenchError
from eagle_bench.results import Capabilities, CellSettings
from eagle_bench.workload.prompts import Message

_TOKEN_AGE_S = 0.25


def fields(settings: CellSettings, capabilities: Capabilities, max_tokens: int | None = None) -> dict[str, Any]:
    """The body without model and messages."""
    body: dict[str, Any] = {
        capabilities.token_limit_field: max_tokens or settings.max_output_tokens,
        "temperature": settings.temperature,
        "stream": True,
    }
    if capabilities.stream_options:
        body["stream_options"] = {"include_usage": True}
    if settings.ignore_eos:
        body["ignore_eos"] = True
    return body


def payload_sha256(settings: CellSettings, capabilities: Capabilities) -> str:
    """Hash of the body without model and messages: equal in all variants that were asked the same."""
    return hashlib.sha256(json.dumps(fields(settings, capabilities), sort_keys=True).encode()).hexdigest()


def encode(model: str, messages: Sequence[Message], rest: dict[str, Any]) -> bytes:
    """The body as it is sent, the messages as they are."""
    plain = [{"role": message.role, "content": message.content} for message in messages]
    return json.dumps({"model": model, "messages": plain, **rest}, ensure_ascii=False).encode()


def request_bytes(address: Address, body: bytes, token: str | None) -> bytes:
    """Head and body of one POST, ready for the wire."""
    more = f"Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: {len(body)}\r\n"
    return _head("POST", address, token, more) + body


def get_bytes(address: Address, token: str | None) -> bytes:
    """One GET, ready for the wire."""
    return _head("GET", address, token, "Accept: */*\r\n")


def _head(method: str, address: Address, token: str | None, more: str) -> bytes:
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return (
        f"{method} {address.path} HTTP/1.1\r\n"
        f"Host: {address.host_header}\r\n"
        f"User-Agent: eagle-bench/{__version__}\r\n"
        f"Accept-Encoding: identity\r\n"
        f"{more}{authorization}\r\n"
    ).encode("ascii")


class TokenUnavailable(Exception):
    """No bearer token could be had; the text says why, and never holds one."""


class TokenKeeper:
    """Asks for a token for each request, off the event loop; requests of one burst share one answer."""

    def __init__(self, supplier: Callable[[], str] | None) -> None:
        self._supplier = supplier
        self._token: str | None = None
        self._asked_s = 0.0
        self._lock = asyncio.Lock()

    @property
    def wanted(self) -> bool:
        """Whether the target takes a token at all."""
        return self._supplier is not None

    async def current(self) -> str | None:
        """A token that is valid now; None for a target without one.

        Raises:
            TokenUnavailable: the supplier failed, or gave nothing that can be sent.
        """
        if self._supplier is None:
            return None
        if self._token is not None and time.monotonic() - self._asked_s < _TOKEN_AGE_S:
            return self._token
        async with self._lock:
            if self._token is None or time.monotonic() - self._asked_s >= _TOKEN_AGE_S:
                self._token = None
                self._token = await self._ask(self._supplier)
                self._asked_s = time.monotonic()
            return self._token

    async def _ask(self, supplier: Callable[[], str]) -> str:
        try:
            token: object = await asyncio.to_thread(supplier)
        except EagleBenchError as error:
            raise TokenUnavailable(str(error)) from None
        except Exception as error:  # whatever library the supplier uses, a request must only fail
            raise TokenUnavailable(f"No access token: {type(error).__name__}: {error}") from None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
            raise TokenUnavailable("No access token: the credentials gave none that can be sent.")
        return token
