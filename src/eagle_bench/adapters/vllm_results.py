"""One result of `vllm bench serve --save-result` as a cell.

Traps of the format: a run in which every request failed has 0.0 for every metric; the failed ones stand among
the details with a TTFT of 0; an answer of 200 without content counts as completed there; times are seconds in
the details and milliseconds in the sums; versions before 0.11 have no `failed`, no `start_times` and no
`latencies`, and spell one key `request_goodput:`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from eagle_bench import metrics
from eagle_bench.adapters.vllm_result_numbers import refuse_nonsense
from eagle_bench.results import (
    Acceptance,
    CellMetrics,
    CellResult,
    Counts,
    PromptsUsed,
    RequestError,
    RequestRecord,
    Summary,
)

_BODY_LIMIT = 2000
_LEAST_LENGTHS, _MOST_ALIKE = 8, 0.5
"""Prompts are known by their lengths where there are so many different ones, and no one has more than this share."""


def cell_of(data: Mapping[str, Any], variant: str, concurrency: int) -> CellResult:
    """The cell that a result tells of; without details it has sums only.

    Raises:
        KeyError, TypeError, ValueError: it is not such a result.
    """
    refuse_nonsense(data)
    records = _records(data)
    timed = bool(records) and len(data.get("start_times") or ()) == len(records)
    window = metrics.round_window(records, concurrency) if timed else None
    counts = metrics.counts(records) if records else _counts(data)
    found = _metrics(data, records, [window] if window else [], counts)
    return CellResult(
        variant=variant,
        concurrency=concurrency,
        started_at=None,
        duration_s=data.get("duration"),
        settings=None,
        environment={
            "client": "vllm bench serve",
            **_named(data, "backend", "model_id", "tokenizer_id", "request_rate"),
        },
        counts=counts,
        metrics=found,
        acceptance=_acceptance(data) if found else None,
        token_source=None,
        prompts=_prompts(data),
        client=None,
        rounds=(window,) if window else (),
        requests=tuple(records),
    )


def _records(data: Mapping[str, Any]) -> list[RequestRecord]:
    ttfts, gaps, lengths = data.get("ttfts"), data.get("itls"), data.get("output_lens")
    if not ttfts or gaps is None or lengths is None:
        return []
    size = len(ttfts)
    latencies, starts = _column(data, "latencies", size), _column(data, "start_times", size)
    texts, errors, inputs = (_column(data, name, size) for name in ("generated_texts", "errors", "input_lens"))
    first = min((start for start in starts if start is not None), default=0.0)
    # Where the lengths don't tell which prompts these were, the ids are this file's own: nothing is paired by its place.
    slice_id = (_slice_id(data) if _identified(data) else _hash(ttfts))[:8]
    return [
        _record(
            f"{slice_id}-{i}",
            start_s=(starts[i] or first) - first,
            ttft_s=ttfts[i],
            gaps_s=gaps[i],
            latency_s=latencies[i],
            prompt_tokens=inputs[i],
            output_tokens=lengths[i],
            text=texts[i],
            error=errors[i],
        )
        for i in range(size)
    ]


def _column(data: Mapping[str, Any], name: str, size: int) -> Sequence[Any]:
    values = data.get(name)
    return values if isinstance(values, list) and len(values) == size else [None] * size


def _record(
    prompt_id: str,
    *,
    start_s: float,
    ttft_s: float,
    gaps_s: Sequence[float],
    latency_s: float | None,
    prompt_tokens: int | None,
    output_tokens: int,
    text: str | None,
    error: str | None,
) -> RequestRecord:
    failure = None
    if error:
        failure = RequestError(kind="other", body=str(error)[-_BODY_LIMIT:])
    elif not ttft_s or not output_tokens or text == "":
        failure = RequestError(kind="empty", body="answered without content")
    e2e_s = latency_s or ttft_s + sum(gaps_s)
    return RequestRecord(
        prompt_id=prompt_id,
        round=0,
        start_s=start_s,
        ttft_ms=None if failure else ttft_s * 1000,
        e2e_ms=None if failure else e2e_s * 1000,
        end_s=start_s + (latency_s or 0.0) if failure else None,
        prompt_tokens=prompt_tokens,
        output_tokens=None if failure else output_tokens,
        chunks=0 if failure else len(gaps_s) + 1,
        inter_chunk_ms_p50=None if failure or not gaps_s else sorted(gaps_s)[len(gaps_s) // 2] * 1000,
        text=None if failure else text,
        error=failure,
    )


def _counts(data: Mapping[str, Any]) -> Counts:
    completed = int(data["completed"])
    failed = data.get("failed")
    if failed is None:
        failed = max(0, int(data.get("num_prompts") or completed) - completed)
    return Counts(requested=completed + int(failed), completed=completed, failed=int(failed))


def _metrics(
    data: Mapping[str, Any], records: list[RequestRecord], windows: list[Any], counts: Counts
) -> CellMetrics | None:
    if not counts.completed:
        return None
    if records:
        found = metrics.cell_metrics(records, windows)
        if found is None or found.output_tokens_per_s is not None:
            return found
        # No start times: the file's own rates, over the whole run.
        return found.model_copy(
            update={
                "output_tokens_per_s": data.get("output_throughput"),
                "requests_per_s": data.get("request_throughput"),
            }
        )
    ttft = _summary(data, "ttft")
    if ttft is None:
        return None
    latencies = [value * 1000 for value in data.get("latencies") or () if value]
    total = data.get("total_output_tokens")
    return CellMetrics(
        tpot_ms=_summary(data, "tpot"),
        ttft_ms=ttft,
        e2e_ms=_summary(data, "e2el") or metrics.summary(latencies),
        output_tokens_per_s=data.get("output_throughput"),
        requests_per_s=data.get("request_throughput"),
        goodput=data.get("request_goodput", data.get("request_goodput:")),
        mean_output_tokens=total / counts.completed if total else None,
    )


def _summary(data: Mapping[str, Any], name: str) -> Summary | None:
    p50 = data.get(f"median_{name}_ms")
    if not p50:
        return None
    return Summary(
        p50=p50, p90=data.get(f"p90_{name}_ms"), p99=data.get(f"p99_{name}_ms"), mean=data.get(f"mean_{name}_ms", p50)
    )


def _acceptance(data: Mapping[str, Any]) -> Acceptance | None:
    length = data.get("spec_decode_acceptance_length")
    if not length or length < 1:
        return None
    return Acceptance(
        length=length,
        source="metrics",
        drafted_tokens=data.get("spec_decode_draft_tokens"),
        accepted_tokens=data.get("spec_decode_accepted_tokens"),
        drafts=data.get("spec_decode_num_drafts"),
        by_position=tuple(data.get("spec_decode_per_position_acceptance_rates") or ()) or None,
    )


def _slice_id(data: Mapping[str, Any]) -> str:
    """Hash that is equal for equal prompts, as far as their lengths tell."""
    return _hash(data.get("input_lens"))


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _identified(data: Mapping[str, Any]) -> bool:
    """Whether the prompts' lengths, in order, are so different that other prompts would show."""
    lengths = Counter(data.get("input_lens") or ())
    return len(lengths) >= _LEAST_LENGTHS and max(lengths.values()) <= _MOST_ALIKE * lengths.total()


def _prompts(data: Mapping[str, Any]) -> PromptsUsed | None:
    lengths = data.get("input_lens") or data.get("ttfts")
    if not lengths:
        return None
    known_by: Literal["lengths", "nothing"] = "lengths" if _identified(data) else "nothing"
    return PromptsUsed(count=len(lengths), sha256=_slice_id(data), known_by=known_by)


def _named(data: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: str(data[name]) for name in names if data.get(name)}
