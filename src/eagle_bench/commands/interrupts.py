"""Ctrl-C and TERM, for commands that wait."""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130
"""Exit status of a command that was interrupted."""


def obey_signals() -> None:
    """Let Ctrl-C and TERM raise KeyboardInterrupt, also where the shell started the command with them ignored."""

    def interrupted(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
