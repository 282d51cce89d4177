"""The floor: bare sockets that stamp right after `recv` and look at the bytes when all is over.

What this client is off by against the truth server, no client on the same machine can avoid. Standard
library only, and nothing of the product.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import statistics
import time
from dataclasses import dataclass, field

CONTENT = b'"content": "w'


@dataclass
class Request:
    """One request as the bare socket saw it. Times are `time.perf_counter()`."""

    content: str
    start_s: float = 0.0
    reads: list[tuple[float, bytes]] = field(default_factory=list)

    @property
    def content_s(self) -> list[float]:
        return [at for at, data in self.reads for _ in range(data.count(CONTENT))]

    @property
    def ttft_ms(self) -> float:
        return (self.content_s[0] - self.start_s) * 1000

    @property
    def e2e_ms(self) -> float:
        return (self.content_s[-1] - self.start_s) * 1000


def run(root: str, contents: list[str], concurrency: int, max_tokens: int = 4096) -> list[Request]:
    """Send each content over `concurrency` open connections, a new request as soon as one is answered."""
    host, _, port = root.removeprefix("http://").partition(":")
    selector = selectors.DefaultSelector()
    waiting = [Request(content) for content in reversed(contents)]
    done: list[Request] = []

    def next_on(connection: socket.socket) -> Request | None:
        if not waiting:
            return None
        request = waiting.pop()
        body = json.dumps({"messages": [{"role": "user", "content": request.content}], "max_tokens": max_tokens})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
        payload = (head + body).encode()
        request.start_s = time.perf_counter()
        connection.sendall(payload)
        return request

    connections = [socket.create_connection((host, int(port))) for _ in range(min(concurrency, len(contents)))]
    now: dict[socket.socket, Request] = {}
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(connection, selectors.EVENT_READ)
    for connection in connections:
        request = next_on(connection)
        if request is not None:
            now[connection] = request
    while now:
        ended = []
        for key, _ in selector.select():
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            data = connection.recv(65536)
            at = time.perf_counter()
            if not data:
                raise ConnectionError("the server closed a connection of the floor client")
            now[connection].reads.append((at, data))
            if data.endswith(b"0\r\n\r\n"):
                ended.append(connection)
        for connection in ended:
            done.append(now.pop(connection))
            request = next_on(connection)
            if request is not None:
                now[connection] = request
    for connection in connections:
        connection.close()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--requests", type=int, default=64)
    args = parser.parse_args()
    found = run(args.root, [f"floor {i}" for i in range(args.requests)], args.concurrency)
    print(json.dumps({"ttft_ms_p50": statistics.median(r.ttft_ms for r in found)}))


if __name__ == "__main__":
    main()
