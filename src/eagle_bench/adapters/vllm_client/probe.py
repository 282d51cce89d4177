"""What an endpoint takes and sends, found by a request before the cell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from urllib.parse import urlsplit

from eagle_bench.adapters.vllm_client.answer import Answer, read_answer
from eagle_bench.adapters.vllm_client.payload import encode, fields, request_bytes
from eagle_bench.adapters.vllm_client.pool import Pool
from eagle_bench.adapters.vllm_client.target import Target, address
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper, TokenUnavailable
from eagle_bench.errors import InputError
from eagle_bench.results import Capabilities, CellSettings, RequestError
from eagle_bench.workload.prompts import Message

QUESTION = "Name three colours of the rainbow."
TOKENS = 32
PROBE_TIMEOUT_S = 120.0
_TRIES, _PAUSE_S = 3, 0.5
_WORTH_ANOTHER_TRY = {"connection", "overload", "server-error", "quota", "dropped-stream", "empty"}
_CONNECT_S = 15.0  # for one connection with its handshake; who is silent for so long is not asked again


@dataclass(frozen=True)
class Probed:
    """What was found; `error` where the endpoint never answered as it should, and the rest is a guess.

    `text` is the answer's. `silent`: not even a connection was made, and that took its time: each further one would
    take it again.
    """

    target: Target
    capabilities: Capabilities
    text: str = ""
    error: RequestError | None = None
    silent: bool = False

    def require_counting(self, *, tokenizer: bool) -> None:
        """Make sure that the tokens of answers can be counted, by the server or else by us.

        Raises:
            InputError: the server sends no usage, and there is no tokenizer.
        """
        if self.error is None and not self.capabilities.usage_in_stream and not tokenizer:
            raise InputError(
                f"{self.target.base_url} sends no usage with its streams: without a tokenizer nobody counts the tokens.",
                hint="Name that of the model: set `tokenizer:` in the config, or give `bench` its `--tokenizer`.",
            )


async def probe(target: Target, settings: CellSettings, tokens: TokenKeeper, note: Callable[[str], None]) -> Probed:
    """Find out whether usage comes with the stream and what the limit on tokens is called.

    A server that takes everything needs one request. A refusal (400, 404, 422) leads to the next
    spelling; a passing fault is tried again, three times in all. These requests are never measured.
    """
    first: RequestError | None = None
    began_s = time.perf_counter()
    # Vertex AI takes `max_tokens` and refuses `stream_options`; some others only know the newer name.
    for limit, with_options in product(("max_tokens", "max_completion_tokens"), (True, False)):
        found = Capabilities(
            usage_in_stream=False,
            token_limit_field="max_tokens" if limit == "max_tokens" else "max_completion_tokens",
            stream_options=with_options,
        )
        answer = await _patiently(target, settings, found, tokens)
        if answer.status == 404 and urlsplit(target.base_url).path.strip("/") == "":
            deeper = replace(target, base_url=target.base_url.rstrip("/") + "/v1")
            answer = await _patiently(deeper, settings, found, tokens)
            if answer.status != 404:
                note(f"{target.base_url} has no chat endpoint, {deeper.base_url} has: that is measured.")
                target = deeper
        if answer.error is None:
            found = found.model_copy(
                update={"usage_in_stream": answer.output_tokens is not None, "server_model": answer.model}
            )
            return Probed(target, found, text=answer.text)
        first = first or answer.error
        if answer.error.kind != "refused":
            break
    if first is not None and answer.status is None:
        _hint(target, first, note)
    silent = first is not None and first.kind == "connection" and time.perf_counter() - began_s >= _CONNECT_S
    if silent:
        target = replace(target, metrics_url=None)  # nothing will be sent that its counters could tell of
    return Probed(target, Capabilities(usage_in_stream=False), error=first, silent=silent)


def _hint(target: Target, error: RequestError, note: Callable[[str], None]) -> None:
    """A server that speaks TLS may close the connection without a word to a plain request."""
    if target.base_url.startswith("http://") and error.kind == "dropped-stream":
        note(f"{target.base_url} closes the connection instead of answering: if it speaks TLS, https:// is meant.")


async def _patiently(target: Target, settings: CellSettings, found: Capabilities, tokens: TokenKeeper) -> Answer:
    answer, began_s = Answer(), time.perf_counter()
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        answer = await _ask(target, settings, found, tokens)
        if answer.error is None or answer.error.kind not in _WORTH_ANOTHER_TRY:
            break
        if answer.error.kind == "connection" and time.perf_counter() - began_s >= _CONNECT_S:
            break
    return answer


async def _ask(target: Target, settings: CellSettings, found: Capabilities, tokens: TokenKeeper) -> Answer:
    place, messages = address(target.chat_url), (Message(role="user", content=QUESTION),)
    pool = Pool(place, connect_timeout_s=_CONNECT_S)
    try:
        token = await tokens.current()
        body = encode(target.model, messages, fields(settings, found, TOKENS))
        exchange = await pool.send(request_bytes(place, body, token), min(settings.request_timeout_s, PROBE_TIMEOUT_S))
    except TokenUnavailable as error:
        return Answer(error=RequestError(kind="authentication", body=str(error)))
    finally:
        pool.close()
    return read_answer(exchange, token)
