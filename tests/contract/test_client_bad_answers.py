"""Servers that send what no server should: each costs what it spoils, and is named."""

from __future__ import annotations

import asyncio
import itertools
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.client_runs import MARK, staged, warm
from eagle_bench.adapters.vllm_client import Target, engine, measure
from eagle_bench.adapters.vllm_client.event_loop import event_loop
from eagle_bench.adapters.vllm_client.exchange import Exchange
from eagle_bench.adapters.vllm_client.pages import served_model
from eagle_bench.adapters.vllm_client.target import address
from eagle_bench.adapters.vllm_client.wire import Connection, Turns
from eagle_bench.errors import InputError
from eagle_bench.results import CellResult, CellSettings

Reply = Callable[[str, bytes], bytes]


@contextmanager
def canned(reply: Reply) -> Iterator[str]:
    """A server whose whole answer to a path and a body is `reply` of them, in one write; gives its base URL."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                length = 0
                while (header := self.rfile.readline().strip()) != b"":
                    if header.lower().startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                self.wfile.write(reply(line.split()[1].decode(), self.rfile.read(length)))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


def whole(body: bytes, status: str = "200 OK", more: str = "Content-Type: text/event-stream\r\n") -> bytes:
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


def stream(*events: str) -> bytes:
    return whole("".join(f"data: {event}\n\n" for event in (*events, "[DONE]")).encode())


def content(text: str) -> str:
    return json.dumps({"choices": [{"delta": {"content": text}}]})


def usage(tokens: str) -> str:
    return f'{{"choices": [], "usage": {{"prompt_tokens": 3, "completion_tokens": {tokens}}}}}'


def test_a_connection_that_was_closed_as_soon_as_it_was_made_fails_its_request_alone():
    """As a balancer without a server behind it does: the end may come between the connection and the request."""

    async def asked() -> Exchange:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(Turns()), *server.sockets[0].getsockname()
            )
            while connection.usable():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # until the loop has heard of it, too
            exchange = Exchange()
            await connection.send(b"GET / HTTP/1.1\r\n\r\n", exchange, 1.0)
            return exchange

    with asyncio.Runner(loop_factory=event_loop()) as runner:
        exchange = runner.run(asked())
    assert (exchange.fault_kind, exchange.sent_s) == ("dropped", None)


def measured(url: str, count: int = 12, concurrency: int = 2, metrics_url: str | None = None) -> CellResult:
    return measure(
        Target(url, metrics_url=metrics_url),
        warm(2),
        staged(count, concurrency),
        variant="v",
        concurrency=concurrency,
        settings=CellSettings(
            max_output_tokens=64,
            requests=count,
            rounds=1,
            warmup_requests=2,
            request_timeout_s=30,
            max_failure_rate=0.9,
        ),
        processes=1,
    )


GOOD = stream(content("yes"), content(" no"), usage("5"))
BAD = {
    1: stream(content("x"), usage("NaN")),
    3: stream(content("x"), usage("Infinity")),
    4: stream(content("x"), usage("1e308")),
    6: stream(content("x"), usage("9" * 400)),
    7: stream(content("x"), "[" * 100_000),
    9: b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
    10: b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n" % (b"9" * 5000),
    11: stream(*[content("x" * 1000)] * 2000),  # much longer than 64 tokens can be
}


def number_of(body: bytes) -> int | None:
    text = json.loads(body)["messages"][-1]["content"] if body else ""
    return int(text.removeprefix(MARK).partition("]")[0]) if text.startswith(MARK) else None


def test_one_bad_answer_costs_one_request() -> None:
    with canned(lambda _, body: BAD.get(number_of(body) or 0, GOOD)) as url:
        result = measured(url)
    assert {int(r.prompt_id[1:]): r.error.kind for r in result.requests if r.error is not None} == dict.fromkeys(
        BAD, "malformed-stream"
    )
    assert result.counts.completed == 12 - len(BAD)
    (longest,) = [r.error.body for r in result.requests if r.error is not None and r.prompt_id.endswith("11")]
    assert longest.startswith("The answer is longer than 1 MiB")
    assert CellResult.model_validate_json(result.model_dump_json()) == result


def test_half_of_a_surrogate_pair_in_an_answer_can_be_stored() -> None:
    with canned(lambda *_: stream(content("a \ud800"), usage("2"))) as url:
        result = measured(url, 2)
    assert {record.text for record in result.requests} == {"a \N{REPLACEMENT CHARACTER}"}
    assert CellResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_answer_that_the_server_broke_off_has_failed(reason: str) -> None:
    end = json.dumps({"choices": [{"delta": {}, "finish_reason": reason}]})
    broken = stream(content("yes"), content(" no"), end, usage("2"))
    with canned(lambda _, body: broken if number_of(body) == 3 else GOOD) as url:
        result = measured(url, 6)
    (error,) = [record.error for record in result.requests if record.error]
    assert (error.kind, error.status) == ("server-error", 200)
    assert f"finish_reason {reason}" in error.body
    assert result.counts.completed == 5


def test_an_answer_in_one_piece_has_no_tpot_and_that_is_said() -> None:
    with canned(lambda *_: GOOD) as url:
        result = measured(url, 4)
    assert result.metrics is not None
    assert result.metrics.tpot_ms is None
    assert "one_piece: 4 of 4 answers came in one piece: they have no TPOT" in result.warnings


def test_counters_that_overflow_cost_the_acceptance_alone() -> None:
    drafts, name = "vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_accepted_tokens_total"
    page = f"{drafts} %d\nvllm:spec_decode_num_draft_tokens_total 9\n{name}{{e='0'}} 1e308\n{name}{{e='1'}} 1.7e308\n"
    read = itertools.count(1)

    def reply(path: str, _: bytes) -> bytes:
        return whole((page % next(read)).encode(), more="") if path.endswith("/metrics") else GOOD

    with canned(reply) as url:
        result = measured(url, 4, metrics_url=url.removesuffix("/v1") + "/metrics")
    assert result.counts.completed == 4
    assert result.acceptance is not None
    assert result.acceptance.source == "chunks"
    assert any(text.startswith(f"metrics_values: {name} ") for text in result.warnings)


def test_a_redirect_is_not_followed_but_named() -> None:
    reply = whole(b"", "307 Temporary Redirect", "Location: https://there/v1/chat/completions\r\n")
    with canned(lambda *_: reply) as url:
        result = measured(url, 4)
    assert result.failure is not None
    assert "Use https://there/v1 as the URL" in result.failure.message


@pytest.mark.parametrize(
    "page",
    [
        '{"data": [{"id": "m\\ud800"}]}',
        '{"data": [{"id": 3}]}',
        '{"data": []}',
        "[" * 100_000,
        '{"data": NaN}',
    ],
)
def test_a_list_of_models_without_a_name_that_can_be_sent_names_none(page: str) -> None:
    with canned(lambda *_: whole(page.encode(), more="")) as url:
        assert asyncio.run(served_model(url, None)) is None


def test_vllms_session_is_closed_when_a_run_breaks() -> None:
    seen: list[Any] = []

    async def broken(request: object, session: Any, pbar: object = None) -> object:
        seen.append(session)
        raise RuntimeError("broken")

    engine.load()
    sample = engine.Sample([{"role": "user", "content": "?"}], 1, 1)
    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(engine.run(broken, [sample], url="http://127.0.0.1:1/v1/chat/completions", concurrency=1))
    assert [session.closed for session in seen] == [True]


def test_a_host_and_a_path_beyond_ascii_are_encoded() -> None:
    place = address("http://bücher.invalid/v1/ü?q=ß")
    assert (place.host, place.path) == ("xn--bcher-kva.invalid", "/v1/%C3%BC?q=%C3%9F")


@given(st.sampled_from(["http://", "https://", "http://[", "http://h:", "http://h/", ""]), st.text(max_size=80))
@example("http://", "\u00a8")
@example("http://", "[::1%\u00a8]")
@settings(max_examples=500)
def test_a_url_can_be_sent_or_is_refused(start: str, rest: str) -> None:
    try:
        place = address(start + rest)
    except InputError:
        return
    line = f"{place.path} {place.host_header}"
    assert line.isascii()
    assert line.isprintable()
    assert line.count(" ") == 1
    assert 1 <= place.port <= 65535


def counted(completion: int, **more: object) -> str:
    return json.dumps({"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": completion, **more}})


def warned(result: CellResult) -> set[str]:
    return {text.partition(":")[0] for text in result.warnings} - {"one_piece", "client_saturated"}


@pytest.mark.parametrize(("tokens", "believed"), [(64, True), (66, True), (100_000, False)])
def test_a_count_beyond_what_was_allowed_is_not_believed(tokens: int, believed: bool) -> None:
    with canned(lambda *_: stream(content("yes"), content(" no"), counted(tokens))) as url:
        result = measured(url, 4)
    assert {record.output_tokens for record in result.requests} == {tokens if believed else None}
    assert result.token_source == ("usage" if believed else None)
    assert warned(result) == (set() if believed else {"usage_refused"})


@pytest.mark.parametrize(
    ("pieces", "tokens", "hidden"),
    [
        ([content("yes"), content(" no")], 12, 40),
        ([json.dumps({"choices": [{"delta": {"reasoning": "hm"}}]}), content("yes")], 52, None),
        ([content("x")] * 30, 52, None),  # the reasoning came as content: for 30 chunks 12 tokens are too few
    ],
)
def test_reasoning_that_was_not_streamed_is_in_no_count(pieces: list[str], tokens: int, hidden: int | None) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 40}}
    with canned(lambda *_: stream(*pieces, counted(52, **details))) as url:
        result = measured(url, 4)
    assert {(record.output_tokens, record.hidden_tokens) for record in result.requests} == {(tokens, hidden)}
    assert warned(result) == ({"hidden_tokens"} if hidden else set())


@pytest.mark.parametrize(
    ("details", "share"),
    [({"cached_tokens": 499}, 0.998), ({"cached_tokens": 160}, 0.32), ({"cached_tokens": 0}, 0.0), (None, None)],
)
def test_prompts_from_the_prefix_cache_are_named(details: dict[str, int] | None, share: float | None) -> None:
    with canned(lambda *_: stream(content("yes"), content(" no"), counted(5, prompt_tokens_details=details))) as url:
        result = measured(url, 4)
    assert result.metrics is not None
    assert result.metrics.cached_prompt_share == share
    assert warned(result) == ({"cached_prompts"} if share and share > 0.5 else set())
