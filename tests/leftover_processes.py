"""Whether a run left processes behind."""

from __future__ import annotations

import os
import time
from pathlib import Path


def processes_with(text: str) -> list[int]:
    """Processes (no zombies, not this one) that have a text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in words:
                found.append(int(entry.name))
    return found


def nothing_left(text: str, patience_s: float = 30.0) -> bool:
    """Whether soon no process has a text in its command line."""
    deadline = time.monotonic() + patience_s
    while processes_with(text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
