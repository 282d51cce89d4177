"""A task as a process: what it finds in its environment, where its output goes, and what a signal did to it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from eagle_bench.progress import MARK


def environment_for(task: str, secrets: Mapping[str, Collection[str]], more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without the secrets of others.

    Args:
        secrets: names of variables that are secret, each with the tasks that get it.
        more: what the task gets besides.
    """
    kept = {name: value for name, value in os.environ.items() if name not in secrets or task in secrets[name]}
    return {**kept, **more}


def run_with_log(command: Sequence[str], environment: Mapping[str, str], log_file: Path, task: str) -> int:
    """Run it with its output in the task's own file: tasks that run side by side don't mix.

    Returns:
        Its exit status. What a signal ended says so in the last line of the file.
    """
    with log_file.open("ab") as log:
        status = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            check=False,
        ).returncode
        if said := killed(task, status):
            log.write(f"\n{MARK}run: {said}\n".encode())
    return status


def killed(task: str, status: int) -> str | None:
    """How a signal ended a task, by the exit status of its process or, above 128, of the shell around it."""
    number = -status if status < 0 else status - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return None
    why = " (out of memory?)" if number == signal.SIGKILL else ""
    return f"the task {task} was killed by {name}{why}"
