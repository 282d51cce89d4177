"""What can't be in a cell that was measured: numbers that no clock gives, parts that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eagle_bench import metrics
from eagle_bench.results import CellResult
from eagle_bench.workload.conversations import is_text

MOST_CONCURRENCY = 999_999
LEAST, MOST = 1e-12, 1e12  # beside 0: no clock and no engine gives less or more, in whatever unit
ROUNDING = 0.01


def damage(cell: CellResult) -> str | None:
    """The first thing in a cell that can't be, with its field; None where all can.

    `requests` may be cut short, so only what they hold beyond the rest is a contradiction.
    """
    if not is_name(cell.variant):
        return "`variant` is empty"
    if cell.concurrency > MOST_CONCURRENCY:
        return f"`concurrency` must be at most {MOST_CONCURRENCY}"
    found = (*_in_counts(cell), *_out_of_range(cell.model_dump(exclude={"settings": {"seed"}}), ""), *_in_metrics(cell))
    return next(iter(found), None)


def is_name(text: str) -> bool:
    """Whether a text can name a variant: something to see, and whole characters only."""
    return bool(text.strip()) and is_text(text)


def _in_counts(cell: CellResult) -> Iterator[str]:
    counts, held = cell.counts, metrics.counts(cell.requests)
    if counts.requested != counts.completed + counts.failed:
        yield (
            f"`counts.requested` is {counts.requested}, but {counts.completed} completed and {counts.failed} failed: "
            "requested = completed + failed"
        )
    for name in ("completed", "failed", "empty"):
        said, there = getattr(counts, name), getattr(held, name)
        if there > said:
            yield f"`counts.{name}` is {said}, but {there} of `requests` are: the file is damaged"


def _in_metrics(cell: CellResult) -> Iterator[str]:
    """Medians and means lie within what they are of."""
    if cell.metrics is None:
        return
    ttft = [one.ttft_ms for one in cell.requests if one.error is None and one.ttft_ms is not None]
    if len(ttft) == cell.counts.completed:
        yield from _outside("metrics.ttft_ms.p50", cell.metrics.ttft_ms.p50, ttft, "requests")
    for name in ("output_tokens_per_s", "requests_per_s"):
        of_rounds = [getattr(one, name) for one in cell.rounds]
        yield from _outside(f"metrics.{name}", getattr(cell.metrics, name), of_rounds, "rounds")


def _outside(field: str, value: float | None, parts: Sequence[float | None], name: str) -> Iterator[str]:
    known = [part for part in parts if part is not None]
    if value is not None and known:
        low, high = min(known), max(known)
        if not low * (1 - ROUNDING) <= value <= high * (1 + ROUNDING):
            yield f"`{field}` is {value:.6g}, but those of `{name}` are from {low:.6g} to {high:.6g}: the file is damaged"


def _out_of_range(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _out_of_range(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for key, inner in enumerate(value):
            yield from _out_of_range(inner, f"{place}.{key}")
    elif isinstance(value, int | float) and value and not LEAST <= value <= MOST:
        wrong = "below 0" if value < 0 else "too large" if value > 1 else "too small to have been measured"
        yield f"`{place}` is {wrong}"
