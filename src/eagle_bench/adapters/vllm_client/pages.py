"""Small pages of a server: the list of its models, its metrics."""

from __future__ import annotations

import json

from eagle_bench.adapters.vllm_client import http1
from eagle_bench.adapters.vllm_client.payload import get_bytes
from eagle_bench.adapters.vllm_client.pool import Pool
from eagle_bench.adapters.vllm_client.target import address
from eagle_bench.workload.conversations import is_text

_TIMEOUT_S, _CONNECT_S = 10.0, 5.0
_PATIENCE_S = 15.0  # for the one connection that tells whether a server is there


async def unreachable(url: str) -> str | None:
    """Why no connection can be made to the server of a URL; None where one can."""
    pool = Pool(address(url), connect_timeout_s=_PATIENCE_S)
    try:
        return await pool.unreachable()
    finally:
        pool.close()


async def fetch(url: str, token: str | None) -> str | None:
    """The text at a URL; None for whatever is not a whole 200."""
    place = address(url)
    pool = Pool(place, connect_timeout_s=_CONNECT_S)
    try:
        exchange = await pool.send(get_bytes(place, token), _TIMEOUT_S)
    finally:
        pool.close()
    head = exchange.head
    if exchange.fault is not None or head is None or head.status != 200:
        return None
    try:
        body = http1.body(head, exchange.data, closed=exchange.closed)
    except http1.ProtocolError:
        return None
    return body.data.decode("utf-8", "replace") if body.complete else None


async def served_model(base_url: str, token: str | None) -> str | None:
    """The first model that `{base_url}/models` names; None where the server has no such list."""
    text = await fetch(base_url.rstrip("/") + "/models", token)
    try:
        name = json.loads(text or "")["data"][0]["id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    # Half of a surrogate pair can't be sent: such a name is none.
    return name if isinstance(name, str) and is_text(name) else None
