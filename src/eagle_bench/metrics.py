"""From the records of a cell's requests to what they amount to. Pure.

One metric, one function, its unit in the name and its formula in the docstring. Only completed
requests count; where none is, there is no metric: None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from eagle_bench.results import CellMetrics, Counts, RequestRecord, RoundWindow, Summary

FASTEST_MS = 0.05
"""Time per token below which no engine made them for one answer: 20,000 a second."""
MANY_TOKENS = 16
"""After the first; fewer may come together because the client read late."""
P99_LEAST = 100  # below it the p99 is the maximum by another name


def tpot_ms(record: RequestRecord) -> float | None:
    """Time per output token after the first: (E2E − TTFT) ÷ (output tokens − 1).

    None with one token, and where all of them came in one piece: the time between them was not seen.
    """
    if record.error or record.e2e_ms is None or record.ttft_ms is None:
        return None
    if record.output_tokens is None or record.output_tokens < 2 or in_one_piece(record):
        return None
    return (record.e2e_ms - record.ttft_ms) / (record.output_tokens - 1)


def in_one_piece(record: RequestRecord) -> bool:
    """Whether an answer of several tokens came all at once, as through a proxy that collects it first.

    A long one is read in several pieces all the same: at the pace of the network, which no engine has.
    """
    if record.error is not None or record.ttft_ms is None or record.e2e_ms is None:
        return False
    following, took_ms = (record.output_tokens or 1) - 1, record.e2e_ms - record.ttft_ms
    return following > 0 and (took_ms == 0 or (following >= MANY_TOKENS and 0 < took_ms < FASTEST_MS * following))


def inter_chunk_ms_p50(content_s: Sequence[float]) -> float | None:
    """Median gap between chunks with content. A chunk may hold several tokens: this is not TPOT."""
    if len(content_s) < 2:
        return None
    return float(np.median([later - earlier for earlier, later in pairwise(content_s)])) * 1000


def summary(values_ms: Sequence[float]) -> Summary | None:
    """p50, p90, p99 (from 100 values on) and mean, with linear interpolation between ranks."""
    if not values_ms:
        return None
    p50, p90, p99 = (float(p) for p in np.percentile(values_ms, (50, 90, 99)))
    return Summary(p50=p50, p90=p90, p99=p99 if len(values_ms) >= P99_LEAST else None, mean=float(np.mean(values_ms)))


def counts(records: Iterable[RequestRecord]) -> Counts:
    """How many requests were sent, completed, failed; the empty ones are among the failed."""
    requested = failed = empty = 0
    for record in records:
        requested += 1
        failed += record.error is not None
        empty += record.error is not None and record.error.kind == "empty"
    return Counts(requested=requested, completed=requested - failed, failed=failed, empty=empty)


def round_window(records: Sequence[RequestRecord], concurrency: int) -> RoundWindow | None:
    """The rates of one round over the time in which its concurrency was really held.

    The window opens with the first send. It closes with the first end after the last moment at which
    the level was full: from then on fewer streams run than the level says, and a rate would be of
    something else. Tokens and requests that lie partly inside count with the part inside, tokens
    being spread evenly between a request's first and last content chunk.

    Returns:
        None where no request was sent; rates are None where the concurrency was never reached.
    """
    if not records:
        return None
    start = min(record.start_s for record in records)
    end = max(_end_s(record) for record in records)
    full_until = _full_until(records, concurrency)
    closes = end if full_until is None else full_until
    length = closes - start
    completed = [record for record in records if record.error is None]
    held = full_until is not None and length > 0 and bool(completed)
    known = held and all(record.output_tokens is not None for record in completed)
    return RoundWindow(
        round=records[0].round,
        start_s=start,
        end_s=end,
        window_start_s=start,
        window_end_s=closes,
        output_tokens_per_s=sum(tokens_until(r, closes) for r in completed) / length if known else None,
        requests_per_s=sum(_share_until(r, closes) for r in completed) / length if held else None,
    )


def cell_metrics(
    records: Sequence[RequestRecord],
    windows: Sequence[RoundWindow],
    *,
    slo_ttft_ms: float | None = None,
    slo_tpot_ms: float | None = None,
) -> CellMetrics | None:
    """All metrics of a cell over all its rounds; None when no request completed.

    Rates: Σ (rate × window) ÷ Σ window over the rounds. Goodput: the part of `requests_per_s`
    whose requests met the SLO.
    """
    done = [r for r in records if r.error is None and r.ttft_ms is not None and r.e2e_ms is not None]
    ttft = summary([r.ttft_ms for r in done if r.ttft_ms is not None])
    e2e = summary([r.e2e_ms for r in done if r.e2e_ms is not None])
    if ttft is None or e2e is None:
        return None
    tokens = [r.output_tokens for r in done if r.output_tokens is not None]
    return CellMetrics(
        tpot_ms=summary([value for value in map(tpot_ms, done) if value is not None]),
        ttft_ms=ttft,
        e2e_ms=e2e,
        output_tokens_per_s=mean_rate((w.output_tokens_per_s, w) for w in windows),
        requests_per_s=mean_rate((w.requests_per_s, w) for w in windows),
        goodput=_goodput(done, windows, slo_ttft_ms, slo_tpot_ms),
        cached_prompt_share=cached_prompt_share(done),
        mean_output_tokens=float(np.mean(tokens)) if tokens else None,
    )


def cached_prompt_share(records: Iterable[RequestRecord]) -> float | None:
    """Σ cached tokens ÷ Σ prompt tokens, over the requests that tell both; None where none does."""
    told = [(r.cached_tokens, r.prompt_tokens) for r in records if r.cached_tokens is not None and r.prompt_tokens]
    return min(1.0, sum(cached for cached, _ in told) / sum(prompt for _, prompt in told)) if told else None


def failure_rate(count: Counts) -> float | None:
    """Failed ÷ requested; None where nothing was requested."""
    return count.failed / count.requested if count.requested else None


def meets(record: RequestRecord, slo_ttft_ms: float | None, slo_tpot_ms: float | None) -> bool:
    """Whether a completed request met the SLO. One token has no TPOT, and so can't miss it."""
    tpot = tpot_ms(record)
    return (slo_ttft_ms is None or (record.ttft_ms is not None and record.ttft_ms <= slo_ttft_ms)) and (
        slo_tpot_ms is None or tpot is None or tpot <= slo_tpot_ms
    )


def _goodput(
    done: Sequence[RequestRecord], windows: Sequence[RoundWindow], ttft: float | None, tpot: float | None
) -> float | None:
    if ttft is None and tpot is None:
        return None
    rates = []
    for window in windows:
        if window.requests_per_s is None:
            continue
        good = [r for r in done if r.round == window.round and meets(r, ttft, tpot)]
        shares = sum(_share_until(r, window.window_end_s) for r in good)
        rates.append((shares / (window.window_end_s - window.window_start_s), window))
    return mean_rate(rates)


def mean_rate(rates: Iterable[tuple[float | None, RoundWindow]]) -> float | None:
    """Σ (rate × window) ÷ Σ window over the rounds whose rate is known; None without one."""
    known = [(rate, w.window_end_s - w.window_start_s) for rate, w in rates if rate is not None]
    whole = sum(length for _, length in known)
    return sum(rate * length for rate, length in known) / whole if whole > 0 else None


def _full_until(records: Sequence[RequestRecord], concurrency: int) -> float | None:
    """When `concurrency` requests were in flight for the last time; None if they never were."""
    moments = sorted([(_end_s(r), -1) for r in records] + [(r.start_s, 1) for r in records])
    flying, full, until = 0, False, None
    for moment, change in moments:
        if full and change < 0:
            full, until = False, moment
        flying += change
        full = full or (change > 0 and flying >= concurrency)
    return until


def _end_s(record: RequestRecord) -> float:
    """When the request gave its place to the next one."""
    if record.end_s is not None:
        return record.end_s
    return record.start_s + (record.e2e_ms or 0.0) / 1000


def _share_until(record: RequestRecord, moment_s: float) -> float:
    """The part of a request that lies before a moment, 0 to 1."""
    end = _end_s(record)
    if end <= moment_s:
        return 1.0
    return max(0.0, moment_s - record.start_s) / (end - record.start_s)


def tokens_until(record: RequestRecord, moment_s: float) -> float:
    """Output tokens that had come by a moment, spread evenly between first and last content chunk."""
    if record.output_tokens is None or record.ttft_ms is None or record.e2e_ms is None:
        return 0.0
    first_s = record.start_s + record.ttft_ms / 1000
    last_s = record.start_s + record.e2e_ms / 1000
    if moment_s >= last_s:
        return float(record.output_tokens)
    if moment_s < first_s:
        return 0.0
    first = min(record.first_chunk_tokens or 1, record.output_tokens)
    return first + (record.output_tokens - first) * (moment_s - first_s) / (last_s - first_s)
