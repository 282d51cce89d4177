"""An endpoint's traffic: streamed as it comes, with Vertex AI's manners, and its faults as a client sees them."""

from __future__ import annotations

import json
import os
import signal
import socket

import httpx
import pytest

from eagle_bench.adapters import vertex
from eagle_bench.local_vertex.__main__ import listening
from eagle_bench.serving import Serving
from eagle_bench.variants import VariantSpec

PLACE = vertex.Place("p", "us-central1")
CHAT = {"model": "", "messages": [{"role": "user", "content": "hello"}]}


def deployed(*args, variant="base", **serving):
    spec = VariantSpec(id=variant, model="owner/name", serving=Serving(image="tiny", args=args, **serving))
    return vertex.deploy(PLACE, "run", spec).endpoint


@pytest.fixture
def ask(server, bearer):
    """One unstreamed request to an endpoint; what the engine saw comes back in the answer."""

    def ask(endpoint, *, headers=None, **fields):
        address = vertex.chat_base_url(endpoint) + "/chat/completions"
        return httpx.post(address, json={**CHAT, **fields}, headers=headers or bearer(), timeout=60)

    return ask


def seen_by_engine(answer):
    return json.loads(answer.json()["choices"][0]["message"]["content"])


def test_the_engine_gets_the_served_model_and_no_credentials(ask):
    seen = seen_by_engine(ask(deployed("--speculative-config={}", "--port=1", "--model", "elsewhere"), max_tokens=3))
    assert seen["request"] == {**CHAT, "model": "owner/name", "max_tokens": 3}
    assert "authorization" not in {name.lower() for name in seen["headers"]}
    assert seen["argv"][2:] == ["--speculative-config={}"]


@pytest.mark.parametrize("field", ["stream_options", "max_completion_tokens"])
def test_fields_that_vertex_refuses_are_refused(ask, field):
    answer = ask(deployed(), **{field: {} if field == "stream_options" else 5})
    assert answer.status_code == 400
    assert field in answer.json()["error"]["message"]


def test_a_stream_comes_chunk_by_chunk(server, bearer, tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    address = vertex.chat_base_url(deployed(f"--gate={gate}", "--words=4")) + "/chat/completions"
    words = 0
    with httpx.stream("POST", address, json={**CHAT, "stream": True}, headers=bearer(), timeout=60) as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            content = event["choices"][0]["delta"]["content"] if event["choices"] else None
            words += bool(content)
            if content is not None and words < 4:  # the engine sends the next one only after this one has arrived
                with gate.open("a") as more:
                    more.write("x")
    assert words == 4
    assert event["usage"]["completion_tokens"] == 4


def test_an_engine_that_dies_in_a_stream_drops_it_and_then_is_unavailable(server, bearer, ask, tmp_path, until):
    gate = tmp_path / "gate"
    gate.write_text("x")
    endpoint = deployed(f"--gate={gate}")
    pid = seen_by_engine(ask(endpoint))["pid"]
    address = vertex.chat_base_url(endpoint) + "/chat/completions"
    with (
        pytest.raises(httpx.RemoteProtocolError),
        httpx.stream("POST", address, json={**CHAT, "stream": True}, headers=bearer(), timeout=60) as answer,
    ):
        for line in answer.iter_lines():
            if "word0" in line:
                os.kill(pid, signal.SIGKILL)
    until(lambda: ask(endpoint).status_code == 503)
    assert ask(endpoint).json()["error"]["status"] == "UNAVAILABLE"
    assert vertex.teardown(PLACE, "run", "base").clean


def test_requests_are_cut_at_the_time_out_of_the_endpoint(ask, tmp_path, server, bearer):
    gate = tmp_path / "gate"
    gate.touch()
    address = vertex.chat_base_url(deployed(f"--gate={gate}", request_timeout_s=1)) + "/chat/completions"
    with (
        pytest.raises(httpx.RemoteProtocolError),
        httpx.stream("POST", address, json={**CHAT, "stream": True}, headers=bearer(), timeout=60) as answer,
    ):
        answer.read()


def test_other_routes_are_open_only_where_the_deploy_opened_them(ask, bearer):
    endpoint = deployed()
    assert vertex.metrics_url(endpoint) is None
    closed = httpx.get(f"{vertex.chat_base_url(endpoint)}/invoke/metrics", headers=bearer())
    assert closed.status_code == 400
    assert vertex.teardown(PLACE, "run", "base").clean
    opened = vertex.metrics_url(deployed(invoke_route=True))
    assert httpx.get(opened).status_code == 401
    assert "spec_decode_num_drafts" in httpx.get(opened, headers=bearer()).text


def test_statuses_on_order_come_in_their_pattern(ask, order):
    endpoint = deployed()
    order("traffic-status", status=429, skip=1, every=2, times=2)
    assert [ask(endpoint).status_code for _ in range(6)] == [200, 429, 200, 429, 200, 200]


def test_streams_on_order_are_cut(server, bearer, order):
    address = vertex.chat_base_url(deployed("--words=50")) + "/chat/completions"
    order("traffic-cut", chunks=1)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(address, json={**CHAT, "stream": True}, headers=bearer())
    whole = httpx.post(address, json={**CHAT, "stream": True}, headers=bearer())
    assert whole.text.count("word") == 50


def test_what_is_no_request_is_refused(server, bearer):
    address = vertex.chat_base_url(deployed()) + "/chat/completions"
    assert httpx.post(address, content=b"{", headers=bearer()).status_code == 400
    assert httpx.post(address, content=b"[]", headers=bearer()).status_code == 400
    elsewhere = address.replace("/eb-", "/xx-")
    assert httpx.post(elsewhere, json=CHAT, headers=bearer()).status_code == 404


def test_variants_on_one_machine_take_turns(start, bearer):
    start(slots=2)
    fast = deployed(variant="fast")
    assert vertex.machine_sharing(fast) == "turns"
    slow = deployed(variant="slow")
    answers = [
        httpx.post(f"{vertex.chat_base_url(one)}/chat/completions", json=CHAT, headers=bearer(), timeout=60)
        for one in (fast, slow, fast)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]


def test_one_slot_is_one_at_a_time(server):
    assert vertex.machine_sharing(deployed()) == "one-at-a-time"


def test_a_chunk_does_not_wait_for_the_one_before_to_be_acknowledged():
    with listening(0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
