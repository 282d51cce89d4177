"""What a run on this machine measures with. `--resume` compares it: another processor or engine measures something else."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from eagle_bench.local_vertex.settings import Settings
from eagle_bench.secrecy import HIDDEN, is_secret, is_secret_flag
from eagle_bench.variants import VariantSpec

PROCESSORS = Path("/proc/cpuinfo")


def equipment(variants: Iterable[VariantSpec], settings: Settings) -> dict[str, Any]:
    """The machine, and for each variant that is deployed its engine in words, without anything secret."""
    found: dict[str, Any] = {"processor": processor(), "cores": cores()}
    for spec in variants:
        engine = settings.engine_for(spec.serving.image) if spec.deployed and spec.serving else None
        if engine and spec.serving:
            folder = settings.model_folder(spec.model or "")
            command = [part.replace("{model}", str(folder or spec.model)) for part in engine.command]
            drafts = [text for arg in spec.serving.args if (text := settings.with_folders(arg)) != arg]
            environment = [f"{name}={value}" for name, value in sorted(engine.env.items()) if not is_secret(name)]
            found[f"engines.{spec.id}"] = [*environment, *_without_secrets((*command, *drafts))]
    return found


def machine() -> str:
    """This machine as a report shows it."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    where = f"{os.uname().sysname} {os.uname().machine}"
    return f"{cores()} CPU cores ({processor()}), {memory_gb:.0f} GB memory, {where}"


def cores() -> int:
    """Those that this process, and what it starts, may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The model of the processor as the system names it; its kind where the system has no name."""
    text = PROCESSORS.read_text(errors="replace") if PROCESSORS.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+?)\s*$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def _without_secrets(words: Iterable[str]) -> Iterator[str]:
    """A command's words, each value of a flag that is named for a secret hidden."""
    value_follows = False
    for word in words:
        flag, equals, _ = word.partition("=")
        secret = is_secret_flag(flag)
        yield (
            HIDDEN if value_follows and not word.startswith("-") else f"{flag}={HIDDEN}" if secret and equals else word
        )
        value_follows = secret and not equals
