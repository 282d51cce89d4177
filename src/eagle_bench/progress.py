"""Lines that tell a person how a run is going: in a console's log, or on the terminal that watches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

MARK = "▸ "
What = TypeVar("What")


def say(subject: str, text: str) -> None:
    """Print one line of progress about a variant or a stage."""
    print(f"{MARK}{subject}: {text}", flush=True)


def told(line: str) -> str | None:
    """The progress in a line of a task's log, or None if it is something else."""
    _, mark, text = line.partition(MARK)
    return text.rstrip() if mark else None


def now_and_then(
    subject: str, every_s: float, about: Callable[[object], object] = lambda what: None
) -> Callable[[object], None]:
    """A `say` that passes on a line at most so often, see `sparsely`."""
    return sparsely(lambda what: say(subject, str(what).removeprefix(f"{subject}: ")), every_s, about)


def sparsely(
    tell: Callable[[What], None], every_s: float, about: Callable[[What], object] = lambda what: None
) -> Callable[[What], None]:
    """A `tell` that is called at most so often: what it follows moves far more often.

    Args:
        about: what a line is about; where it is about something else than the last one was, it is told at once.
    """
    last_s, last = float("-inf"), None

    def on_progress(what: What) -> None:
        nonlocal last_s, last
        now_s, subject_matter = time.monotonic(), about(what)
        if now_s - last_s >= every_s or subject_matter != last:
            last_s, last = now_s, subject_matter
            tell(what)

    return on_progress
