"""The event loop that measures."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import cast


def event_loop() -> Callable[[], AbstractEventLoop] | None:
    """uvloop where it is installed (vLLM's server brings it): it costs two thirds of the CPU for each chunk."""
    try:
        import uvloop
    except ImportError:
        return None
    return cast(Callable[[], AbstractEventLoop], uvloop.new_event_loop)
