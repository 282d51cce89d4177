"""What a recorded exchange says: the content, when it came, the server's own counts, or the error.

Runs after the clock: on raw bytes and the times at which they were read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from eagle_bench.adapters.vllm_client import http1
from eagle_bench.adapters.vllm_client.exchange import Exchange
from eagle_bench.adapters.vllm_client.failures import event_error, malformed, refusal
from eagle_bench.adapters.vllm_client.server_sent import event_of, events, is_stream
from eagle_bench.results import ErrorKind, RequestError
from eagle_bench.secrecy import LEAST_SECRET, hide
from eagle_bench.workload.conversations import sendable

_KEPT = 2000  # characters of an error body
_MOST_TOKENS = 10**9  # of one answer; a larger count is none
_LONGEST_LIST = 1000  # draft positions
_BROKEN_OFF = {"abort", "error", "cancelled"}  # a `finish_reason` of an answer that its server gave up
_FAULTS: dict[str, ErrorKind] = {
    "timeout": "timeout",
    "dropped": "dropped-stream",
    "connection": "connection",
    "protocol": "malformed-stream",
}


@dataclass
class Answer:
    """One answer. Times are `time.perf_counter()` seconds.

    Attributes:
        content_s: when each chunk with content was read.
        first_text: the content of the first such chunk.
        first_chunk_tokens: the server's count up to the first such chunk, where it sends one with each.
        output_tokens: without `hidden_tokens`, which the server made and did not stream.
        cached_tokens: of the prompt's, those that the server had from an earlier one.
        finish: the server's reason for the end.
        speculation: the response's own numbers about speculative decoding, single or in lists.
    """

    status: int | None = None
    content_s: list[float] = field(default_factory=list)
    text: str = ""
    first_text: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    first_chunk_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    reasoned: bool = False  # in the stream
    hidden_tokens: int | None = None
    speculation: dict[str, Any] | None = None
    model: str | None = None
    finish: str | None = None
    ended: bool = False
    error: RequestError | None = None


def read_answer(exchange: Exchange, token: str | None = None) -> Answer:
    """Work out what an exchange says. Never raises: what can't be read is the answer's error.

    Args:
        token: that went with the request; a server that repeats it must not bring it into what is kept.
    """
    answer = Answer()
    try:
        head = exchange.head or http1.read_head(exchange.data)
        if head is not None:
            answer.status = head.status
            body = http1.body(head, exchange.data, closed=exchange.closed)
            if head.status != 200:
                answer.error = refusal(head, body.data)
            elif (coding := head.headers.get("content-encoding", "identity").lower()) != "identity":
                what = f"The answer is compressed ({coding}), and was asked for as it is (Accept-Encoding: identity)"
                answer.error = malformed(what, b"no piece of it has a time of its own")
            elif not is_stream(head, body.data):
                kind = head.headers.get("content-type", "none")
                answer.error = malformed(f"Not a stream of events (content type {kind})", body.data)
            else:
                _read_events(body, exchange, answer)
                if answer.error is None and exchange.fault is None:
                    answer.error = _verdict(answer, complete=body.complete)
    except http1.ProtocolError as error:
        answer.error = RequestError(kind="malformed-stream", status=answer.status, body=f"{error}.")
    except Exception as error:  # the last border: one answer, whatever it holds, must not cost the others of its cell
        answer.error = RequestError(
            kind="malformed-stream",
            status=answer.status,
            body=f"An answer that can't be read: {type(error).__name__}: {error}",
        )
    if exchange.fault is not None and (answer.error is None or answer.status == 200):
        kind = _FAULTS.get(exchange.fault_kind or "", "other")
        answer.error = RequestError(kind=kind, status=answer.status, body=exchange.fault)
    _keep(answer, token)
    return answer


def _keep(answer: Answer, token: str | None) -> None:
    """Rid an answer of the token, cut the error, and replace what can't be stored."""
    if answer.error is not None:
        body = hide(sendable(answer.error.body), token)
        answer.error = answer.error.model_copy(update={"body": body[:_KEPT]})
    if answer.model is not None:
        answer.model = hide(answer.model, token)
    if token is not None and len(token) >= LEAST_SECRET:
        answer.text, answer.first_text = hide(answer.text, token), hide(answer.first_text, token)


def _verdict(answer: Answer, *, complete: bool) -> RequestError | None:
    if answer.finish in _BROKEN_OFF:
        said = f"The server broke the answer off (finish_reason {answer.finish})."
        return RequestError(kind="server-error", status=200, body=said)
    if not complete or (answer.content_s and not answer.ended):
        return RequestError(kind="dropped-stream", status=200, body="The stream ended before the answer was complete.")
    if not answer.content_s:
        return RequestError(kind="empty", status=200, body="The server answered 200 without any content.")
    return None


def _read_events(body: http1.Body, exchange: Exchange, answer: Answer) -> None:
    texts: list[str] = []
    for payload, last in events(body.data):
        if payload.strip() == b"[DONE]":
            answer.ended = True
            continue
        event = event_of(payload)
        if not isinstance(event, dict):
            if exchange.fault is None and body.complete:
                answer.error = malformed("An event that is not a JSON object", payload)
            break
        # Servers write it as {"error": …}, or the object itself; the `[DONE]` that may follow ends no answer.
        if error := event.get("error") or (event if event.get("object") == "error" else None):
            answer.error = event_error(error)
            break
        content = _take(event, answer)
        if content:
            answer.content_s.append(exchange.arrival_s(body.raw_offset(last)))
            if not texts:
                answer.first_text = content
                answer.first_chunk_tokens = answer.output_tokens
            texts.append(content)
    _leave_out_hidden(answer)
    answer.text = sendable("".join(texts))  # joined first: the halves of a pair may come in two chunks
    answer.first_text = sendable(answer.first_text)


def _leave_out_hidden(answer: Answer) -> None:
    """Take reasoning that was counted and not streamed out of the count: no time between its tokens was seen.

    Reasoning may also come as plain content; then there are more chunks than tokens would be left for them.
    """
    reasoning, tokens = answer.reasoning_tokens, answer.output_tokens
    if reasoning and tokens and not answer.reasoned and 0 < len(answer.content_s) <= tokens - reasoning:
        answer.hidden_tokens, answer.output_tokens = reasoning, tokens - reasoning
        answer.first_chunk_tokens = None  # counted with them, where it is known at all


def _numbers(found: dict[str, Any]) -> dict[str, Any]:
    """What of an object is a number, or a short list of numbers, that can be counted with."""

    def counts(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS

    return {
        name: value
        for name, value in found.items()
        if counts(value) or (isinstance(value, list) and len(value) <= _LONGEST_LIST and all(map(counts, value)))
    }


def _take(event: dict[str, Any], answer: Answer) -> str:
    """Note what an event carries besides content; give its content, "" for a role or an empty delta."""
    usage = event.get("usage")
    if isinstance(usage, dict):
        answer.prompt_tokens = _count(usage.get("prompt_tokens")) or answer.prompt_tokens
        answer.output_tokens = _count(usage.get("completion_tokens")) or answer.output_tokens
        cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
        answer.cached_tokens = answer.cached_tokens if cached is None else cached
        answer.reasoning_tokens = (
            _detail(usage, "completion_tokens_details", "reasoning_tokens") or answer.reasoning_tokens
        )
    for key in ("speculative_decoding", "spec_decode", "meta_info", "sglext", "metrics"):
        if isinstance(event.get(key), dict):
            answer.speculation = {**(answer.speculation or {}), **_numbers(event[key])}
    if isinstance(event.get("model"), str):
        answer.model = sendable(event["model"])
    choices = event.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return ""
    choice = choices[0]
    finish = choice.get("finish_reason")
    answer.ended = answer.ended or bool(finish)
    answer.finish = finish if isinstance(finish, str) else answer.finish
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    # The two names of reasoning may come side by side, with the same text.
    parts = [delta.get("reasoning") or delta.get("reasoning_content"), delta.get("content")]
    answer.reasoned = answer.reasoned or bool(parts[0])
    text = "".join(part for part in parts if isinstance(part, str))
    calls = delta.get("tool_calls")
    return text or (json.dumps(calls) if calls else "")


def _detail(usage: dict[str, Any], name: str, key: str) -> int | None:
    """A count among the details of a usage, 0 included; None where it is not told."""
    details = usage.get(name)
    value = details.get(key) if isinstance(details, dict) else None
    return 0 if value == 0 and not isinstance(value, bool) else _count(value)


def _count(value: Any) -> int | None:
    """A positive whole number, 4.0 taken as 4.

    Raises:
        http1.ProtocolError: more than any answer has: what the server counts is not tokens.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return None
    if value > _MOST_TOKENS:
        raise http1.ProtocolError("the usage says more than a billion tokens")
    if value != int(value):
        return None
    return int(value)
