"""Earlier runs, to go on with: jobs of Vertex AI, and folders of this machine.

A result that was damaged since is told of and left out, so that it is missing and is measured anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eagle_bench.adapters import job_results, storage
from eagle_bench.adapters.earlier_cells import read_earlier
from eagle_bench.adapters.result_files import cell_in
from eagle_bench.adapters.running_jobs import JOB_ID
from eagle_bench.errors import InputError
from eagle_bench.resuming import EarlierRun, Kept, addresses
from eagle_bench.runs.gathering import RESULTS, RUN, kept_in
from eagle_bench.unreadable import reason

Say = Callable[[str], None]


def run_of(job_name: str, say: Say) -> EarlierRun:
    """What a job was told and measured, and what it had itself taken from an earlier one.

    Raises:
        InputError: it has not ended.
        ServiceError: it, or its artifacts, can't be read.
    """
    found = job_results.look_up(job_name)
    if not found.state.ended:
        raise InputError(f"--resume: {found.run_id} is {found.state.state}.", hint="Wait for its end, or cancel it.")
    with TemporaryDirectory() as scratch:
        places = job_results.download(found, Path(scratch))
        kept = kept_in(Path(scratch), lambda path, why: say(_damaged(f"{places[path]}: {why}.")))
        own = [replace(one, address=places[Path(one.address)]) for one in kept]
    return EarlierRun(found.run_id, found.parameters, (*own, *read_earlier(found.parameters.get("earlier") or {})))


def run_in(folder: Path, say: Say) -> EarlierRun:
    """The run whose results were gathered in a folder, or lie in its bucket where the run's end kept it from that.

    Raises:
        InputError: there is none, or what it was told can't be read.
    """
    noted = _noted(folder)
    run_id, parameters = noted["run"], noted["parameters"]
    results, buckets = folder.resolve() / RESULTS, folder.resolve() / "local-vertex" / "buckets"
    try:
        cells = tuple(_in_results(results, say) if results.is_dir() else _in_buckets(buckets, run_id, parameters, say))
    except (AttributeError, TypeError):
        raise _unusable(folder, "`parameters.earlier` is not what `run` wrote") from None
    return EarlierRun(run_id, parameters, cells, noted.get("equipment"), str(folder / RUN))


def _noted(folder: Path) -> dict[str, Any]:
    """What a run noted of itself; its keys are there and of the right kind."""
    try:
        noted = json.loads((folder / RUN).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(folder, reason(error)) from None
    if not isinstance(noted, dict):
        raise _unusable(folder, "it is no mapping")
    for key, kind in (("run", str), ("parameters", dict), *((("equipment", dict),) if "equipment" in noted else ())):
        if not isinstance(noted.get(key), kind):
            raise _unusable(folder, f"`{key}` is {'not what `run` wrote' if key in noted else 'missing'}")
    if not JOB_ID.fullmatch(noted["run"]):
        raise _unusable(folder, "`run` is not the id of a run")
    return noted


def _unusable(folder: Path, why: str) -> InputError:
    return InputError(
        f"--resume: {folder / RUN} can't be used: {why}.",
        hint=f"Give the folder that `run` wrote, with {RUN} and {RESULTS}/ in it, or run without --resume.",
    )


def _in_results(results: Path, say: Say) -> Iterator[Kept]:
    for path in sorted(results.glob("*.json")):
        yield from _cell(path, say)


def _in_buckets(buckets: Path, run_id: str, parameters: Mapping[str, Any], say: Say) -> Iterator[Kept]:
    """Cells of a run that came to gather nothing: its own, and those that it had taken from a run before it."""
    for artifacts in buckets.glob(f"**/{run_id}"):
        yield from kept_in(artifacts, lambda path, why: say(_damaged(f"{path}: {why}.")))
    for address in addresses(parameters.get("earlier") or {}):
        yield from _cell(buckets / address.removeprefix(storage.SCHEME), say)


def _cell(path: Path, say: Say) -> Iterator[Kept]:
    """The cell in a file whose name tells of which variant and level it is."""
    variant, _, level = path.stem.rpartition("-c")
    name = f"of {variant} at concurrency {level} " if variant and level.isdecimal() else ""
    try:
        yield Kept(str(path), cell_in(path.read_bytes(), str(path)))
    except InputError as error:
        say(_damaged(error.message, name))
    except OSError as error:
        say(_damaged(f"{path}: {reason(error)}.", name))


def _damaged(what: str, name: str = "") -> str:
    return f"the earlier result {name}can't be read and counts as missing: {what}"
