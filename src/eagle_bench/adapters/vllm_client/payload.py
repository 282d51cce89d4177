"""The request: one body for all variants but for the messages, and its head."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from eagle_bench import __version__
from eagle_bench.adapters.vllm_client.target import Address
from eagle_bench.results import Capabilities, CellSettings
from eagle_bench.workload.prompts import Message


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


# One spelling for all: what an endpoint calls the limit, and whether it must be asked for usage, is not what is asked.
_PLAIN = Capabilities(usage_in_stream=False)


def payload_sha256(settings: CellSettings) -> str:
    """Hash of what a body asks for, without model and messages: equal in all variants that were asked the same."""
    return hashlib.sha256(json.dumps(fields(settings, _PLAIN), sort_keys=True).encode()).hexdigest()


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
