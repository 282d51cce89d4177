"""Times against the truth server's own record, and against bare sockets on the same server in the same test.

One clock serves all processes of a machine, so what must hold is causal and exact: nothing is read
before it was sent, nothing arrives before it was written. How close the client comes is held against
the floor client, not against a number of milliseconds: machines differ, and so does their load.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import statistics
import time

import pytest

from contract.client_runs import MARK, cell
from eagle_bench.adapters.vllm_client import rounds
from eagle_bench.adapters.vllm_client.answer import Answer, read_answer
from eagle_bench.adapters.vllm_client.exchange import LONGEST_BYTES, Exchange
from eagle_bench.adapters.vllm_client.pool import Pool
from eagle_bench.adapters.vllm_client.wire import Turns
from eagle_bench.metrics import tpot_ms
from eagle_bench.results import CellResult
from truth_server import floor, oracle
from truth_server.process import TruthServer

MODES = [(), ("role-first",), ("usage-with-content", "split"), ("slow:50", "role-first")]


def paired(found: CellResult, journal: list[oracle.Entry]):
    entries = {entry["content"]: entry for entry in journal}
    for record in found.requests:
        yield record, entries[f"{MARK} {record.prompt_id[1:]}] why?"]


@pytest.mark.parametrize("modes", MODES, ids="+".join)
@pytest.mark.parametrize("k", [1, 3])
def test_no_time_is_shorter_than_the_truth(modes: tuple[str, ...], k: int) -> None:
    with TruthServer(*modes, only=MARK, tokens=30, tokens_per_chunk=k, first_ms=30, token_ms=2) as server:
        found = cell(server, concurrency=4, count=16)
        journal = server.journal(MARK)
    assert found.counts.failed == 0
    for record, entry in paired(found, journal):
        assert record.ttft_ms is not None
        assert record.e2e_ms is not None
        assert record.ttft_ms >= oracle.ttft_ms(entry)
        assert record.e2e_ms >= oracle.e2e_ms(entry)
        assert record.e2e_ms >= record.ttft_ms


@pytest.mark.parametrize(("k", "concurrency"), [(1, 1), (3, 1), (1, 8), (3, 8)])
def test_medians_are_as_close_to_the_truth_as_bare_sockets_come(k: int, concurrency: int) -> None:
    count = max(12, 4 * concurrency)
    contents = [f"floor {i}" for i in range(count)]
    with TruthServer("role-first", tokens=30, tokens_per_chunk=k, first_ms=40, token_ms=4) as server:
        before = floor.run(server.root, contents, concurrency)
        found = cell(server, concurrency=concurrency, count=count)
        after = floor.run(server.root, contents, concurrency)
        journal = server.journal()
    measured = [entry for entry in journal if entry["content"].startswith(MARK)]
    bare = [entry for entry in journal if entry["content"].startswith("floor")]
    assert found.metrics is not None
    assert found.metrics.tpot_ms is not None
    floor_ttft = statistics.median(r.ttft_ms for r in before + after) - oracle.median(oracle.ttft_ms, bare)
    our_ttft = found.metrics.ttft_ms.p50 - oracle.median(oracle.ttft_ms, measured)
    # Twice the floor and a tenth of the true time: what a client does that stamps after parsing is far beyond.
    assert our_ttft <= 2 * floor_ttft + 0.1 * oracle.median(oracle.ttft_ms, measured)
    truth = oracle.median(oracle.tpot_ms, measured)
    assert found.metrics.tpot_ms.p50 == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("k", [1, 3])
def test_no_answer_is_read_while_others_come(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def read(exchange: Exchange, token: str | None) -> Answer:
        order.append("read")
        return read_answer(exchange, token)

    async def send(pool: Pool, request: bytes, timeout_s: float, longest_bytes: int = LONGEST_BYTES) -> Exchange:
        exchange = await send_as_it_is(pool, request, timeout_s, longest_bytes)
        order.append("came")
        return exchange

    send_as_it_is = Pool.send
    monkeypatch.setattr(rounds, "read_answer", read)
    monkeypatch.setattr(Pool, "send", send)
    with TruthServer("role-first", tokens=48, tokens_per_chunk=k, first_ms=5, token_ms=0.2) as server:
        found = cell(server, concurrency=4, count=16, processes=1)
    assert found.counts.completed == 16
    assert order[-32:] == ["came"] * 16 + ["read"] * 16


def test_what_has_come_is_read_between_one_request_and_the_next() -> None:
    order: list[str] = []
    ours, servers = socket.socketpair()

    async def go_on(name: str, done: asyncio.Future[None]) -> None:
        await done
        order.append(name)
        servers.send(b"token")

    async def ended_together() -> None:
        loop, turns = asyncio.get_running_loop(), Turns()
        loop.add_reader(ours, lambda: order.append(ours.recv(64).decode()))
        futures = [loop.create_future() for _ in range(3)]
        waiting = [asyncio.create_task(go_on(f"next {i}", done)) for i, done in enumerate(futures)]
        await asyncio.sleep(0)
        for done in futures:
            turns.wait(done)
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        while order[-1] != "token":
            await asyncio.sleep(0)
        loop.remove_reader(ours)

    with ours, servers:
        asyncio.run(ended_together())
    assert order == ["next 0", "token", "next 1", "token", "next 2", "token"]


def test_a_request_that_waits_unread_at_the_server_is_the_servers_delay() -> None:
    with TruthServer(tokens=4, first_ms=200, token_ms=1) as server:
        port = int(server.root.rpartition(":")[2])
        os.kill(server.pid, signal.SIGSTOP)
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            body = b'{"messages": [{"role": "user", "content": "stopped"}]}'
            head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            before_s = time.perf_counter()
            connection.sendall(head + body)
            after_s = time.perf_counter()
            time.sleep(0.1)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        with connection:
            assert connection.recv(16)
        (entry,) = server.journal("stopped")
    assert before_s <= entry["received_s"] <= after_s + 0.05


def test_a_role_only_chunk_does_not_set_the_first_token() -> None:
    with TruthServer("role-first", tokens=10, first_ms=150, token_ms=2) as server:
        found = cell(server, count=8)
        journal = server.journal(MARK)
    for record, entry in paired(found, journal):
        role = next(sent["at_s"] for sent in entry["sent"] if sent["what"] == "role")
        content = next(sent["at_s"] for sent in entry["sent"] if sent["what"] == "content")
        assert record.ttft_ms is not None
        assert record.ttft_ms / 1000 >= content - entry["received_s"] > role - entry["received_s"]


def test_chunk_latency_and_tpot_are_different_things_where_a_chunk_holds_three_tokens() -> None:
    with TruthServer(tokens=31, tokens_per_chunk=3, first_ms=10, token_ms=5) as server:
        found = cell(server, count=8)
        journal = server.journal(MARK)
    for record, entry in paired(found, journal):
        tpot = tpot_ms(record)
        assert tpot is not None
        assert record.inter_chunk_ms_p50 is not None
        assert record.inter_chunk_ms_p50 > 2 * tpot
        assert tpot == pytest.approx(oracle.tpot_ms(entry), rel=0.25)
    assert found.acceptance is not None
    assert found.acceptance.source == "chunks"


def test_waiting_for_a_connection_is_not_part_of_the_first_token() -> None:
    with TruthServer("close", tokens=10, first_ms=10, token_ms=1) as server:
        found = cell(server, concurrency=2, count=12)
        journal = server.journal(MARK)
    assert len({entry["connection"] for entry in journal}) == 12
    for record in found.requests:
        assert record.connect_ms is not None
        assert record.connect_ms >= 0


def test_the_concurrency_is_held_and_never_passed() -> None:
    with TruthServer(tokens=10, first_ms=10, token_ms=2) as server:
        found = cell(server, concurrency=4, count=24, rounds=2)
        journal = server.journal(MARK)
    moments = sorted(moment for e in journal for moment in ((e["received_s"], 1), (e["sent"][-1]["at_s"], -1)))
    flying = most = 0
    for _, change in moments:
        flying += change
        most = max(most, flying)
    assert most == 4
    assert [window.round for window in found.rounds] == [0, 1]
    assert found.rounds[0].end_s <= found.rounds[1].start_s
