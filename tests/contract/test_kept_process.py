"""A kept process ends, also where its keeper can't end it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from eagle_bench.local_vertex import processes

SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_last_words_of_an_output_are_few(tmp_path):
    """An engine may write megabytes without the end of a line."""
    shout = "print('first'); print('x' * 3_000_000 + 'why'); print('last', end='')"
    log_file = tmp_path / "log"

    async def ended() -> str:
        kept = await processes.KeptProcess.start(
            [sys.executable, "-c", shout], env=os.environ, cwd=tmp_path, log_file=log_file, grace_s=0.1
        )
        await kept.wait()
        return kept.last_lines()

    long, last = asyncio.run(ended()).splitlines()
    assert last == "last"
    assert long == "…" + "x" * 497 + "why"


def test_a_keeper_that_is_stopped_is_killed_and_its_command_with_it(tmp_path, monkeypatch, until):
    monkeypatch.setattr(processes, "KEEPER_S", 0.1)
    log_file = tmp_path / "log"

    async def stopped() -> int:
        kept = await processes.KeptProcess.start(
            [sys.executable, "-c", SLEEPER], env=os.environ, cwd=tmp_path, log_file=log_file, grace_s=0.1
        )
        while not log_file.read_text().endswith("\n"):
            await asyncio.sleep(0.02)
        assert runs(int(log_file.read_text()))
        os.kill(kept._process.pid, signal.SIGSTOP)
        await kept.stop()
        return kept.exit_status

    assert asyncio.run(stopped()) == -signal.SIGKILL
    until(lambda: not runs(int(log_file.read_text())))
