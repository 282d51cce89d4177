"""What ends a cell from outside: a signal, or its deadline."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_signals(end: Callable[[int], None]) -> Iterator[None]:
    """SIGTERM and SIGINT call `end` with their number while the block runs. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextmanager
def at_deadline(deadline_s: float | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` at a moment given in seconds since 1970, if the block still runs then."""
    if deadline_s is None:
        yield
        return
    alarm = asyncio.get_running_loop().call_later(max(0.0, deadline_s - time.time()), end)
    try:
        yield
    finally:
        alarm.cancel()
