"""The load that all variants get, and what the results are judged by: the parts of a config that travel to its cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from eagle_bench.fields import Contradiction, Count, Flag, Number, Positive, Price, Section, Whole
from eagle_bench.secrecy import Source


class Workload(Section):
    """Which prompts, how many, how long the answers."""

    dataset: Source = Field(
        "builtin",
        min_length=1,
        description="`builtin` (700 prompts, too few for the defaults: it goes with `concurrency: [1, 2, 4]` and "
        "`prompts_per_level: 200`), `sharegpt`, a path, gs:// or https:// address, `hf://owner/name[/file]`, "
        "or a shape `synthetic:INPUTxOUTPUT` in tokens",
        examples=["gs://my-bucket/prompts.jsonl"],
    )
    prompt_column: str | None = Field(
        None, description="column of a CSV file that holds the prompt; `prompt` when absent", examples=["question"]
    )
    prompts_per_level: Count = Field(
        1000,
        description="requests per level in all rounds together; where max(50, 20 × concurrency) is more, that many",
        examples=[400],
        json_schema_extra={"unit": "requests"},
    )
    max_output_tokens: Count = Field(512, description="limit of an answer", examples=[256])
    min_prompt_tokens: Count = Field(4, description="shorter prompts are left out", examples=[32])
    max_prompt_tokens: Count = Field(
        1024, description="longer prompts, with the chat template, are left out", examples=[8192]
    )
    ignore_eos: Flag = Field(False, description="answers of fixed length; the report labels it", examples=[True])
    request_timeout_s: Positive = Field(600.0, description="limit of one answer", examples=[120.0])
    seed: Whole = Field(0, description="chooses among the prompts of a larger data set", examples=[7])
    precision: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        0.02,
        description="a cell ends after a whole round (never before the third) once its intervals are narrower than "
        "this share; null: never early",
        examples=[0.05],
        json_schema_extra={"unit": "share"},
    )
    store_text: Flag = Field(True, description="keep the answers' texts, for the losslessness check", examples=[False])

    def contradictions(self) -> Iterator[Contradiction]:
        if self.min_prompt_tokens > self.max_prompt_tokens:
            fields = ("min_prompt_tokens", "max_prompt_tokens")
            yield Contradiction(fields, "`min_prompt_tokens` is above `max_prompt_tokens`: no prompt fits.")

    def requests_at(self, concurrency: int) -> int:
        """Requests of one cell: what was asked for, never under the least that gives an answer."""
        return max(self.prompts_per_level, least_requests(concurrency))


class Slo(Section):
    """What an interactive user needs; goodput counts the requests that met it."""

    ttft_ms: Positive | None = Field(None, description="limit for the time to first token", examples=[500.0])
    tpot_ms: Positive | None = Field(None, description="limit for the time per output token", examples=[30.0])


class Criteria(Section):
    """What the results are judged by."""

    max_failure_rate: Annotated[Number, Field(ge=0, lt=1)] = 0.02
    price_per_hour: Price | None = None
    slo: Slo | None = None
    baseline_again: str | None = None
    allow_difference: tuple[str, ...] = ()


def least_requests(concurrency: int) -> int:
    """Requests below which a cell says nothing: max(50, 20 × concurrency)."""
    return max(50, 20 * concurrency)
