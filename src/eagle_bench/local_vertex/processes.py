"""Processes that can't be left behind: each is started under a keeper of its own (see `keeper`)."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from eagle_bench.local_vertex import keeper

LONGEST_LINE = 500
"""Characters of one line of output in a message."""
KEEPER_S = 15.0
"""What a keeper gets, beyond the grace of its command, to kill what is left and end itself."""


class KeptProcess:
    """A running command with its output in a file."""

    def __init__(self, process: Process, log_file: Path, grace_s: float) -> None:
        self._process = process
        self._grace_s = grace_s
        self.log_file = log_file

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log_file: Path, grace_s: float
    ) -> KeptProcess:
        """Start a command; `grace_s` is what it gets between TERM and KILL when it is stopped."""
        log_file.parent.mkdir(parents=True, exist_ok=True)
        starting = asyncio.create_task(_spawn(argv, env=env, cwd=cwd, log_file=log_file, grace_s=grace_s))
        try:
            return cls(await asyncio.shield(starting), log_file, grace_s)
        except asyncio.CancelledError:
            # asyncio would kill the keeper alone: let it come up, then end it in order.
            await cls(await starting, log_file, grace_s).stop()
            raise

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    async def stop(self) -> None:
        """End it and everything it started; returns when all of it is gone.

        A keeper that does not come to it, as one that was stopped, is killed: its command dies with it.
        """
        if self._process.stdin:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), self._grace_s + KEEPER_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def last_lines(self, count: int = 15) -> str:
        """The end of its output, for messages; of a line that is longer than people read, its end too."""
        with self.log_file.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 8192))
            lines = log.read().decode(errors="replace").splitlines()[-count:]
        return "\n".join(line if len(line) <= LONGEST_LINE else f"…{line[-LONGEST_LINE:]}" for line in lines)


async def _spawn(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log_file: Path, grace_s: float) -> Process:
    with log_file.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", keeper.__file__, str(grace_s), *argv),
            stdin=PIPE,
            stdout=log,
            stderr=STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
