"""Installs packages into an environment, for people who wait.

    python installing.py PYTHON torch
    python installing.py PYTHON ARGUMENTS-OF-PIP-INSTALL
    python installing.py -- COMMAND      what else lets pip work

Standard library only: it runs before anything is installed. pip's own lines are hundreds; here a terminal shows one that
changes, a log has one now and then, and pip's last words are kept for the case that it fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

VERSION = "2.13.0"
IN_A_LOG_S, ON_A_TERMINAL_S = 30.0, 1.0
_NAMED = re.compile(r"Collecting ([\w.-]+)")
_BUILT = re.compile(r"\s*Building wheel for ([\w.-]+) .*: started")

Say = Callable[[str], None]


def install(python: Path, arguments: Sequence[str], say: Say, every_s: float = IN_A_LOG_S) -> None:
    """Let pip install; say each `every_s` which package it is at.

    Raises:
        RuntimeError: it failed; the message is pip's last words.
    """
    watch(
        [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off", *arguments],
        say,
        every_s,
    )


def watch(command: Sequence[str], say: Say, every_s: float = IN_A_LOG_S) -> None:
    """Run what prints pip's lines; say each `every_s` which package it is at.

    Raises:
        RuntimeError: it failed; the message is its last words.
    """
    words: deque[str] = deque(maxlen=20)
    at, number, began = "", 0, time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    ) as pip:

        def read() -> None:
            nonlocal at, number
            assert pip.stdout is not None
            for line in pip.stdout:
                words.append(line)
                if named := _NAMED.match(line):
                    number += 1
                    at = f"fetching package {number}, {named[1]}"
                elif built := _BUILT.match(line):
                    at = f"building {built[1]}"
                elif line.startswith("Installing collected packages"):
                    at = "all fetched, installing"

        reader = Thread(target=read, daemon=True)
        reader.start()
        try:
            while reader.is_alive():  # a large package is fetched without a line for minutes
                reader.join(every_s)
                if reader.is_alive():
                    say(f"{at or 'asking for packages'} ({time.monotonic() - began:.0f} s so far)")
        except BaseException:
            pip.terminate()
            raise
    if pip.returncode:
        raise RuntimeError("".join(words)[-800:].strip() or f"it ended with status {pip.returncode}")


def torch(python: Path, say: Say, every_s: float = IN_A_LOG_S) -> None:
    """The CPU build of PyTorch: a local CPU wheel, else from the index named by TORCH_INDEX_URL, else from the default index.

    On Linux, PyPI's own wheel is a CUDA build of several gigabytes; it works too, so it is the last resort.

    Raises:
        RuntimeError: none of them had it; the message is pip's last words.
    """
    index = os.environ.get("TORCH_INDEX_URL")
    attempts = [[f"torch=={VERSION}+cpu"]]
    if index:
        attempts.append([f"torch=={VERSION}", "--index-url", index])
    attempts.append([f"torch=={VERSION}"])
    words = ""
    for arguments in attempts:
        try:
            install(python, arguments, say, every_s)
        except RuntimeError as error:
            words = str(error)
        else:
            return
    raise RuntimeError(f"PyTorch {VERSION} can't be installed: {words}")


def main(python: str, *arguments: str) -> None:
    """Install, and show how far it is."""
    screen = sys.stdout.isatty()
    say: Say = _over if screen else lambda text: print(f"  {text}", flush=True)
    every_s = ON_A_TERMINAL_S if screen else IN_A_LOG_S
    try:
        if python == "--":
            watch(arguments, say, every_s)
        elif arguments == ("torch",):
            torch(Path(python), say, every_s)
        else:
            install(Path(python), arguments, say, every_s)
    except RuntimeError as error:
        sys.exit(str(error))
    finally:
        if screen:
            _over("")


def _over(text: str) -> None:
    """Print over the line before."""
    print(f"\r\x1b[K{text}", end="", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
