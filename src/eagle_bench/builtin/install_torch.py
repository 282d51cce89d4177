"""Installs the CPU build of PyTorch into an environment: `python install_torch.py PYTHON`.

Standard library only: it runs before anything is installed. On Linux, PyPI's own wheel is a CUDA build of
several gigabytes; it works too, so it is the last resort.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VERSION = "2.13.0"


def install(python: Path, *, show: bool = False) -> None:
    """Try a local CPU wheel, then the index named by TORCH_INDEX_URL, then the default index.

    Args:
        show: let pip show how far it is on standard output.

    Raises:
        RuntimeError: none of them had it; the message is pip's last words.
    """
    index = os.environ.get("TORCH_INDEX_URL")
    attempts = [[f"torch=={VERSION}+cpu"]]
    if index:
        attempts.append([f"torch=={VERSION}", "--index-url", index])
    attempts.append([f"torch=={VERSION}"])
    words, quiet = "", [] if show else ["--quiet", "--progress-bar", "off"]
    for arguments in attempts:
        done = subprocess.run(
            [str(python), "-m", "pip", "--disable-pip-version-check", "install", *quiet, *arguments],
            stdout=None if show else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return
        words = done.stderr.strip()[-600:]
    raise RuntimeError(f"PyTorch {VERSION} can't be installed: {words}")


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]), show=sys.stdout.isatty())
    except RuntimeError as error:
        sys.exit(str(error))
