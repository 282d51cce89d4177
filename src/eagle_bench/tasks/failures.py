"""A failure of one variant, written into the artifact that would have held its result."""

from __future__ import annotations

import traceback
from typing import Any, Literal

from eagle_bench.errors import EagleBenchError, ServiceError
from eagle_bench.results import CellFailure, CellResult, CellSettings, Counts

Stage = Literal["stage_data", "deploy", "smoke_test", "benchmark"]
KEY = "failure"


def failure_of(stage: Stage, error: Exception) -> CellFailure:
    """The failure that an error means; one that nobody expected leaves its traceback in the log."""
    if isinstance(error, ServiceError):
        return CellFailure(stage=stage, kind=error.kind, message=str(error))
    if isinstance(error, EagleBenchError):
        return CellFailure(stage=stage, kind="input", message=str(error))
    traceback.print_exception(error)
    return CellFailure(stage=stage, kind="unexpected", message=f"{type(error).__name__}: {error}")


def write_failure(artifact: Any, failure: CellFailure) -> None:
    """Put a failure into an artifact's metadata, where the console shows it."""
    artifact.metadata[KEY] = failure.model_dump(mode="json")


def read_failure(*artifacts: Any) -> CellFailure | None:
    """The first failure that one of the artifacts holds."""
    for artifact in artifacts:
        if KEY in artifact.metadata:
            return CellFailure.model_validate(artifact.metadata[KEY])
    return None


def not_measured(
    run_id: str, variant: str, concurrency: int, settings: CellSettings | None, failure: CellFailure
) -> CellResult:
    """The result of a cell that no request was sent for."""
    return CellResult(
        run_id=run_id,
        variant=variant,
        concurrency=concurrency,
        settings=settings,
        counts=Counts(),
        metrics=None,
        acceptance=None,
        token_source=None,
        prompts=None,
        client=None,
        failure=failure,
    )
