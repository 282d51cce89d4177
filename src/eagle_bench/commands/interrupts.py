"""Ctrl-C, TERM and a terminal that is closed, for commands that wait."""

from __future__ import annotations

import os
import signal
import stat
import sys
from types import FrameType


def status_of(name: str | None = None) -> int:
    """Exit status of a command that a signal ended, as a shell says it: 129 SIGHUP, 130 SIGINT, 143 SIGTERM.

    Args:
        name: of the signal, as `KeyboardInterrupt` carries it here; without one it was Ctrl-C.
    """
    return 128 + signal.Signals.__members__.get(name or "", signal.SIGINT)


def obey_signals(*, once: bool = False) -> None:
    """Let Ctrl-C, TERM and HUP raise KeyboardInterrupt, also where the shell started the command with Ctrl-C ignored.

    `nohup` stays what it is: an ignored HUP is left ignored.

    Args:
        once: the first one ends the command, which gives everything back then; later ones don't disturb it in that.
    """
    heard = 0

    def interrupted(number: int, _: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if number == signal.SIGHUP:
            let_go_of_the_terminal()
        if once and heard > 1:
            return
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupted)


def let_go_of_the_terminal() -> None:
    """Say nothing more to a terminal or a pipe that is gone: an error there would end what is still to be done."""
    for stream in (sys.stdout, sys.stderr):
        try:
            number = stream.fileno()
            if not stat.S_ISREG(os.fstat(number).st_mode):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        except (OSError, ValueError):  # no file behind it
            continue
