"""`python -m eagle_bench.local_vertex --settings FILE`: the server as a process of its own.

Writes one line of JSON to standard output when it listens, and ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
from pathlib import Path

import uvicorn

from eagle_bench.local_vertex.settings import Settings

HOST = "127.0.0.1"


def serve(settings: Settings) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input; jobs and engines end with it."""
    from eagle_bench.local_vertex.app import LocalVertexApp
    from eagle_bench.local_vertex.environment import client_environment, key_file_of
    from eagle_bench.local_vertex.tokens import Tokens

    settings.state_dir.mkdir(parents=True, exist_ok=True)
    listener = listening(settings.port)
    url = f"http://{HOST}:{listener.getsockname()[1]}"
    tokens = Tokens(
        key_file_of(settings),
        project=settings.project_id,
        token_uri=f"{url}/token",
        lifetime_s=settings.token_lifetime_s,
    )
    environment = client_environment(settings, url)
    application = LocalVertexApp(settings, tokens, environment).build()
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
        ws="none",
        lifespan="on",
    )
    asyncio.run(_serve(uvicorn.Server(config), listener, {"url": url, "environment": environment}))


def listening(port: int) -> socket.socket:
    """A listening socket whose connections send each chunk at once.

    asyncio sees to that for sockets of the protocol TCP by name only. With Nagle's algorithm the first token waits for the
    client to acknowledge the headers, which it delays by 40 ms.
    """
    listener = socket.create_server((HOST, port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # those that it accepts inherit it
    return listener


async def _serve(server: uvicorn.Server, listener: socket.socket, hello: dict[str, object]) -> None:
    loop, standard_input = asyncio.get_running_loop(), sys.stdin.fileno()

    def end_of_input() -> None:
        if not os.read(standard_input, 4096):
            loop.remove_reader(standard_input)  # it stays readable: this would be called without pause
            server.should_exit = True

    loop.add_reader(standard_input, end_of_input)
    print(json.dumps(hello), flush=True)  # the socket listens already: who connects now is answered soon
    await server.serve(sockets=[listener])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eagle_bench.local_vertex", description="Vertex AI on this machine")
    parser.add_argument("--settings", type=Path, required=True, help="a JSON file (see local_vertex.settings)")
    serve(Settings.model_validate_json(parser.parse_args().settings.read_text()))


if __name__ == "__main__":
    main()
