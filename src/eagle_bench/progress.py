"""Lines that tell a person how a run is going: in a console's log, or on the terminal that watches it."""

from __future__ import annotations

MARK = "▸ "


def say(subject: str, text: str) -> None:
    """Print one line of progress about a variant or a stage."""
    print(f"{MARK}{subject}: {text}", flush=True)


def told(line: str) -> str | None:
    """The progress in a line of a task's log, or None if it is something else."""
    _, mark, text = line.partition(MARK)
    return text.rstrip() if mark else None
