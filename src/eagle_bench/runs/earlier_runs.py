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
from eagle_bench.runs.gathering import RESULTS, RUN, gather, kept_in
from eagle_bench.tasks.compare import planned
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
    """The run whose results were gathered in a folder; where its process was gone before it could, that is done now.

    Raises:
        InputError: there is none, or what it was told can't be read.
    """
    noted, results = _noted(folder), folder.resolve() / RESULTS
    if not results.is_dir():
        _gather_now(folder, noted, say)
    cells = tuple(_in_results(results, say))
    return EarlierRun(noted["run"], noted["parameters"], cells, noted.get("equipment"), str(folder / RUN))


def bring_together(folder: Path, say: Say) -> None:
    """Gather what a run of this machine left in its folder, where its process was gone before it could.

    What can't be used is told of: it keeps nobody from running anew.
    """
    if not (folder / RUN).exists() or (folder / RESULTS).is_dir() or not _buckets(folder).is_dir():
        return
    try:
        _gather_now(folder, _noted(folder), say)
    except InputError as error:
        say(error.message.removeprefix("--resume: "))


def _buckets(folder: Path) -> Path:
    return folder.resolve() / "local-vertex" / "buckets"


def _gather_now(folder: Path, noted: Mapping[str, Any], say: Say) -> None:
    """Bring together what a run measured itself, and what it had taken from a run before it."""
    run_id, parameters, buckets = noted["run"], noted["parameters"], _buckets(folder)
    try:
        places = [
            buckets / address.removeprefix(storage.SCHEME) for address in addresses(parameters.get("earlier", {}))
        ]
        planned(run_id, parameters)
    except (AttributeError, TypeError):
        raise _unusable(folder, "`parameters.earlier` is not what `run` wrote") from None
    except InputError as error:
        raise _unusable(folder, error.message.rstrip(".")) from None
    artifacts = next(buckets.glob(f"**/{run_id}"), buckets / run_id)
    kept_in(artifacts, lambda path, why: say(_damaged(f"{path}: {why}.")))
    taken = [kept for path in places for kept in _cell(path, say)]
    gathered = gather(artifacts, run_id, parameters, folder, earlier=taken, equipment=noted.get("equipment"))
    if gathered.answer is not None:
        say(f"{run_id} ended before it had brought its results together: they are in {folder} now")


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
