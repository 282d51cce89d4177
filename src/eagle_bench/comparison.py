"""What a comparison says: `comparison.json`, the whole answer for machines.

A speed-up is baseline ÷ variant for times and variant ÷ baseline for rates: above 1 is better, always.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eagle_bench.results import SCHEMA_VERSION, CellResult, Record

Verdict = Literal["faster", "slower", "inconclusive", "invalid"]


class Interval(Record):
    """A ratio and its 95 % interval; ends are None where there is too little data for one."""

    estimate: float
    low: float | None
    high: float | None


class Speedup(Record):
    tpot: Interval | None
    e2e: Interval | None
    throughput: Interval | None
    ttft: Interval | None


class LevelComparison(Record):
    """One variant against the baseline at one concurrency."""

    variant: str
    concurrency: int
    verdict: Verdict
    reasons: tuple[str, ...]
    speedup: Speedup | None
    paired_prompts: int = 0


class Decision(Record):
    """The answer for one variant. `turn_on` None: can't tell yet, and `text` says why."""

    variant: str
    turn_on: bool | None
    up_to_concurrency: int | None
    text: str


class Warning(Record):
    """Something that makes a result suspect: what was seen, and what to do next."""

    code: str
    variant: str | None = None
    concurrency: int | None = None
    text: str


class Plan(Record):
    """What a run set out to measure; what came in is held against it."""

    baseline: str
    variants: tuple[str, ...]
    levels: tuple[int, ...]
    labels: dict[str, str] = Field(default_factory=dict)
    max_failure_rate: float = 0.02
    price_per_hour: float | None = None
    slo_ttft_ms: float | None = None
    slo_tpot_ms: float | None = None
    settings: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="per variant: model, image, arguments, … as the report shows them"
    )
    run: dict[str, str] = Field(
        default_factory=dict, description="run id, template hash, machine sharing, … as the report shows them"
    )


class Comparison(Record):
    """`comparison.json`."""

    schema_version: Literal[1] = SCHEMA_VERSION
    plan: Plan
    baseline: str
    variants: tuple[str, ...]
    levels: tuple[int, ...]
    cells: tuple[CellResult, ...]
    comparisons: tuple[LevelComparison, ...]
    decisions: tuple[Decision, ...]
    warnings: tuple[Warning, ...]
