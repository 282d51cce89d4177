"""The truth server: an OpenAI-compatible server that knows exactly what it sent, and when.

It sends known tokens on a known timetable, stamps each chunk just before it is written
(`time.perf_counter()`, one clock for all processes of a machine), and gives the record away at
`GET /journal`. A request has come when the kernel has its last byte (`arrival`), not when this process finds time to
read it: what waits here while others are answered is this server's delay, and no client's. Standard library only; nothing of the
product is used, so it can judge it.

    python tests/truth_server/server.py --port 8123 --tokens 48 --tokens-per-chunk 3 --mode role-first

prints `listening on 127.0.0.1:PORT` when it is ready (port 0: a free one). Modes add up; N counts the
requests that `--only` lets through, `MODE:1` is every one:

    role-first          a chunk with the role alone is sent at once
    usage-with-content  usage in the last chunk with content       usage-each    in each, up to there
    usage-always        usage in a chunk without choices, asked for or not     usage-never
    empty:N             every Nth answer has no token, in an orderly stream
    blank:N             every Nth answer is 200 with no bytes in its body
    503:N 429:N 500:N   every Nth is refused with that status and a body
    cut:N               every Nth stream breaks off in the middle of its answer
    cut-clean:N         …and is ended in order, as a proxy would, but without its last part
    error-event:N       every Nth stream carries an error event after half of its chunks
    not-sse:N           every Nth answer is a JSON document
    broken-json:N       every Nth stream has an event that can't be read
    slow:MS             the first content comes MS later
    hang:N              every Nth request is never answered
    close               the server closes the connection after each answer without saying so before
    close-header        …and says so
    until-close         bodies end with the connection, not with a length
    split               every chunk of the wire is written in two pieces
    token:S             wants a bearer token from `GET /token`, which is valid for S seconds
    revoke:N            with `token`: as the Nth request comes, tokens given by then are not valid any more
    vertex              refuses `stream_options` and `max_completion_tokens`
    new-limit           refuses `max_tokens`
    spec                `/metrics` has vLLM's counters of speculative decoding
    v1-only             the API is at `/v1/...` only
    floats              counts in usage are written as 48.0

Without a usage mode it does what OpenAI does: a last chunk without choices, when asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import time
from dataclasses import asdict

from arrival import Listener  # beside this file: it runs as a script
from knowledge import (
    MODES,
    REFUSALS,
    STREAM_FAULTS,
    Entry,
    Sent,
    Settings,
    Truth,
)


def word(index: int) -> str:
    return f"w{index % 100} "


class Stream:
    """Plays one answer on its timetable."""

    def __init__(self, connection: Connection, entry: Entry) -> None:
        self.connection, self.entry, self.truth = connection, entry, connection.truth
        s = self.truth.settings
        limit = entry.body.get("max_tokens") or entry.body.get("max_completion_tokens") or s.tokens
        self.total = int(limit if entry.body.get("ignore_eos") else min(s.tokens, limit))
        if entry.fault in {"empty", "blank"}:
            self.total = 0
        self.k = s.tokens_per_chunk
        self.chunks = -(-self.total // self.k)
        self.stop_after = self.chunks // 2 if entry.fault in {"cut", "cut-clean", "error-event"} else None
        self.index = 0
        first_s = (s.first_ms + self.truth.number("slow")) / 1000
        self.first_at = entry.received_s + first_s
        self.gap_s = s.token_ms * self.k / 1000
        self.timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        framing = "" if self.truth.has("until-close") else "Transfer-Encoding: chunked\r\n"
        close = "Connection: close\r\n" if self.truth.has("close-header") or not framing else ""
        self.connection.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}{close}\r\n".encode())
        self.chunked = bool(framing)
        if self.entry.fault == "blank":
            self.finish()
            return
        if self.truth.has("role-first"):
            self.send({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}, 0, "role")
        self.plan()

    def plan(self) -> None:
        at = self.first_at + self.index * self.gap_s
        self.timer = self.connection.loop.call_later(max(0.0, at - time.perf_counter()), self.step)

    def step(self) -> None:
        if self.index == self.stop_after:
            self.break_off()
            return
        if self.index < self.chunks:
            self.content()
        if self.index < self.chunks:
            self.plan()
        else:
            self.last()

    def content(self) -> None:
        begin = self.index * self.k
        end = min(self.total, begin + self.k)
        self.index += 1
        event = {"choices": [{"index": 0, "delta": {"content": "".join(map(word, range(begin, end)))}}]}
        last = self.index == self.chunks
        if last:
            event["choices"][0]["finish_reason"] = "stop"
        if self.truth.has("usage-each") or (last and self.truth.has("usage-with-content")):
            event["usage"] = self.usage(end)
        self.send(event, end - begin, "content")
        self.truth.drafts += 1
        self.truth.drafted += 3
        self.truth.accepted += end - begin - 1
        if self.entry.fault == "broken-json" and self.index == 1:
            self.send_raw(b"data: {not json\n\n", 0, "error")

    def break_off(self) -> None:
        if self.entry.fault == "cut":
            self.connection.abort()
        elif self.entry.fault == "cut-clean":
            self.finish()
        else:
            self.send({"error": {"message": "engine died", "code": 500}}, 0, "error")
            self.finish()

    def last(self) -> None:
        if not self.total:
            self.send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, 0, "role")
        asked = (self.entry.body.get("stream_options") or {}).get("include_usage")
        other = {"usage-never", "usage-with-content", "usage-each"} & set(self.truth.settings.modes)
        if self.truth.has("usage-always") or (asked and not other):
            self.send({"choices": [], "usage": self.usage(self.total)}, 0, "usage")
        self.connection.write(self.framed(b"data: [DONE]\n\n"))
        self.finish()

    def usage(self, tokens: int) -> dict:
        prompt = sum(len(str(m.get("content", "")).split()) for m in self.entry.body.get("messages", []))
        make = float if self.truth.has("floats") else int
        return {"prompt_tokens": make(prompt), "completion_tokens": make(tokens), "total_tokens": make(prompt + tokens)}

    def send(self, event: dict, tokens: int, what: str) -> None:
        base = {"id": f"truth-{self.entry.number}", "object": "chat.completion.chunk", "model": "truth"}
        self.send_raw(f"data: {json.dumps(base | event)}\n\n".encode(), tokens, what)

    def send_raw(self, data: bytes, tokens: int, what: str) -> None:
        wire = self.framed(data)
        self.entry.tokens += tokens
        self.entry.sent.append(Sent(time.perf_counter(), tokens, what))
        if self.truth.has("split"):
            self.connection.write(wire[:9])
            wire = wire[9:]
        self.connection.write(wire)

    def framed(self, data: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data

    def finish(self) -> None:
        if self.chunked:
            self.connection.write(b"0\r\n\r\n")
        self.connection.answered(close=not self.chunked)


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, truth: Truth, listener: Listener) -> None:
        self.truth, self.listener, self.loop = truth, listener, asyncio.get_running_loop()
        self.buffer = b""
        self.stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.arrivals = self.listener.connections[transport.get_extra_info("socket").fileno()]
        self.number = self.truth.connections
        self.truth.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if self.stream is not None and self.stream.timer is not None:
            self.stream.timer.cancel()

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    def abort(self) -> None:
        self.stream = None
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        came_s = self.arrivals.at_s
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        method, path, _ = lines[0].split(" ")
        self.handle(method, path, headers, rest[:length], came_s)

    def handle(self, method: str, path: str, headers: dict[str, str], body: bytes, came_s: float) -> None:
        truth = self.truth
        if truth.has("v1-only") and not path.startswith("/v1/") and path not in {"/journal", "/reset", "/metrics"}:
            self.reply(404, {"detail": "Not Found"})
        elif path.endswith("/chat/completions") and method == "POST":
            self.chat(headers, json.loads(body), came_s)
        elif path == "/journal":
            self.reply(200, [asdict(entry) for entry in truth.journal])
        elif path == "/reset":
            truth.journal.clear()
            truth.counted = 0
            self.reply(200, {})
        elif path == "/token":
            self.reply(200, {"access_token": truth.give_token(), "expires_in": truth.number("token")})
        elif path.endswith("/models"):
            self.reply(200, {"object": "list", "data": [{"id": "truth", "object": "model"}]})
        elif path == "/metrics":
            if truth.has("token") and not truth.admits(headers.get("authorization", "")):
                self.reply(401, {"error": "token"})
            else:
                self.reply(200, truth.metrics(), "text/plain; version=0.0.4")
        else:
            self.reply(200 if path == "/health" else 404, {})

    def chat(self, headers: dict[str, str], body: dict, came_s: float) -> None:
        truth = self.truth
        messages = body.get("messages") or [{}]
        content = str(messages[-1].get("content", ""))
        counted = None
        if truth.settings.only in content:
            counted, truth.counted = truth.counted, truth.counted + 1
        authorization = headers.get("authorization", "")
        entry = Entry(len(truth.journal), counted, self.number, came_s, content, body, bool(authorization))
        truth.journal.append(entry)
        refusal = self.refusal(entry, body, authorization)
        if refusal is not None:
            entry.status, text = refusal
            self.reply(entry.status, {"error": {"message": text, "code": entry.status}})
            return
        entry.fault = next((mode for mode in STREAM_FAULTS if truth.hits(mode, entry)), None)
        entry.status = 200
        if entry.fault == "hang":
            return
        if entry.fault == "not-sse":
            self.reply(200, {"predictions": ["this server does not stream"]})
            return
        self.stream = Stream(self, entry)
        self.stream.start()

    def refusal(self, entry: Entry, body: dict, authorization: str) -> tuple[int, str] | None:
        truth = self.truth
        truth.revoke(entry)
        if truth.has("token") and not truth.admits(authorization):
            return 401, f"The token is not valid: {authorization}"
        if truth.has("vertex") and ("stream_options" in body or "max_completion_tokens" in body):
            return 400, "stream_options and max_completion_tokens are not supported"
        if truth.has("new-limit") and "max_tokens" in body:
            return 400, "use max_completion_tokens instead of max_tokens"
        for status, text in REFUSALS:
            if truth.hits(str(status), entry):
                entry.fault = str(status)
                return status, text
        return None

    def reply(self, status: int, content: object, kind: str = "application/json") -> None:
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.write(f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        self.write(body)

    def answered(self, *, close: bool) -> None:
        self.stream = None
        if close or self.truth.has("close") or self.truth.has("close-header"):
            self.transport.close()


async def serve(port: int, settings: Settings, certificate: str | None = None) -> None:
    truth = Truth(settings)
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    listener = Listener(port)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(truth, listener), sock=listener, backlog=4096, ssl=tls
    )
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--tokens-per-chunk", type=int, default=1)
    parser.add_argument("--first-ms", type=float, default=40.0)
    parser.add_argument("--token-ms", type=float, default=4.0)
    parser.add_argument("--only", default="", help="faults fall on requests whose last message has this text")
    parser.add_argument("--certificate", help="PEM file with certificate and key: speak TLS")
    parser.add_argument("--mode", action="append", default=[], help="see above; may be given again")
    args = parser.parse_args()
    modes: dict[str, float | None] = {}
    for mode in args.mode:
        name, _, number = mode.partition(":")
        modes[name] = float(number) if number else 1.0
    unknown = set(modes) - MODES
    if unknown:
        sys.exit(f"unknown mode {sorted(unknown)}")
    settings = Settings(args.tokens, args.tokens_per_chunk, args.first_ms, args.token_ms, args.only, modes)
    try:
        asyncio.run(serve(args.port, settings, args.certificate))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
