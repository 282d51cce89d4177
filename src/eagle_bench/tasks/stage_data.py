"""Stages the prompts and the tokenizer of a run, and checks before one that this will work."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from eagle_bench import config
from eagle_bench.adapters import sources
from eagle_bench.errors import InputError
from eagle_bench.fields import Count
from eagle_bench.tasks.budget import start_budget
from eagle_bench.workload.prompts import Manifest, read_staged, sha256_of
from eagle_bench.workload.slices import BUILTIN, count_usable, stage
from eagle_bench.workload.synthetic import shape_of

JobOf = Literal["Vertex AI", "Local Vertex"]
LEVELS = TypeAdapter(tuple[Count, ...])
LARGEST_CHECKED_BYTES = 64 * 2**20


def stage_run(
    workload: dict[str, Any],
    tokenizer: str | None,
    hf_token_secret: str | None,
    concurrency: Sequence[int],
    repeats: int,
    max_hours: float,
    earlier: dict[str, Any],
    prompts: Any,
) -> None:
    """Start the run's budget, then stage its prompts into the artifact.

    Raises:
        InputError, ServiceError: as `stage_data`; and where an earlier run, some cells of which were taken, measured
            other prompts than these.
    """
    start_budget(prompts, max_hours)
    folder = Path(prompts.path)
    stage_data(workload, tokenizer, hf_token_secret, concurrency, repeats, folder)
    for level, digest in earlier.get("prompts", {}).items():
        if sha256_of(read_staged(folder, int(level))[1]) != digest:
            raise InputError(
                f"`workload.dataset`: at concurrency {level} its prompts are not those that the earlier run measured.",
                hint="The data set has changed since: measure everything anew, without --resume.",
            )


def stage_data(
    workload: dict[str, Any],
    tokenizer: str | None,
    hf_token_secret: str | None,
    concurrency: Sequence[int],
    repeats: int,
    out: Path,
) -> Manifest:
    """Fetch data set and tokenizer and write the staged folder of a run.

    Args:
        workload: fields of `config.Workload`, as a pipeline passes them (4 may arrive as 4.0).
        tokenizer: Hugging Face id, gs:// or local folder; None leaves the length limits out.
        hf_token_secret: resource name of a Hugging Face token in Secret Manager; None for HF_TOKEN, or for none.

    Raises:
        InputError: the workload can't be used, or the data set holds too few prompts.
        ServiceError: a source refuses or can't be reached.
    """
    try:
        load = config.Workload.model_validate(workload)
        levels = LEVELS.validate_python(tuple(concurrency))
        (rounds,) = LEVELS.validate_python((repeats,))
    except ValidationError as error:
        raise InputError(f"stage_data: {error}") from None
    token = sources.hub_token(hf_token_secret)
    with tempfile.TemporaryDirectory() as scratch:
        folder = sources.fetch_tokenizer(tokenizer, token, Path(scratch) / "tokenizer") if tokenizer else None
        source = sources.fetch_dataset(load.dataset, token)
        return _stage(load, levels, rounds, source, folder, out)


def preflight(settings: config.Config, *, job_of: JobOf | None = None) -> None:
    """Check everything about data and tokenizer that can be checked before a machine is paid for.

    That they are there and may be read; and for the built-in set, for shapes and for files at hand, that there are
    enough prompts (without the length limits, which need the tokenizer's files).

    Args:
        job_of: who will run it as a job, which can't read every path that this process can; None for a run of its own.

    Raises:
        InputError, ServiceError: as `stage_data` would.
    """
    load = settings.workload
    if job_of:
        for field, name in (("workload.dataset", load.dataset), ("tokenizer", settings.tokenizer)):
            sources.refuse_unreadable(field, name or "", local_vertex=job_of == "Local Vertex")
    token = sources.hub_token(settings.hf_token_secret)
    sources.check_dataset(load.dataset, token)
    if settings.tokenizer:
        sources.check_tokenizer(settings.tokenizer, token)
    count_prompts(settings)


def check_here(settings: config.Config) -> None:
    """The part of `preflight` that asks nobody: files and folders of this machine, and the number of prompts.

    Raises:
        InputError: one is not there, or there are too few prompts.
    """
    if not sources.is_elsewhere(settings.workload.dataset):
        sources.check_dataset(settings.workload.dataset, None)
    if settings.tokenizer and not sources.is_tokenizer_elsewhere(settings.tokenizer):
        sources.check_tokenizer(settings.tokenizer, None)
    count_prompts(settings)


def count_prompts(settings: config.Config) -> Manifest | None:
    """Stage the prompts for nothing but their number, without length limits; None where they'd have to be fetched.

    Raises:
        InputError: there are too few.
    """
    load = settings.workload
    source = None
    if load.dataset != BUILTIN and not shape_of(load.dataset) and (source := _countable(load.dataset)) is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        return _stage(load, settings.concurrency, settings.repeats, source, None, Path(scratch))


def usable_prompts(dataset: str) -> int | None:
    """How many prompts of a file of this machine can be used, without length limits; None where that is not known."""
    path = _countable(dataset)
    try:
        return None if path is None else count_usable(config.Workload(dataset=dataset), path)
    except InputError:
        return None  # whoever reads it for good says what is wrong with it


def _countable(dataset: str) -> Path | None:
    path = sources.at_hand(dataset)
    return path if path and path.is_file() and path.stat().st_size <= LARGEST_CHECKED_BYTES else None


def _stage(
    load: config.Workload,
    levels: Sequence[int],
    rounds: int,
    source: Path | None,
    tokenizer: Path | None,
    out: Path,
) -> Manifest:
    return stage(
        load,
        source,
        concurrency=levels,
        repeats=rounds,
        requests_at=load.requests_at,
        tokenizer=tokenizer,
        out=out,
    )
