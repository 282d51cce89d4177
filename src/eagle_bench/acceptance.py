"""Acceptance length from what can be had: the response, the engine's metrics page, or the chunks. Pure.

The length is the mean number of tokens that one step of the target model yields: 1 + accepted draft
tokens ÷ steps. EAGLE drafts before each step; n-gram speculation only where it finds something to copy, so that the
engine's count of drafts is not one of steps. The sources are never mixed, and the result says which one it is.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eagle_bench.results import Acceptance, RequestRecord

# Names on the metrics pages. vLLM 0.33.0: counters; `_per_pos` has a label `position` from 0.
VLLM_DRAFTS = "vllm:spec_decode_num_drafts_total"
VLLM_DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
VLLM_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
VLLM_POSITIONS = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
# SGLang: a gauge over the engine's last batches, so not of this cell alone.
SGLANG_LENGTH = "sglang:spec_accept_length"

_NEEDED = {"vllm:spec_decode": (VLLM_DRAFTS, VLLM_DRAFTED, VLLM_ACCEPTED), "sglang:spec_": (SGLANG_LENGTH,)}
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?$")
_MOST = 2.0**53  # whole numbers above it have neighbours that are missing; no counter gets there
_POSITION = re.compile(r'position="(\d+)"')


@dataclass(frozen=True)
class Page:
    """The samples of a Prometheus page that are about speculation, summed over engines and ranks."""

    totals: Mapping[str, float] = field(default_factory=dict)
    lengths: tuple[float, ...] = ()  # of the gauge, one for each engine
    positions: Mapping[int, float] = field(default_factory=dict)
    uncountable: tuple[str, ...] = ()  # names with a sample that is no count: infinite, or beyond what is exact

    @property
    def missing(self) -> tuple[str, ...]:
        """Names that should stand beside those that are there: a release renamed them."""
        return tuple(
            name
            for prefix, needed in _NEEDED.items()
            if any(found.startswith(prefix) for found in self.totals)
            for name in needed
            if name not in self.totals and name not in self.uncountable
        )


def read_page(text: str) -> Page:
    """Read a Prometheus text page; lines that are not samples are passed over."""
    totals: dict[str, float] = defaultdict(float)
    positions: dict[int, float] = defaultdict(float)
    lengths: list[float] = []
    uncountable: dict[str, None] = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line.strip())
        if match is None or not match[1].startswith(tuple(_NEEDED)) or match[1].endswith("_created"):
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if math.isnan(value):
            continue
        if abs(value) > _MOST:
            uncountable[match[1]] = None
            continue
        totals[match[1]] += value
        if match[1] == SGLANG_LENGTH:
            lengths.append(value)
        position = _POSITION.search(match[2] or "")
        if match[1] == VLLM_POSITIONS and position:
            positions[int(position[1])] += value
    return Page(dict(totals), tuple(lengths), dict(positions), tuple(uncountable))


def decoded(records: Sequence[RequestRecord]) -> int | None:
    """Output tokens after each answer's first one, which prefill made; None where not all of them are known."""
    if any(record.error is not None or not record.output_tokens for record in records):
        return None
    return sum((record.output_tokens or 1) - 1 for record in records)


def from_pages(before: Page, after: Page, tokens: int | None = None) -> Acceptance | None:
    """What the engine's counters grew by; None where it speculated nothing, says nothing, or what can't be counted with.

    Args:
        tokens: that were decoded meanwhile. Each step yields one that was not drafted, so tokens − accepted is the number
            of steps (a few too small: tokens that were accepted beyond an answer's end are counted by the engine alone).
    """
    if before.uncountable or after.uncountable:
        return None
    drafts, drafted, accepted = (
        after.totals[name] - before.totals.get(name, 0.0) if name in after.totals else None
        for name in (VLLM_DRAFTS, VLLM_DRAFTED, VLLM_ACCEPTED)
    )
    if drafts is not None and accepted is not None and drafts > 0 and accepted >= 0:
        grown = [after.positions[p] - before.positions.get(p, 0.0) for p in sorted(after.positions)]
        steps = drafts if tokens is None else max(drafts, tokens - accepted)
        return Acceptance(
            length=1 + accepted / steps,
            source="metrics",
            steps=round(steps) if tokens is not None else None,
            drafts=round(drafts),
            drafted_tokens=round(drafted) if drafted is not None else None,
            accepted_tokens=round(accepted),
            by_position=tuple(value / drafts for value in grown) or None,
        )
    known = [length for length in after.lengths if length >= 1]
    return Acceptance(length=sum(known) / len(known), source="metrics") if known else None


def from_responses(reports: Iterable[Mapping[str, Any]]) -> Acceptance | None:
    """What the responses said of themselves, all together.

    vLLM sends `num_spec_steps`, `num_accepted_draft_tokens`, `num_draft_tokens` and
    `acceptance_histogram` (index j: steps that accepted exactly j); SGLang `spec_verify_ct` and
    `spec_accept_token_num` or `completion_tokens`.
    """
    steps = accepted = drafted = 0
    histogram: list[int] = []
    drafted_known = True
    for report in reports:
        of_request = _whole(report, "num_spec_steps", "spec_verify_ct")
        taken = _whole(report, "num_accepted_draft_tokens", "spec_accept_token_num")
        tokens = _whole(report, "completion_tokens")
        if taken is None and tokens is not None and of_request is not None:
            taken = max(0, tokens - of_request)
        if not of_request or taken is None:
            continue
        steps, accepted = steps + of_request, accepted + taken
        offered = _whole(report, "num_draft_tokens", "spec_draft_token_num")
        drafted_known = drafted_known and offered is not None
        drafted += offered or 0
        counted = report.get("acceptance_histogram")
        if isinstance(counted, list):
            histogram += [0] * (len(counted) - len(histogram))
            for index, value in enumerate(counted):
                histogram[index] += int(value)
    if not steps:
        return None
    shares = tuple(sum(histogram[position:]) / steps for position in range(1, len(histogram)))
    return Acceptance(
        length=1 + accepted / steps,
        source="response",
        drafts=steps,
        drafted_tokens=drafted if drafted_known else None,
        accepted_tokens=accepted,
        by_position=shares or None,
    )


def from_chunks(records: Sequence[RequestRecord]) -> Acceptance | None:
    """A proxy: tokens ÷ content chunks after each request's first chunk, whose tokens prefill made.

    An engine that bundles steps into one chunk makes it too long, so it is the last choice.
    """
    tokens = chunks = 0
    for record in records:
        if record.error is None and record.output_tokens is not None and record.chunks > 1:
            tokens += record.output_tokens - (record.first_chunk_tokens or 1)
            chunks += record.chunks - 1
    return Acceptance(length=max(1.0, tokens / chunks), source="chunks") if chunks else None


def _whole(report: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = report.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return int(value)
    return None
