"""One run at a time in a folder: two would write over each other's results. Two on one machine disturb each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eagle_bench.errors import InputError


@contextmanager
def alone_in(folder: Path, option: str = "--out") -> Iterator[None]:
    """Make the folder and keep other runs out of it until the end, however this process ends.

    Args:
        option: that named it.

    Raises:
        InputError: it can't be made, or another run uses it.
    """
    state = folder / "local-vertex"
    try:
        made = not folder.exists()
        state.mkdir(parents=True, exist_ok=True)
        lock = (state / "lock").open("a")
    except OSError as error:
        raise InputError(f"{option} {folder}: can't be made: {error.strerror}.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{option} {folder}: another run uses this folder.",
                hint="Give another one, or wait until it has ended.",
            ) from None
        try:
            yield
        except InputError:
            if made:  # refused before anything was begun: no empty folder stays behind
                with suppress(OSError):
                    (state / "lock").unlink()
                    state.rmdir()
                    folder.rmdir()
            raise


@contextmanager
def only_one() -> Iterator[bool]:
    """Whether no other run of this user measures on this machine, which holds for those that begin until the end."""
    try:
        lock = (Path(tempfile.gettempdir()) / f"eagle-bench-{os.getuid()}.lock").open("a")
    except OSError:  # nobody can tell
        yield True
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
