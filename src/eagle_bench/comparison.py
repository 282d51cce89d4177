"""What a comparison says: `comparison.json`, the whole answer for machines.

A speed-up is baseline ÷ variant for times and variant ÷ baseline for rates: above 1 is better, always.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from eagle_bench.differences import Difference
from eagle_bench.results import SCHEMA_VERSION, CellResult, Record

Verdict = Literal["faster", "slower", "inconclusive", "invalid"]


class Interval(Record):
    """A ratio and its 95 % interval; ends are null where there is too little data for one."""

    estimate: float = Field(description="the ratio; above 1 is better")
    low: float | None = Field(description="bounds that hold for this level alone")
    high: float | None = Field(description="the upper one")
    family_low: float | None = Field(None, description="bounds that hold for all levels at once; the verdict's")
    family_high: float | None = Field(None, description="the upper one")


class Speedup(Record):
    """Baseline ÷ variant for times, variant ÷ baseline for rates; null where it can't be told."""

    tpot: Interval | None = Field(description="time per output token: the verdict's")
    e2e: Interval | None = Field(description="whole answers")
    throughput: Interval | None = Field(description="output tokens per second")
    ttft: Interval | None = Field(description="time to first token")


class LevelComparison(Record):
    """One variant against the baseline at one concurrency."""

    variant: str = Field(description="id of the variant")
    concurrency: int = Field(description="the level")
    verdict: Verdict = Field(description="faster, slower, inconclusive, or invalid: the two can't be compared")
    reasons: tuple[str, ...] = Field(description="why the verdict is what it is")
    speedup: Speedup | None = Field(description="null where the verdict is invalid")
    paired_prompts: int = Field(0, description="prompts that completed in both")
    short: bool = Field(False, description="too few requests or pairs for a verdict at this level, or it was cut short")
    more_prompts: int | None = Field(None, description="about how many more would settle an inconclusive level")
    drift: bool = Field(False, description="the rounds differ more than their prompts explain")
    break_even: float | None = Field(None, description="price of the variant ÷ price of the baseline at equal cost")

    @property
    def tpot(self) -> Interval | None:
        """The speed-up that the verdict rests on; None where the level is invalid, or too little of it was measured."""
        return self.speedup.tpot if self.speedup else None


class LevelBest(Record):
    """Which variant is best at one level; several where they can't be told apart, none where none is faster."""

    concurrency: int = Field(description="the level")
    variants: tuple[str, ...] = Field(description="ids of the best")


class Decision(Record):
    """The answer for one variant. `turn_on` null: can't tell yet, and `text` says why."""

    variant: str = Field(description="id of the variant")
    turn_on: bool | None = Field(description="whether to turn it on; null: can't tell yet")
    up_to_concurrency: int | None = Field(description="highest level that is faster; null without a limit or an answer")
    text: str = Field(description="the answer in words")
    crossover: int | None = Field(
        None,
        description="first level above `up_to_concurrency`, from which on none is surely faster: it is slower, or "
        "inconclusive; null where no higher one was measured, or that one has no valid result",
    )


class Warning(Record):
    """Something that makes a result suspect: what was seen, and what to do next."""

    code: str = Field(description="a stable word, see the codes")
    variant: str | None = Field(None, description="whom it is about; null: the whole")
    concurrency: int | None = Field(None, description="the level; null: all")
    text: str = Field(description="what was seen, with numbers, and what to do next")


class Bounded(Record):
    """A measured value and its 95 % interval; ends are null where there is too little data for one."""

    value: float = Field(description="as measured")
    low: float | None = Field(None, description="95 % interval, lower end")
    high: float | None = Field(None, description="upper end")


class CellView(Record):
    """One cell as the report draws it. All requests stay in `cell.json`; this is what they amount to."""

    variant: str = Field(description="id of the variant")
    concurrency: int = Field(description="the level")
    problem: str | None = Field(None, description="why the cell is out of the verdict")
    tpot_ms: Bounded | None = Field(None, description="median time per output token")
    ttft_ms: Bounded | None = Field(None, description="median time to first token")
    e2e_ms: Bounded | None = Field(None, description="median of whole answers")
    output_tokens_per_s: Bounded | None = Field(None, description="throughput")
    requests_per_s: Bounded | None = Field(None, description="requests answered")
    user_tokens_per_s: float | None = Field(None, description="1000 ÷ median TPOT")
    tpot_quantiles_ms: tuple[float, ...] = Field((), description="at 0, 2.5, 5, …, 100 %")
    ttft_quantiles_ms: tuple[float, ...] = Field((), description="the same of TTFT")
    inter_chunk_ms: float | None = Field(None, description="median of the requests' median gap between chunks")
    mean_output_tokens: float | None = Field(None, description="mean length of the answers")
    dollars_per_million_tokens: float | None = Field(None, description="of output, where a price was given")
    meets_slo: bool | None = Field(None, description="the 90th percentiles are within the objectives")


class FailureGroup(Record):
    """Failed requests of one cell with the same cause."""

    variant: str = Field(description="id of the variant")
    concurrency: int = Field(description="the level")
    kind: str = Field(description="what happened, see the codes")
    status: int | None = Field(description="HTTP status, null where no response came")
    body: str = Field(description="the server's words")
    count: int = Field(description="requests")


class Losslessness(Record):
    """Answers at temperature 0 against the baseline's, prompt by prompt."""

    variant: str = Field(description="id of the variant")
    concurrency: int = Field(description="the level")
    pairs: int = Field(description="answers held against each other")
    identical: int = Field(description="of them, equal")
    first_divergence: float | None = Field(None, description="median place of it, as a share of the answer")
    baseline_pairs: int | None = Field(None, description="the same for the baseline run twice")
    baseline_identical: int | None = Field(None, description="of them, equal")


class Plan(Record):
    """What a run set out to measure; what came in is held against it."""

    baseline: str = Field(description="id of the variant that the others are held against")
    variants: tuple[str, ...] = Field(description="ids, the baseline first")
    levels: tuple[int, ...] = Field(description="concurrencies, ascending")
    labels: dict[str, str] = Field(default_factory=dict, description="how the report calls variants")
    max_failure_rate: float = Field(0.02, description="above it a cell is out of the verdict")
    allow_difference: bool = Field(False, description="judge cells that were asked for different things all the same")
    price_per_hour: float | None = Field(None, description="dollars, of one endpoint")
    slo_ttft_ms: float | None = Field(None, description="objective for the time to first token")
    slo_tpot_ms: float | None = Field(None, description="objective for the time per output token")
    baseline_again: str | None = Field(None, description="a variant that is the baseline, run a second time")
    settings: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="per variant: model, image, arguments, … as the report shows them"
    )
    differences: dict[str, tuple[Difference, ...]] = Field(
        default_factory=dict, description="per variant: what is not as the baseline's, beyond speculation"
    )
    run: dict[str, str] = Field(
        default_factory=dict, description="run id, template hash, machine sharing, … as the report shows them"
    )
    left: tuple[str, ...] = Field((), description="what the run could not delete, and the commands that do")

    @property
    def candidates(self) -> tuple[str, ...]:
        """What could be turned on: all variants but the baseline and its second run, unless there is nothing else."""
        others = tuple(variant for variant in self.variants if variant != self.baseline)
        return tuple(variant for variant in others if variant != self.baseline_again) or others


class Comparison(Record):
    """`comparison.json`."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="of this file's form")
    plan: Plan = Field(description="what was set out to be measured")
    baseline: str = Field(description="id of the variant that the others are held against")
    variants: tuple[str, ...] = Field(description="ids, the baseline first")
    levels: tuple[int, ...] = Field(description="concurrencies, ascending")
    cells: tuple[CellResult, ...] = Field(description="what came in; the single requests are in each cell.json")
    comparisons: tuple[LevelComparison, ...] = Field(description="each variant against the baseline at each level")
    decisions: tuple[Decision, ...] = Field(description="the answer, a variant each")
    warnings: tuple[Warning, ...] = Field(description="what makes the result suspect, the gravest first")
    best: tuple[LevelBest, ...] = Field((), description="the best variant of each level")
    views: tuple[CellView, ...] = Field((), description="the cells as the report draws them")
    failures: tuple[FailureGroup, ...] = Field((), description="failed requests, by cause")
    losslessness: tuple[Losslessness, ...] = Field((), description="whether the answers stayed the same")
