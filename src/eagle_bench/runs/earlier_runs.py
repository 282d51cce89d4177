"""Earlier runs on Vertex AI, to go on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from eagle_bench.adapters import job_results
from eagle_bench.adapters.earlier_cells import read_earlier
from eagle_bench.errors import InputError
from eagle_bench.resuming import EarlierRun
from eagle_bench.runs.gathering import kept_in


def run_of(job_name: str) -> EarlierRun:
    """What a job was told and measured, and what it had itself taken from an earlier one.

    Raises:
        InputError: it has not ended.
        ServiceError: it, or its artifacts, can't be read.
    """
    found = job_results.look_up(job_name)
    if not found.state.ended:
        raise InputError(f"--resume: {found.run_id} is {found.state.state}.", hint="Wait for its end, or cancel it.")
    with TemporaryDirectory() as scratch:
        addresses = job_results.download(found, Path(scratch))
        own = [replace(kept, address=addresses[Path(kept.address)]) for kept in kept_in(Path(scratch))]
    return EarlierRun(found.run_id, found.parameters, (*own, *read_earlier(found.parameters.get("earlier") or {})))
