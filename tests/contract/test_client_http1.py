"""HTTP/1.1 and event streams, however the bytes are cut. Laws, with encoders of the test's own."""

from __future__ import annotations

import gzip
import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench.adapters.vllm_client import http1
from eagle_bench.adapters.vllm_client.answer import read_answer
from eagle_bench.adapters.vllm_client.exchange import Exchange
from eagle_bench.adapters.vllm_client.failures import error_kind

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(pieces: list[bytes]) -> bytes:
    return b"".join(b"%X;x=1\r\n%s\r\n" % (len(p), p) for p in pieces if p) + b"0\r\nTrailer: 1\r\n\r\n"


def received(data: bytes, cuts: list[int] | None = None) -> Exchange:
    """An exchange whose byte i was read at second (number of cuts up to i)."""
    exchange = Exchange()
    edges = sorted({0, len(data), *(c % (len(data) + 1) for c in cuts or [])})
    for number, (begin, end) in enumerate(itertools.pairwise(edges)):
        exchange.data += data[begin:end]
        exchange.ends.append(end)
        exchange.stamps.append(float(number))
    exchange.sent_s, exchange.ended_s = 0.0, time.perf_counter()
    return exchange


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_a_chunked_body_is_what_was_put_in(pieces: list[bytes]) -> None:
    data = bytearray(HEAD + chunked(pieces))
    head = http1.read_head(data)
    assert head is not None
    body = http1.body(head, data, closed=False)
    assert body.data == b"".join(pieces)
    assert body.complete
    assert http1.chunked_end(data)
    for offset, byte in enumerate(body.data):
        assert data[body.raw_offset(offset)] == byte


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5), st.data())
def test_a_body_that_was_cut_is_never_complete(pieces: list[bytes], data: st.DataObject) -> None:
    whole = HEAD + chunked(pieces)
    short = bytearray(whole[: data.draw(st.integers(0, len(whole) - 1))])
    head = http1.read_head(short)
    if head is not None:
        body = http1.body(head, short, closed=False)
        assert not body.complete
        assert b"".join(pieces).startswith(body.data)


EVENTS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6)


@given(EVENTS, st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from([b"\n", b"\r\n"]), st.integers(1, 50))
def test_content_is_stamped_when_its_last_byte_was_read(
    texts: list[str], cuts: list[int], newline: bytes, size: int
) -> None:
    stream = b""
    lasts = []
    for text in texts:
        line = b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode()
        lasts.append(len(stream) + len(line) - 1)
        stream += line + newline + newline
    stream += b": a comment" + newline + newline + b"data: [DONE]" + newline + newline
    pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
    raw, places = bytearray(HEAD), []
    for piece in pieces:
        raw += b"%x\r\n" % len(piece)
        places += range(len(raw), len(raw) + len(piece))
        raw += piece + b"\r\n"
    raw += b"0\r\n\r\n"
    exchange = received(bytes(raw), cuts)
    answer = read_answer(exchange)
    assert answer.error is None
    assert answer.text == "".join(texts)
    ends = list(exchange.ends)
    assert answer.content_s == [float(next(n for n, e in enumerate(ends) if places[last] < e)) for last in lasts]


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4, 5\r\n\r\n",
        HEAD + b"zz\r\nab\r\n0\r\n\r\n",
        HEAD + b"2\r\nabcd\r\n0\r\n\r\n",
    ],
)
def test_what_is_not_http_is_malformed(garbage: bytes) -> None:
    answer = read_answer(received(garbage))
    assert answer.error is not None
    assert answer.error.kind == "malformed-stream"


def test_interim_responses_are_passed_over() -> None:
    head = http1.read_head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
    assert head is not None
    assert head.status == 204
    assert head.length == 0


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "refused"),
        (401, "authentication"),
        (403, "authentication"),
        (404, "refused"),
        (408, "timeout"),
        (429, "quota"),
        (500, "server-error"),
        (502, "server-error"),
        (503, "overload"),
        (504, "timeout"),
    ],
)
def test_statuses_have_kinds(status: int, kind: str) -> None:
    assert error_kind(status) == kind


def event(**delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    "first",
    [
        event(role="assistant"),
        event(role="assistant", content=""),
        event(content=""),
        event(content=None),
        b": ping\n\n",
        b'data: {"choices": []}\n\n',
        b'data: {"choices": [{"delta": null}]}\n\n',
        b'data: {"id": "x"}\n\n',
    ],
)
def test_a_chunk_without_content_does_not_set_the_first_token(first: bytes) -> None:
    rest = event(content="x") + b"data: [DONE]\n\n"
    begin = HEAD + b"%x\r\n%s\r\n" % (len(first), first)
    data = begin + b"%x\r\n%s\r\n0\r\n\r\n" % (len(rest), rest)
    answer = read_answer(received(data, [len(begin)]))
    assert answer.error is None
    assert answer.content_s == [1.0]


def test_reasoning_and_tool_calls_are_content() -> None:
    body = event(reasoning_content="hm") + event(tool_calls=[{"function": {"name": "f"}}]) + b"data: [DONE]\n\n"
    answer = read_answer(received(HEAD + chunked([body])))
    assert len(answer.content_s) == 2


def test_reasoning_under_both_of_its_names_is_counted_once() -> None:
    body = event(reasoning="hm ", reasoning_content="hm ") + event(content="yes") + b"data: [DONE]\n\n"
    answer = read_answer(received(HEAD + chunked([body])))
    assert (answer.text, answer.reasoned) == ("hm yes", True)


def test_a_byte_order_mark_costs_no_token() -> None:
    begin = HEAD + b"%x\r\n\xef\xbb\xbf%s\r\n" % (3 + len(event(content="a")), event(content="a"))
    rest = event(content="b") + b"data: [DONE]\n\n"
    answer = read_answer(received(begin + b"%x\r\n%s\r\n0\r\n\r\n" % (len(rest), rest), [len(begin)]))
    assert (answer.text, answer.content_s) == ("ab", [0.0, 1.0])


@pytest.mark.parametrize(
    "fault",
    [
        {"object": "error", "message": "out of memory", "code": 500},
        {"error": {"message": "out of memory", "code": 500}},
        {"error": "out of memory"},
    ],
)
def test_an_error_within_a_stream_is_no_answer_though_done_follows(fault: dict[str, object]) -> None:
    body = event(content="a") + b"data: " + json.dumps(fault).encode() + b"\n\ndata: [DONE]\n\n"
    answer = read_answer(received(HEAD + chunked([body])))
    assert answer.error is not None
    assert answer.error.kind == "server-error"
    assert "out of memory" in answer.error.body


@pytest.mark.parametrize("last", [b"0\r\n\r\n", b"0;last\r\n\r\n", b'00 ;a="b"\r\nX-Count: 1\r\n\r\n'])
def test_the_last_chunk_may_have_an_extension(last: bytes) -> None:
    data = bytearray(HEAD + b"4\r\nabcd\r\n" + last)
    head = http1.read_head(data)
    assert head is not None
    assert http1.chunked_end(data)
    assert http1.body(head, data, closed=False).complete


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
    ],
)
def test_a_connection_is_kept_as_its_version_says(version: bytes, connection: bytes, kept: bool) -> None:
    head = http1.read_head(b"HTTP/" + version + b" 200 OK\r\nContent-Length: 0\r\n" + connection + b"\r\n")
    assert head is not None
    assert head.keep_alive is kept


@pytest.mark.parametrize("status", [b"204 No Content", b"301 Moved", b"500 Oh"])
def test_a_refusal_without_words_says_that_it_has_none(status: bytes) -> None:
    answer = read_answer(received(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"))
    assert answer.error is not None
    assert answer.error.body == "The server gave no reason."


def test_a_compressed_answer_is_called_so() -> None:
    body = gzip.compress(event(content="a"))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
    answer = read_answer(received(head + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    assert answer.error is not None
    assert answer.error.kind == "malformed-stream"
    assert "compressed (gzip)" in answer.error.body


KEYS = ["choices", "delta", "content", "usage", "completion_tokens", "prompt_tokens", "error", "code", "model"]
KEYS += ["metrics", "acceptance_histogram", "num_spec_steps", "tool_calls", "finish_reason", "reasoning"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers(-(10**400), 10**400)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
HEADERS = st.sampled_from(
    [b"", b"Content-Type: text/event-stream\r\n", b"Content-Length: \xb2\r\n", b"Content-Length: 7\r\n"]
)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Responses that are nearly right: a head, events of any JSON, with any bytes between them."""
    events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in draw(st.lists(JSON, max_size=4)))
    body = events + draw(st.sampled_from([b"", b"data: [DONE]\n\n"])) + draw(st.binary(max_size=20))
    if draw(st.booleans()):
        return HEAD + chunked([body])
    status = draw(st.sampled_from([b"200", b"302", b"404", b"999", b"20\xb2"]))
    return b"HTTP/1.1 %s X\r\n%s\r\n" % (status, draw(HEADERS)) + body


@given(st.one_of(st.binary(max_size=300), responses()), st.lists(st.integers(0, 10_000), max_size=4))
def test_reading_an_answer_never_raises_whatever_came(data: bytes, cuts: list[int]) -> None:
    answer = read_answer(received(data, cuts))
    answer.text.encode()
    if answer.error is not None:
        answer.error.model_dump_json()
    assert answer.output_tokens is None or 0 < answer.output_tokens <= 10**9


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"usage": {"completion_tokens": NaN}}', id="NaN"),
        pytest.param(b'{"usage": {"completion_tokens": Infinity}}', id="Infinity"),
        pytest.param(b'{"usage": {"completion_tokens": 1e308}}', id="1e308"),
        pytest.param(b'{"usage": {"completion_tokens": %s}}' % (b"9" * 400), id="400 digits"),
        pytest.param(b'{"usage": {"completion_tokens": %s}}' % (b"9" * 5000), id="5000 digits"),
    ],
)
def test_an_event_that_no_answer_has_is_malformed(data: bytes) -> None:
    body = event(content="x") + b"data: " + data + b"\n\ndata: [DONE]\n\n"
    answer = read_answer(received(HEAD + chunked([body])))
    assert answer.error is not None
    assert answer.error.kind == "malformed-stream"


@pytest.mark.parametrize("length", ["²".encode("latin-1"), b"9" * 5000, b"+4", b"1_0"])
def test_a_length_that_is_none_is_malformed(length: bytes) -> None:
    answer = read_answer(received(b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\nabc" % length))
    assert answer.error is not None
    assert answer.error.kind == "malformed-stream"


def test_half_of_a_surrogate_pair_is_replaced_and_two_halves_are_joined() -> None:
    body = event(content="a \ud83d") + event(content="\ude00 b \ud800") + b"data: [DONE]\n\n"
    answer = read_answer(received(HEAD + chunked([body])))
    assert answer.error is None
    assert answer.text == "a \N{GRINNING FACE} b \N{REPLACEMENT CHARACTER}"
    assert answer.first_text == "a \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_says_where_to(status: int) -> None:
    head = b"HTTP/1.1 %d X\r\nLocation: https://there/v1/chat/completions\r\nContent-Length: 0\r\n\r\n" % status
    answer = read_answer(received(head))
    assert answer.error is not None
    assert "redirects to https://there/v1/chat/completions" in answer.error.body
    assert "Use https://there/v1 as the URL" in answer.error.body


def test_a_tls_alert_to_a_plain_request_is_named() -> None:
    answer = read_answer(received(b"\x15\x03\x03\x00\x02\x02\x46"))
    assert answer.error is not None
    assert "https://" in answer.error.body
