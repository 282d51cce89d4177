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
    family_low: float | None = Field(None, description="bounds that hold for all levels at once; the verdict's")
    family_high: float | None = None


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
    more_prompts: int | None = Field(None, description="about how many more would settle an inconclusive level")
    drift: bool = Field(False, description="the rounds differ more than their prompts explain")
    break_even: float | None = Field(None, description="price of the variant ÷ price of the baseline at equal cost")


class LevelBest(Record):
    """Which variant is best at one level; several where they can't be told apart, none where none is faster."""

    concurrency: int
    variants: tuple[str, ...]


class Decision(Record):
    """The answer for one variant. `turn_on` None: can't tell yet, and `text` says why."""

    variant: str
    turn_on: bool | None
    up_to_concurrency: int | None
    text: str
    crossover: int | None = Field(None, description="first level from which none is faster; None where none was found")


class Warning(Record):
    """Something that makes a result suspect: what was seen, and what to do next."""

    code: str
    variant: str | None = None
    concurrency: int | None = None
    text: str


class Bounded(Record):
    """A measured value and its 95 % interval; ends are None where there is too little data for one."""

    value: float
    low: float | None = None
    high: float | None = None


class CellView(Record):
    """One cell as the report draws it. All requests stay in `cell.json`; this is what they amount to."""

    variant: str
    concurrency: int
    problem: str | None = Field(None, description="why the cell is out of the verdict")
    tpot_ms: Bounded | None = None
    ttft_ms: Bounded | None = None
    e2e_ms: Bounded | None = None
    output_tokens_per_s: Bounded | None = None
    requests_per_s: Bounded | None = None
    user_tokens_per_s: float | None = Field(None, description="1000 ÷ median TPOT")
    tpot_quantiles_ms: tuple[float, ...] = Field((), description="at 0, 2.5, 5, …, 100 %")
    ttft_quantiles_ms: tuple[float, ...] = ()
    inter_chunk_ms: float | None = Field(None, description="median of the requests' median gap between chunks")
    mean_output_tokens: float | None = None
    dollars_per_million_tokens: float | None = None
    meets_slo: bool | None = None


class FailureGroup(Record):
    """Failed requests of one cell with the same cause."""

    variant: str
    concurrency: int
    kind: str
    status: int | None
    body: str
    count: int


class Losslessness(Record):
    """Answers at temperature 0 against the baseline's, prompt by prompt."""

    variant: str
    concurrency: int
    pairs: int
    identical: int
    first_divergence: float | None = Field(None, description="median place of it, as a share of the answer")
    baseline_pairs: int | None = Field(None, description="the same for the baseline run twice")
    baseline_identical: int | None = None


class Plan(Record):
    """What a run set out to measure; what came in is held against it."""

    baseline: str
    variants: tuple[str, ...]
    levels: tuple[int, ...]
    labels: dict[str, str] = Field(default_factory=dict)
    max_failure_rate: float = 0.02
    allow_difference: bool = Field(False, description="judge cells that were asked for different things all the same")
    price_per_hour: float | None = None
    slo_ttft_ms: float | None = None
    slo_tpot_ms: float | None = None
    baseline_again: str | None = Field(None, description="a variant that is the baseline, run a second time")
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
    best: tuple[LevelBest, ...] = ()
    views: tuple[CellView, ...] = ()
    failures: tuple[FailureGroup, ...] = ()
    losslessness: tuple[Losslessness, ...] = ()
