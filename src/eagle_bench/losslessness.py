"""Does the variant still say what the baseline says? Answers at temperature 0, prompt by prompt.

Two runs of one server differ too (sums in another order with another batch), so a difference alone says
nothing: only an excess over the baseline's own, run twice, does.
"""

from __future__ import annotations

import math
from statistics import median

from eagle_bench.comparison import Losslessness
from eagle_bench.results import CellResult, RequestRecord

_TOLERATED = 2.0
"""Standard errors of excess below which two match rates can't be told apart."""


def compare_answers(baseline: CellResult, variant: CellResult, again: CellResult | None) -> Losslessness | None:
    """How many answers of one level are the same; None where no answers were kept.

    Args:
        again: the baseline's second run over the same prompts, where there was one.
    """
    pairs = _pairs(baseline, variant)
    if not pairs:
        return None
    own = _pairs(baseline, again) if again is not None else []
    places = [place for one, other in pairs if (place := _divergence(one.text, other.text)) is not None]
    return Losslessness(
        variant=variant.variant,
        concurrency=variant.concurrency,
        pairs=len(pairs),
        identical=sum(_same(*pair) for pair in pairs),
        first_divergence=median(places) if places else None,
        baseline_pairs=len(own) or None,
        baseline_identical=sum(_same(*pair) for pair in own) if own else None,
    )


def excess(found: Losslessness) -> float | None:
    """Share of answers that differ beyond the baseline's own share; None without a second run, 0.0 within noise."""
    if not found.baseline_pairs or found.baseline_identical is None:
        return None
    own = found.baseline_identical / found.baseline_pairs
    rate = found.identical / found.pairs
    pooled = (found.identical + found.baseline_identical) / (found.pairs + found.baseline_pairs)
    error = math.sqrt(pooled * (1 - pooled) * (1 / found.pairs + 1 / found.baseline_pairs))
    return own - rate if own - rate > _TOLERATED * error else 0.0


def _pairs(one: CellResult, other: CellResult) -> list[tuple[RequestRecord, RequestRecord]]:
    answers = {(r.round, r.prompt_id): r for r in one.requests if _answered(r)}
    return [
        (answers[key], request)
        for request in other.requests
        if _answered(request) and (key := (request.round, request.prompt_id)) in answers
    ]


def _answered(request: RequestRecord) -> bool:
    return request.error is None and (request.text is not None or request.text_sha256 is not None)


def _same(one: RequestRecord, other: RequestRecord) -> bool:
    if one.text is not None and other.text is not None:
        return one.text == other.text
    return one.text_sha256 is not None and one.text_sha256 == other.text_sha256


def _divergence(one: str | None, other: str | None) -> float | None:
    """Where two answers part, as a share of the longer one; None where they don't or aren't known."""
    if one is None or other is None or one == other:
        return None
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place / max(len(one), len(other))
    return min(len(one), len(other)) / max(len(one), len(other))
