"""The files that a run leaves: `cell.json` (one variant at one concurrency) and what it holds.

Missing is `None`, never 0. Times are milliseconds (`_ms`) or seconds (`_s`); rates are per second.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Literal[1] = 1

TokenSource = Literal["usage", "tokenizer"]
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

    kind: ErrorKind
    status: int | None = Field(None, description="HTTP status, None where no response came")
    body: str = Field("", description="the server's words, cut at 2,000 characters")


class RequestRecord(Record):
    """One measured request. A failed one keeps what was seen of it, and its error."""

    prompt_id: str
    kind: str | None = Field(None, description="kind of prompt: chat, code, …")
    round: int = Field(ge=0)
    start_s: float = Field(description="first byte of the request written, seconds since the cell's start")
    ttft_ms: float | None = Field(None, description="start to the first chunk with content")
    e2e_ms: float | None = Field(None, description="start to the last chunk with content")
    end_s: float | None = Field(None, description="gave its place to the next request, seconds since the cell's start")
    connect_ms: float | None = Field(None, description="waiting for a connection, not part of TTFT")
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    first_chunk_tokens: int | None = Field(None, description="tokens in the first content chunk, where known")
    chunks: int = Field(0, description="chunks with content")
    inter_chunk_ms_p50: float | None = None
    text: str | None = Field(None, description="the answer, unless `store_text` is false")
    text_sha256: str | None = None
    error: RequestError | None = None


class Counts(Record):
    """Requests of a cell: requested = completed + failed; empty answers are among the failed."""

    requested: int = 0
    completed: int = 0
    failed: int = 0
    empty: int = 0


class Summary(Record):
    """A distribution in milliseconds over completed requests."""

    p50: float
    p90: float | None = Field(description="None in results of others that do not say it")
    p99: float | None = Field(None, description="only from 100 requests on")
    mean: float


class CellMetrics(Record):
    """What the completed requests of a cell amount to."""

    tpot_ms: Summary | None
    ttft_ms: Summary
    e2e_ms: Summary | None = Field(description="None in results of others that do not say it")
    output_tokens_per_s: float | None
    requests_per_s: float | None
    goodput: float | None = Field(None, description="requests per second that met the SLO")
    mean_output_tokens: float | None = None


class Acceptance(Record):
    """Mean tokens that one step of the target yields; 1.0 is no help at all."""

    length: float = Field(ge=1.0)
    source: AcceptanceSource
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    drafts: int | None = None
    by_position: tuple[float, ...] | None = Field(None, description="share accepted at draft position 1, 2, …")


class PromptsUsed(Record):
    count: int
    sha256: str = Field(description="of the ids and texts of the measured prompts, in order")
    known_by: Literal["texts", "lengths", "nothing"] = Field(
        "texts", description="what `sha256` is of; results of others tell lengths only, or ones that tell nothing apart"
    )


class ClientHealth(Record):
    """Whether the client could have been the bottleneck."""

    loop_lag_ms_p99: float | None
    loop_lag_ms_mean: float | None = Field(None, description="what a stamp is late by on average")
    processes: int = 1
    cpu_fraction: float | None = Field(None, description="CPU time ÷ (wall time × processes)")
    retries: int = 0


class RoundWindow(Record):
    """One repeat of a cell. Rates are over the window in which the concurrency was held."""

    round: int
    start_s: float
    end_s: float
    window_start_s: float
    window_end_s: float
    output_tokens_per_s: float | None
    requests_per_s: float | None


class Capabilities(Record):
    """What one request before the cell found out about the endpoint."""

    usage_in_stream: bool
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_options: bool = False
    metrics: bool = Field(False, description="an engine's /metrics could be read")
    server_model: str | None = None


class CellSettings(Record):
    """What was asked for; equal in all variants but for nothing."""

    max_output_tokens: int
    temperature: float = 0.0
    ignore_eos: bool = False
    requests: int
    rounds: int
    warmup_requests: int
    request_timeout_s: float
    max_failure_rate: float = 0.02
    seed: int = 0
    shape: str | None = Field(None, description="label of a synthetic or `ignore_eos` workload")
    store_text: bool = Field(True, description="keep the answers' texts, for the losslessness check")
    precision: float | None = Field(
        None, gt=0, lt=1, description="end after a whole round once the 95 % intervals are narrower than this"
    )
    slo_ttft_ms: float | None = None
    slo_tpot_ms: float | None = None
    payload_sha256: str | None = Field(None, description="of the request body without model and messages")


class Saving(Record):
    """What ending a cell early saved, once it knew enough. Widths are of 95 % intervals, as shares of their middle."""

    rounds: int
    requests: int
    tpot_width: float
    throughput_width: float


class CellFailure(Record):
    """Why a cell has no measurement: the stage that failed and what it said."""

    stage: Literal["stage_data", "deploy", "smoke_test", "benchmark"]
    kind: str
    message: str


class CellResult(Record):
    """One variant at one concurrency: `cell.json`."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str | None = None
    variant: str
    concurrency: int = Field(ge=1)
    started_at: str | None = Field(None, description="ISO 8601, UTC")
    duration_s: float | None = None
    settings: CellSettings | None
    environment: dict[str, str] = Field(default_factory=dict)
    capabilities: Capabilities | None = None
    counts: Counts
    metrics: CellMetrics | None
    acceptance: Acceptance | None
    token_source: TokenSource | None
    prompts: PromptsUsed | None
    client: ClientHealth | None
    rounds: tuple[RoundWindow, ...] = ()
    warnings: tuple[str, ...] = ()
    saving: Saving | None = Field(None, description="where `precision` ended the cell before its last round")
    failure: CellFailure | None = None
    requests: tuple[RequestRecord, ...] = ()
