"""examples/two_servers.py: two servers at URLs for who has none, and neither is left when it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from contract.conftest import TINY_ENGINE
from leftover_processes import nothing_left

SCRIPT = Path(__file__).parents[2] / "examples" / "two_servers.py"


def two_free_ports() -> int:
    """The first of two ports in a row that nobody listens at."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def start(tmp_path: Path, port: int, *flags: str) -> subprocess.Popen[str]:
    engines = tmp_path / "engines.yaml"
    command = [sys.executable, str(TINY_ENGINE), "{host}", "{port}", f"--of={tmp_path}", *flags]
    engines.write_text(yaml.safe_dump({"engines": {"*vllm*": {"command": command}}}))
    asked = [sys.executable, str(SCRIPT), "--port", str(port), "--engines", str(engines)]
    return subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_both_answer_and_both_end(tmp_path, end):
    port = two_free_ports()
    process = start(tmp_path, port)
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("eagle-bench init"):
            break
    urls = [f"--url baseline=http://127.0.0.1:{port}/v1", f"--url ngram=http://127.0.0.1:{port + 1}/v1"]
    assert said[-1] == f"eagle-bench init {' '.join(urls)} -o two.yaml\n", said
    for at in (port, port + 1):
        with urllib.request.urlopen(f"http://127.0.0.1:{at}/v1/models") as answer:
            assert answer.status == 200
    process.send_signal(end)
    process.communicate(timeout=30)
    assert process.returncode in {0, 143}
    assert nothing_left(str(tmp_path))


def test_a_server_that_does_not_start_is_told_in_its_own_words(tmp_path):
    process = start(tmp_path, two_free_ports(), "--crash")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "does not answer" in said and "Traceback" not in said
    assert nothing_left(str(tmp_path))


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = start(tmp_path, taken.getsockname()[1])
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "is taken: choose another with --port" in said
