"""Whether a run left processes behind."""

from __future__ import annotations

import os
import time
from pathlib import Path


def command_of(pid: int) -> list[str]:
    """The words of a process's command line; none for one that is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [word.decode(errors="replace") for word in words.split(b"\0") if word]


def everybody() -> list[int]:
    """All processes but this one."""
    numbers = (entry.name for entry in Path("/proc").iterdir())
    return [int(name) for name in numbers if name.isdigit() and int(name) != os.getpid()]


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and theirs."""
    children: dict[int, list[int]] = {}
    for one in everybody():
        try:
            parent = int(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(one)
    found = list(children.get(pid, []))
    for one in found:
        found += children.get(one, [])
    return found


def processes_with(text: str) -> list[int]:
    """Processes that have a text in their command line."""
    return [pid for pid in everybody() if text in " ".join(command_of(pid))]


def nothing_left(text: str, patience_s: float = 30.0) -> bool:
    """Whether soon no process has a text in its command line."""
    deadline = time.monotonic() + patience_s
    while processes_with(text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
