"""What the client doubts about a cell that it has measured: a code and a sentence each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eagle_bench import saturation
from eagle_bench.adapters.vllm_client.rounds import UNAUTHORIZED, Outcome
from eagle_bench.codes import CellWarningCode
from eagle_bench.metrics import counts, failure_rate, in_one_piece
from eagle_bench.results import CellMetrics, CellSettings, ClientHealth, TokenSource
from eagle_bench.units import count as counted
from eagle_bench.units import percent

_PIECES_SHARE = 0.1  # of answers without a TPOT: above it the median is of the others
_CACHED_SHARE = 0.5  # of the prompts' tokens; a template and a short system prompt that all share stay below


def token_source(outcomes: Sequence[Outcome]) -> TokenSource | None:
    """Who counted the tokens of the measured answers; the probe's answer says nothing about theirs."""
    found = {outcome.counted_by for outcome in outcomes if outcome.counted_by is not None}
    return found.pop() if len(found) == 1 else "mixed" if found else None


def doubts(
    outcomes: Sequence[Outcome],
    settings: CellSettings,
    client: ClientHealth | None,
    metrics: CellMetrics | None,
    *,
    token_renewed: bool,
) -> Iterator[tuple[CellWarningCode, str]]:
    """Everything that makes the cell suspect, by what its requests came to."""
    records = [outcome.record for outcome in outcomes]
    count = counts(records)
    if slow := saturation.signs(client, metrics):
        yield "client_saturated", f"the client may have been the bottleneck: {' and '.join(slow)}"
    pieces = sum(map(in_one_piece, records))
    if pieces > _PIECES_SHARE * count.completed:
        yield "one_piece", f"{pieces} of {count.completed} answers came in one piece: they have no TPOT"
    yield from _counting(outcomes, count.completed)
    share = metrics.cached_prompt_share if metrics else None
    if share is not None and share > _CACHED_SHARE:
        text = f"{percent(share)} of the prompts' tokens came from the server's prefix cache"
        yield "cached_prompts", f"{text}: the first token came sooner than it does for new prompts"
    if token_renewed:
        refused = sum(r.error is not None and r.error.status == UNAUTHORIZED for r in records)
        text = f"a token that should have been valid was refused: {counted(refused, 'request')} failed with 401"
        yield "token_renewed", f"{text}, and a new token was taken"
    rate = failure_rate(count)
    if rate is not None and rate > settings.max_failure_rate:
        yield "failure_rate", f"{rate:.1%} of the requests failed, {settings.max_failure_rate:.1%} is allowed"


def _counting(outcomes: Sequence[Outcome], completed: int) -> Iterator[tuple[CellWarningCode, str]]:
    """Who counted the tokens, and what of the server's counts was not believed."""
    if token_source(outcomes) == "mixed":
        others = sum(outcome.counted_by == "tokenizer" for outcome in outcomes)
        text = f"the tokens of {others} of {completed} answers were counted by the tokenizer, not by the server"
        yield "mixed_counts", f"{text}: it sent no usage with them that can be believed"
    refused = [outcome.refused_usage for outcome in outcomes if outcome.refused_usage is not None]
    if refused:
        text = f"the usage of {len(refused)} of {completed} answers says more tokens than were allowed ({max(refused)} at most)"
        yield "usage_refused", f"{text}: it was not believed"
    hidden = [outcome.record.hidden_tokens for outcome in outcomes if outcome.record.hidden_tokens is not None]
    if hidden:
        text = (
            f"{len(hidden)} of {completed} answers have reasoning tokens that were not streamed ({sum(hidden)} in all)"
        )
        yield "hidden_tokens", f"{text}: they are in no count, and the first token came after them"
