"""The files that a run leaves: `cell.json` (one variant at one concurrency) and what it holds.

Missing is `None`, never 0. Times are milliseconds (`_ms`) or seconds (`_s`); rates are per second.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Literal[1] = 1

TokenSource = Literal["usage", "tokenizer", "mixed"]
AcceptanceSource = Literal["response", "metrics", "chunks"]
ErrorKind = Literal[
    "authentication",
    "quota",
    "overload",
    "timeout",
    "dropped-stream",
    "malformed-stream",
    "server-error",
    "refused",
    "connection",
    "empty",
    "other",
]


class Record(BaseModel):
    """Base of every stored value: frozen, unknown keys refused, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RequestError(Record):
    """Why one request failed."""

    kind: ErrorKind = Field(description="what happened, see the codes")
    status: int | None = Field(None, description="HTTP status, null where no response came")
    body: str = Field("", description="the server's words, cut at 2,000 characters")


class RequestRecord(Record):
    """One measured request. A failed one keeps what was seen of it, and its error."""

    prompt_id: str = Field(description="which prompt: equal texts have equal ids")
    kind: str | None = Field(None, description="kind of prompt: chat, code, …")
    round: int = Field(ge=0, description="which repeat it was part of, from 0")
    start_s: float = Field(description="first byte of the request written, seconds since the cell's start")
    ttft_ms: float | None = Field(None, description="start to the first chunk with content")
    e2e_ms: float | None = Field(None, description="start to the last chunk with content")
    end_s: float | None = Field(None, description="gave its place to the next request, seconds since the cell's start")
    connect_ms: float | None = Field(None, description="waiting for a connection, not part of TTFT")
    prompt_tokens: int | None = Field(None, description="tokens of the prompt, where known")
    output_tokens: int | None = Field(None, description="tokens of the answer, see `token_source`")
    first_chunk_tokens: int | None = Field(None, description="tokens in the first content chunk, where known")
    cached_tokens: int | None = Field(
        None, description="tokens of the prompt that came from the server's prefix cache, where told"
    )
    hidden_tokens: int | None = Field(
        None, description="reasoning that the server counted and did not stream; not in `output_tokens`"
    )
    chunks: int = Field(0, description="chunks with content")
    inter_chunk_ms_p50: float | None = Field(None, description="median gap between chunks with content; not TPOT")
    text: str | None = Field(None, description="the answer, unless `store_text` is false")
    text_sha256: str | None = Field(None, description="of the answer")
    error: RequestError | None = Field(None, description="why it failed; null where it completed")


class Counts(Record):
    """Requests of a cell: requested = completed + failed; empty answers are among the failed."""

    requested: int = Field(0, description="sent")
    completed: int = Field(0, description="answered whole")
    failed: int = Field(0, description="in no metric")
    empty: int = Field(0, description="answered without content; among the failed")


class Summary(Record):
    """A distribution in milliseconds over completed requests."""

    p50: float = Field(description="median")
    p90: float | None = Field(description="90 % are not above it; null in results of others that do not say it")
    p99: float | None = Field(None, description="99 % are not above it; only from 100 requests on")
    mean: float = Field(description="arithmetic mean")


class CellMetrics(Record):
    """What the completed requests of a cell amount to."""

    tpot_ms: Summary | None = Field(description="time per output token; null where no answer had two tokens")
    ttft_ms: Summary = Field(description="time to first token")
    e2e_ms: Summary | None = Field(description="whole answers; null in results of others that do not say it")
    output_tokens_per_s: float | None = Field(description="throughput while the concurrency was held")
    requests_per_s: float | None = Field(description="requests answered, over the same time")
    goodput: float | None = Field(None, description="requests per second that met the SLO")
    cached_prompt_share: float | None = Field(
        None, description="part of the prompts' tokens that came from the server's prefix cache, where told"
    )
    mean_output_tokens: float | None = Field(None, description="mean length of the answers")


class Acceptance(Record):
    """Mean tokens that one step of the target yields; 1.0 is no help at all."""

    length: float = Field(ge=1.0, description="mean tokens a step")
    source: AcceptanceSource = Field(description="who tells: the responses, the engine's metrics, or tokens a chunk")
    drafted_tokens: int | None = Field(None, description="proposed by the draft, where told")
    accepted_tokens: int | None = Field(None, description="of them, taken by the target")
    drafts: int | None = Field(None, description="steps before which something was drafted")
    steps: int | None = Field(None, description="steps of the target in all, where known")
    by_position: tuple[float, ...] | None = Field(None, description="share accepted at draft position 1, 2, …")

    @property
    def length_of_drafted(self) -> float:
        """Mean tokens of a step that had a draft: tells a broken draft from one that seldom has something to say."""
        if not self.drafts or self.accepted_tokens is None:
            return self.length
        return 1 + self.accepted_tokens / self.drafts


class PromptsUsed(Record):
    """Which prompts a cell was measured with."""

    count: int = Field(description="prompts measured")
    sha256: str = Field(description="of the ids and texts of the measured prompts, in order")
    known_by: Literal["texts", "lengths", "nothing"] = Field(
        "texts", description="what `sha256` is of; results of others tell lengths only, or ones that tell nothing apart"
    )


class ClientHealth(Record):
    """Whether the client could have been the bottleneck."""

    loop_lag_ms_p99: float | None = Field(description="by how much the event loop was late, worst process")
    loop_lag_ms_mean: float | None = Field(None, description="what a stamp is late by on average")
    processes: int = Field(1, description="that shared the streams")
    cpu_fraction: float | None = Field(None, description="CPU time ÷ (wall time × processes)")
    retries: int = Field(0, description="requests sent again; none are")


class RoundWindow(Record):
    """One repeat of a cell. Rates are over the window in which the concurrency was held."""

    round: int = Field(description="which, from 0")
    start_s: float = Field(description="first request, seconds since the cell's start")
    end_s: float = Field(description="last answer")
    window_start_s: float = Field(description="from here on the concurrency was held")
    window_end_s: float = Field(description="until here")
    output_tokens_per_s: float | None = Field(description="throughput in the window")
    requests_per_s: float | None = Field(description="requests answered in the window")


class Capabilities(Record):
    """What one request before the cell found out about the endpoint."""

    usage_in_stream: bool = Field(description="streams tell their token counts")
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="the name it takes for the limit of an answer"
    )
    stream_options: bool = Field(False, description="it takes `stream_options`")
    metrics: bool = Field(False, description="an engine's /metrics could be read")
    server_model: str | None = Field(None, description="what the server calls its model")


class CellSettings(Record):
    """What was asked for; a comparison needs it to be the same in all variants."""

    max_output_tokens: int = Field(description="limit of an answer")
    temperature: float = Field(0.0, description="of sampling; 0 is greedy")
    ignore_eos: bool = Field(False, description="answers of fixed length")
    requests: int = Field(description="to measure, in all rounds")
    rounds: int = Field(description="repeats")
    warmup_requests: int = Field(description="sent before and thrown away")
    request_timeout_s: float = Field(description="limit of one answer")
    max_failure_rate: float = Field(0.02, description="above it the cell is out of the verdict")
    seed: int = Field(0, description="chose among the prompts")
    shape: str | None = Field(None, description="label of a synthetic or `ignore_eos` workload")
    store_text: bool = Field(True, description="keep the answers' texts, for the losslessness check")
    precision: float | None = Field(
        None, gt=0, lt=1, description="end after a whole round once the 95 % intervals are narrower than this"
    )
    slo_ttft_ms: float | None = Field(None, description="objective for goodput: time to first token")
    slo_tpot_ms: float | None = Field(None, description="objective for goodput: time per output token")
    payload_sha256: str | None = Field(
        None,
        description="of what the request body asks for, without model and messages, in one spelling for all endpoints",
    )


class Saving(Record):
    """What ending a cell early saved, once it knew enough. Widths are of 95 % intervals, as shares of their middle."""

    rounds: int = Field(description="not measured")
    requests: int = Field(description="not sent")
    tpot_width: float = Field(description="of the interval of the median TPOT")
    throughput_width: float = Field(description="of the interval of the throughput")


class CellFailure(Record):
    """Why a cell has no measurement: the stage that failed and what it said."""

    stage: Literal["stage_data", "deploy", "smoke_test", "benchmark"] = Field(description="what failed")
    kind: str = Field(description="a word for the cause, see the codes")
    message: str = Field(description="what happened, with the words of the system that refused")


class CellResult(Record):
    """One variant at one concurrency: `cell.json`."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="of this file's form")
    run_id: str | None = Field(None, description="the run that it is part of")
    variant: str = Field(description="id of the variant")
    concurrency: int = Field(ge=1, description="requests in flight")
    started_at: str | None = Field(None, description="ISO 8601, UTC")
    duration_s: float | None = Field(None, description="of the whole cell, probe and warm-up included")
    settings: CellSettings | None = Field(description="what was asked for; null in results of others")
    environment: dict[str, str] = Field(default_factory=dict, description="versions, image, machine, …")
    capabilities: Capabilities | None = Field(None, description="what the endpoint takes")
    counts: Counts = Field(description="requests, failed ones too")
    metrics: CellMetrics | None = Field(description="null where nothing completed; never 0")
    acceptance: Acceptance | None = Field(description="of drafted tokens, where something tells")
    token_source: TokenSource | None = Field(
        description="who counted the output tokens; `mixed`: not the same for all answers, so that no verdict rests on them"
    )
    prompts: PromptsUsed | None = Field(description="equal in all variants of a level")
    client: ClientHealth | None = Field(description="of the measuring process")
    rounds: tuple[RoundWindow, ...] = Field((), description="the repeats")
    warnings: tuple[str, ...] = Field((), description="`CODE: text`, see the codes")
    saving: Saving | None = Field(None, description="where `precision` ended the cell before its last round")
    failure: CellFailure | None = Field(None, description="why there is no measurement")
    requests: tuple[RequestRecord, ...] = Field((), description="every measured request, failed ones too")
