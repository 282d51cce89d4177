"""The levels of one variant in one artifact: at most 100 artifacts may feed one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from eagle_bench.results import CellResult


def collect(cells: Sequence[Any], checked: Any, summary: Any) -> None:
    """Write the cells of one variant, one a line: those that were measured, and those that `smoke` gave up."""
    results = sorted(collected((*cells, checked)), key=lambda r: r.concurrency)
    Path(summary.path).write_text("".join(r.model_dump_json() + "\n" for r in results), encoding="utf-8")
    summary.metadata["cells"] = len(results)


def collected(artifacts: Iterable[Any]) -> Iterator[CellResult]:
    """The cells in all these artifacts, one a line of each."""
    for artifact in artifacts:
        with Path(artifact.path).open(encoding="utf-8") as lines:
            for line in lines:
                yield CellResult.model_validate_json(line)
