"""Traffic to endpoints, with Vertex AI's manners: tokens, refused fields, time-outs; passed on chunk by chunk.

Plain ASGI: a stream goes from engine to client with nothing in between that could wait or gather.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from eagle_bench.local_vertex.faults import Fault, Faults
from eagle_bench.local_vertex.machines import Machine
from eagle_bench.local_vertex.refusals import Refusal, not_found
from eagle_bench.local_vertex.resources import Endpoint, RunningEngine
from eagle_bench.local_vertex.tokens import Tokens

REFUSED_FIELDS = ("stream_options", "max_completion_tokens")
NOT_PASSED_ON = frozenset(
    {"host", "authorization", "content-length", "connection", "transfer-encoding", "accept-encoding"}
)
NOT_PASSED_BACK = frozenset({b"connection", b"transfer-encoding", b"keep-alive", b"server", b"date"})
CHAT = "/v1/chat/completions"


class Gateway:
    """An ASGI application for the traffic of all endpoints."""

    def __init__(self, endpoints: dict[str, Endpoint], machine: Machine, tokens: Tokens, faults: Faults) -> None:
        self._endpoints, self._machine, self._tokens, self._faults = endpoints, machine, tokens, faults
        # Engines close idle connections after 5 s (uvicorn's default): give them up well before, or a request meets it.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2.0)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=5.0), limits=limits, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; after a stream has begun, all that can be done about a fault is to drop it."""
        answer = _Answer(send)
        try:
            request = await self._admit(scope, receive)
            await self._unless_gone(self._pass_on(request, answer), receive)
        except Refusal as refusal:
            await answer.refuse(refusal, scope, receive)
        except TimeoutError:
            await answer.refuse(Refusal(504, "The request timed out at the endpoint."), scope, receive)
        except httpx.TransportError as error:
            await answer.refuse(
                Refusal(503, f"The model server can't be reached: {type(error).__name__}."), scope, receive
            )

    async def _admit(self, scope: Scope, receive: Receive) -> _Request:
        headers = Headers(scope=scope)
        name = "projects/{project}/locations/{location}/endpoints/{endpoint}".format(**scope["path_params"])
        if self._faults.strike("token-revoked", name):
            self._tokens.revoke_all()
        self._tokens.check(headers.get("authorization"), assertions=False)
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise not_found(name)
        route = scope["path_params"].get("route")
        if route is not None and not endpoint.invoke_route:
            raise Refusal(400, "The deployed model has no invoke route prefix.", status="FAILED_PRECONDITION")
        body = await _body(receive)
        if fault := self._faults.strike("traffic-status", name):
            raise Refusal(fault.status, fault.message)
        engine = endpoint.engine
        if engine is None or endpoint.deployed is None or engine.process.exit_status is not None:
            raise Refusal(503, "The endpoint has no model server that is ready.")
        path = CHAT if route is None else f"/{route}"
        if scope["method"] == "POST" and path == CHAT:
            body = _checked(body, engine.served_model)
        passed_on = [(key, value) for key, value in headers.items() if key not in NOT_PASSED_ON]
        cut = self._faults.strike("traffic-cut", name)
        return _Request(endpoint, engine, scope["method"], path, headers=passed_on, body=body, cut=cut)

    async def _unless_gone(self, work: Coroutine[Any, Any, None], receive: Receive) -> None:
        """Do the work, or give it up when the client goes away: an engine does not compute for nobody."""
        working, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for task in (working, gone):
                task.cancel()
            await asyncio.gather(working, gone, return_exceptions=True)

    async def _pass_on(self, request: _Request, answer: _Answer) -> None:
        async with self._machine.turn_of(request.endpoint.name):  # the time-out is the endpoint's: it begins after
            async with asyncio.timeout(request.endpoint.inference_timeout_s):
                await self._stream(request, answer)

    async def _stream(self, request: _Request, answer: _Answer) -> None:
        url = request.engine.address + request.path
        async with self._client.stream(
            request.method, url, content=request.body, headers=[*request.headers, ("accept-encoding", "identity")]
        ) as response:
            await answer.start(response.status_code, response.headers.raw)
            chunks = 0
            async for chunk in response.aiter_raw():
                if request.cut and chunks >= request.cut.chunks:
                    return
                chunks += 1
                await answer.more(chunk)
            await answer.end()


@dataclass(frozen=True)
class _Request:
    """What is passed on, and to whom."""

    endpoint: Endpoint
    engine: RunningEngine
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    cut: Fault | None


class _Answer:
    """The client's side. An answer that is never ended is one that the server below drops the connection of."""

    def __init__(self, send: Send) -> None:
        self._send, self._started = send, False

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._started = True
        kept = [(key.lower(), value) for key, value in headers if key.lower() not in NOT_PASSED_BACK]
        await self._send({"type": "http.response.start", "status": status, "headers": kept})

    async def more(self, chunk: bytes) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, refusal: Refusal, scope: Scope, receive: Receive) -> None:
        if not self._started:
            await JSONResponse(refusal.body(), status_code=refusal.code)(scope, receive, self._send)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(499, "The client went away.")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _checked(body: bytes, served_model: str) -> bytes:
    """A chat request as the engine takes it; refuses the fields that Vertex AI refuses."""
    request: Any = None
    with contextlib.suppress(ValueError):
        request = json.loads(body)
    if not isinstance(request, dict):
        raise Refusal(400, "Invalid JSON payload received.")
    for refused in REFUSED_FIELDS:
        if refused in request:
            raise Refusal(400, f'Invalid JSON payload received. Unknown name "{refused}": Cannot find field.')
    if not request.get("model"):
        request["model"] = served_model
    return json.dumps(request).encode()
