"""Finite numbers with stable names, for `system.Metrics` and Vertex Experiments.

<metric>.<variant>.c<concurrency>       what was measured
speedup.<metric>.<variant>.c<concurrency>, and .low / .high of the TPOT one
decision.<variant>.turn_on              1 yes, 0 no; absent when it can't be told
decision.<variant>.up_to_concurrency    absent without a limit
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from eagle_bench.comparison import Comparison
from eagle_bench.report import cell as one_cell


def scalars(comparison: Comparison) -> dict[str, float]:
    """All numbers of a comparison that a run can be compared by; what is unknown is absent, never 0."""
    found: list[tuple[str, float | None]] = []
    for decision in comparison.decisions:
        base = f"decision.{decision.variant}"
        found.append((f"{base}.turn_on", None if decision.turn_on is None else float(decision.turn_on)))
        found.append((f"{base}.up_to_concurrency", decision.up_to_concurrency))
    for level in comparison.comparisons:
        if level.verdict == "invalid":
            continue
        at = f"{level.variant}.c{level.concurrency}"
        for metric in ("tpot", "throughput", "e2e", "ttft"):
            interval = getattr(level.speedup, metric, None)
            if interval is not None:
                found.append((f"speedup.{metric}.{at}", interval.estimate))
                if metric == "tpot":
                    found += [(f"speedup.tpot.{at}.low", interval.low), (f"speedup.tpot.{at}.high", interval.high)]
    for cell in comparison.cells:
        at = f"{cell.variant}.c{cell.concurrency}"
        found += [(f"{key}.{at}", value) for key, value in one_cell.scalars(cell).items()]
    found.append(("warnings", len(comparison.warnings)))
    return finite(found)


def finite(pairs: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """The pairs whose value is a number."""
    return {key: float(value) for key, value in pairs if value is not None and math.isfinite(value)}
