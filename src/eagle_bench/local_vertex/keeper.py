"""Runs one command and outlives it: when the command's owner dies or says so, nothing of it is left.

Started as `python -I keeper.py GRACE_S COMMAND…` with a pipe as standard input. The pipe's end of file (the owner
closed it, or was killed) or SIGTERM ends the command: TERM to its process group, then KILL to all its descendants,
those included that made a session of their own: orphans of the command become this process's children.
Only the standard library: it must start at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

LIBC = ctypes.CDLL(None, use_errno=True)


def keep(grace_s: float, command: list[str]) -> int:
    """Run the command to its end or to the owner's; returns its exit status as a shell would."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: stopping.append(got))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - one thread; it dies with this one
        )
    except OSError as error:
        print(f"can't start {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    while child.poll() is None and not stopping:
        ready, _, _ = select.select([sys.stdin, wake_read], [], [], 1.0)
        if sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
            stopping.append(signal.SIGTERM)
        if wake_read in ready:
            os.read(wake_read, 4096)
    _end(child, grace_s)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        LIBC.prctl(option, value, 0, 0, 0)


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and (child.poll() is None or _descendants()):
        _reap(child)
        time.sleep(0.05)
    while (rest := _descendants()) or child.poll() is None:
        for pid in rest:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        _reap(child)
        time.sleep(0.02)


def _reap(child: subprocess.Popen[bytes]) -> None:
    """Take leave of orphans that ended; the child itself is left for `poll`."""
    for pid in _descendants(dead=True):
        if pid != child.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    child.poll()


def _descendants(*, dead: bool = False) -> list[int]:
    """Processes below this one, from /proc; the dead ones are this process's own zombies."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            parents[int(folder.name)] = (int(parent), state)
    if dead:
        return [pid for pid, (parent, state) in parents.items() if parent == os.getpid() and state == "Z"]
    found, layer = [], [os.getpid()]
    while layer:
        layer = [pid for pid, (parent, _) in parents.items() if parent in layer]
        found += [pid for pid in layer if parents[pid][1] != "Z"]
    return found


if __name__ == "__main__":
    sys.exit(keep(float(sys.argv[1]), sys.argv[2:]))
