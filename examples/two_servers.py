"""Two servers to try a comparison of URLs with: the built-in model on this machine, without speculation and with n-grams.

    .venv/bin/python examples/two_servers.py [--port N] [--engines FILE]

The second one listens at the port after the first's. Ctrl-C ends both.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from eagle_bench import config_file
from eagle_bench.errors import EagleBenchError
from eagle_bench.local_vertex.settings import Engine
from eagle_bench.runs.local_engines import EXAMPLE, settings_for
from eagle_bench.variants import resolve

HOST = "127.0.0.1"
PATIENCE_S = 300.0


def main() -> None:
    """Start both, name their URLs once they answer, and end them with this process."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("--port", type=int, default=8000, help="of the first server (8000)")
    options.add_argument("--engines", type=Path, help="as for `eagle-bench run --engines`")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        servers: list[subprocess.Popen[bytes]] = []
        try:
            _serve(given.port, given.engines, Path(folder), servers)
        except KeyboardInterrupt:
            print()
        except EagleBenchError as error:
            sys.exit(f"two_servers: {error}")
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()


def _serve(port: int, engines: Path | None, folder: Path, servers: list[subprocess.Popen[bytes]]) -> None:
    config = config_file.load(EXAMPLE)
    settings = settings_for(config, folder, engines, 2, print)
    engine = settings.engine_for(config.serving.image)
    assert engine is not None and config.model is not None  # `settings_for` refuses what has none
    model = str(settings.model_folder(config.model) or config.model)
    urls = []
    for at, spec in enumerate(resolve(config)[:2], port):
        _require_free(at)
        args = spec.serving.args if spec.serving else ()
        command = engine.argv(model=model, served_model=config.model, host=HOST, port=at, args=args)
        log = folder / f"{spec.id}.log"
        with log.open("wb") as output:
            servers.append(
                subprocess.Popen(command, env={**os.environ, **engine.env}, stdout=output, stderr=subprocess.STDOUT)
            )
        print(f"{spec.id}: starting; this takes a minute or so", flush=True)
        _until_ready(servers[-1], engine, at, log)
        urls.append(f"{spec.id}=http://{HOST}:{at}/v1")
    print(
        "ready. In another shell:",
        f"eagle-bench init --url {' --url '.join(urls)} -o two.yaml",
        "Ctrl-C ends both.",
        sep="\n",
    )
    sys.stdout.flush()
    while all(server.poll() is None for server in servers):
        time.sleep(0.5)
    sys.exit("two_servers: one of them ended")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            sys.exit(f"two_servers: port {port} is taken: choose another with --port")


def _until_ready(server: subprocess.Popen[bytes], engine: Engine, port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{port}{engine.health_route}", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    sys.exit(f"two_servers: the server at port {port} does not answer:\n{log.read_text(errors='replace')[-1500:]}")


if __name__ == "__main__":
    main()
