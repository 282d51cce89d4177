"""Lines that tell a person how a run is going: in a console's log, or on the terminal that watches it."""

from __future__ import annotations

import time
from collections.abc import Callable

MARK = "▸ "


def say(subject: str, text: str) -> None:
    """Print one line of progress about a variant or a stage."""
    print(f"{MARK}{subject}: {text}", flush=True)


def told(line: str) -> str | None:
    """The progress in a line of a task's log, or None if it is something else."""
    _, mark, text = line.partition(MARK)
    return text.rstrip() if mark else None


def now_and_then(subject: str, every_s: float) -> Callable[[object], None]:
    """A `say` that passes on a line at most so often: what it follows moves far more often."""
    last = float("-inf")

    def on_progress(what: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every_s:
            last = now
            say(subject, str(what).removeprefix(f"{subject}: "))

    return on_progress
