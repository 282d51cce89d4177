"""What commands print with `--json`: how they ended, for scripts."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from eagle_bench.comparison import Comparison, Decision, LevelComparison, Warning
from eagle_bench.regression import Regression
from eagle_bench.results import Record
from eagle_bench.run_plan import RunPlan


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


class Undeleted(Record):
    """What could not be deleted."""

    resource: str = Field(description="resource name")
    why: str = Field(description="what the service said")
    command: str = Field(description="what deletes it by hand")


class RunOutcome(Record):
    """How a run on this machine ended."""

    run_id: str = Field(description="id of the run")
    state: str = Field(description="SUCCEEDED, FAILED or CANCELLED")
    error: str | None = Field(None, description="why it did not succeed")
    cells: int = Field(description="cells that were measured")
    planned: int = Field(description="cells that should have been")
    out: str = Field(description="folder of the results")
    report: str | None = Field(None, description="the report; null where nothing was measured")
    comparison: str | None = Field(None, description="the whole answer; null where nothing was measured")
    answer: Answer | None = Field(None, description="the answer in short")
    left: tuple[Undeleted, ...] = Field((), description="endpoints and models that could not be deleted")


class Worse(Record):
    """A metric that got worse than the gate allows."""

    variant: str = Field(description="id of the variant")
    concurrency: int = Field(description="the level")
    metric: str = Field(
        description="its name; `result` where a whole cell is lost, `verdict` where it can be compared no more"
    )
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


class SubmitOutcome(Record):
    """The job that was submitted and, with `--wait`, how it ended."""

    run_id: str = Field(description="id of the run: `cleanup` takes it")
    job: str = Field(description="resource name of the pipeline job")
    console: str | None = Field(description="its page in the console; null where it runs on this machine")
    state: str | None = Field(None, description="its last state; null without `--wait`")
    error: str | None = Field(None, description="why it did not succeed")


class Leftover(Record):
    """An endpoint or a model that a run made and that is still there."""

    resource: str = Field(description="resource name")
    run: str | None = Field(description="label of the run; null where it has none")
    created: datetime = Field(description="UTC")
    job: str | None = Field(None, description="state of the run's job as long as it has not ended: it needs this")


class CleanupOutcome(Record):
    """What was found and what became of it."""

    found: tuple[Leftover, ...] = Field(description="endpoints and models")
    deleted: tuple[str, ...] = Field((), description="resource names; empty without `--yes`")
    left: tuple[Undeleted, ...] = Field((), description="what could not be deleted")


PRINTED: dict[str, type[BaseModel]] = {
    "run": RunOutcome,
    "fetch": RunOutcome,
    "plan": RunPlan,
    "compare": CompareOutcome,
    "submit": SubmitOutcome,
    "cleanup": CleanupOutcome,
}
