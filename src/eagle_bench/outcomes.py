"""What commands print with `--json`: how they ended, for scripts."""

from __future__ import annotations

from pydantic import BaseModel, Field

from eagle_bench.comparison import Comparison, Decision, LevelComparison, Warning
from eagle_bench.regression import Regression
from eagle_bench.results import Record


class Answer(Record):
    """A comparison without its measurements: those are in comparison.json."""

    baseline: str = Field(description="id of the variant that the others are held against")
    decisions: tuple[Decision, ...] = Field(description="the answer, a variant each")
    comparisons: tuple[LevelComparison, ...] = Field(description="each variant against the baseline at each level")
    warnings: tuple[Warning, ...] = Field(description="what makes the result suspect")

    @classmethod
    def of(cls, comparison: Comparison) -> Answer:
        return cls(
            baseline=comparison.baseline,
            decisions=comparison.decisions,
            comparisons=comparison.comparisons,
            warnings=comparison.warnings,
        )


class Worse(Record):
    """A metric that got worse than the gate allows."""

    variant: str = Field(description="id of the variant")
    concurrency: int = Field(description="the level")
    metric: str = Field(description="its name; `result` where a whole cell is lost")
    before: str = Field(description="as it was, with its unit")
    now: str = Field(description="as it is")
    ratio: float | None = Field(description="how much worse, above 1; null where it is lost")

    @classmethod
    def of(cls, found: Regression) -> Worse:
        return cls(
            variant=found.variant,
            concurrency=found.concurrency,
            metric=found.metric,
            before=found.before,
            now=found.now,
            ratio=found.worse,
        )


class CompareOutcome(Record):
    """What a comparison says, and where it was written."""

    report: str = Field(description="the answer for people")
    summary: str = Field(description="the answer in short")
    comparison: str = Field(description="the whole answer")
    answer: Answer = Field(description="the answer in short")
    worse: tuple[Worse, ...] | None = Field(None, description="what failed the gate; null without `--against`")


PRINTED: dict[str, type[BaseModel]] = {"compare": CompareOutcome}
