"""Requests as arrays in which one row is the same prompt for every variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eagle_bench.intervals import Floats
from eagle_bench.metrics import tpot_ms
from eagle_bench.results import CellResult, PromptsUsed, RequestRecord
from eagle_bench.stats import Ints

Row = tuple[int, str, int]
"""Round, prompt, and how often that prompt came before in the round."""


@dataclass(frozen=True)
class Columns:
    """What one cell measured, a value a row; NaN where the request did not complete or has no such value."""

    ttft_ms: Floats
    e2e_ms: Floats
    tpot_ms: Floats
    output_tokens: Floats


@dataclass(frozen=True)
class Level:
    """One concurrency: the prompts of all its cells as rows, and a `Columns` for each variant."""

    rounds: Ints
    columns: Mapping[str, Columns]

    @classmethod
    def of(cls, cells: Mapping[str, CellResult]) -> Level:
        requests = {variant: _rows(cell.requests) for variant, cell in cells.items()}
        rows = sorted({row for records in requests.values() for row in records})
        columns = {
            variant: Columns(*(np.array(column, dtype=np.float64) for column in _columns(rows, records)))
            for variant, records in requests.items()
        }
        return cls(np.array([row[0] for row in rows], dtype=np.int64), columns)


def different_prompts(one: CellResult, other: CellResult) -> bool:
    """Whether two cells are known to have got different prompts."""
    if one.prompts is None or other.prompts is None or _two_kinds(one.prompts, other.prompts):
        return False
    return one.prompts.sha256 != other.prompts.sha256


def unproven_prompts(one: CellResult, other: CellResult) -> str | None:
    """Why nothing shows whether two cells got the same prompts; None where something does."""
    if one.prompts is None or other.prompts is None:
        return None
    if _two_kinds(one.prompts, other.prompts):
        mine, theirs = (one, other) if one.prompts.known_by == "texts" else (other, one)
        return (
            f"{mine.variant}'s file knows its prompts by their texts, {theirs.variant}'s (of another tool) by their lengths "
            "at most: two files of different kinds can't be shown to have the same prompts"
        )
    if one.prompts.known_by == "nothing" and not different_prompts(one, other):
        return (
            "the files tell prompts by their lengths only, and these are too much alike to show that both variants got "
            "the same prompts"
        )
    return None


def _two_kinds(one: PromptsUsed, other: PromptsUsed) -> bool:
    return (one.known_by == "texts") != (other.known_by == "texts")


def _rows(requests: tuple[RequestRecord, ...]) -> dict[Row, RequestRecord]:
    seen: Counter[tuple[int, str]] = Counter()
    rows: dict[Row, RequestRecord] = {}
    for request in requests:
        key = request.round, request.prompt_id
        rows[(*key, seen[key])] = request
        seen[key] += 1
    return rows


def _columns(rows: list[Row], records: Mapping[Row, RequestRecord]) -> list[list[float]]:
    out: list[list[float]] = [[], [], [], []]
    for row in rows:
        record = records.get(row)
        for column, value in zip(out, _values(record), strict=True):
            column.append(np.nan if value is None else value)
    return out


def _values(record: RequestRecord | None) -> tuple[float | None, float | None, float | None, float | None]:
    if record is None or record.error is not None:
        return None, None, None, None
    return record.ttft_ms, record.e2e_ms, tpot_ms(record), record.output_tokens
