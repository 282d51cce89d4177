"""Numbers in a result of vLLM's that no measurement gives: below 0, absurdly large, or none at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MEASURED = frozenset(
    [
        "duration",
        "completed",
        "failed",
        "num_prompts",
        "ttfts",
        "itls",
        "latencies",
        "start_times",
        "input_lens",
        "output_lens",
        "request_goodput",
        "spec_decode_acceptance_length",
        "spec_decode_draft_tokens",
        "spec_decode_accepted_tokens",
        "spec_decode_num_drafts",
        "spec_decode_per_position_acceptance_rates",
        "total_output_tokens",
    ]
)
_MOST = 1e18
_MEASURED_ENDS = ("_ms", "_throughput")


def refuse_nonsense(data: Mapping[str, Any]) -> None:
    """Refuse numbers that no measurement gives.

    Raises:
        ValueError: names the field of one that is below 0, no number, or too large.
    """
    for name, value in data.items():
        if name in _MEASURED or name.endswith(_MEASURED_ENDS):
            for place, number in _leaves(value, name):
                if not isinstance(number, int | float):
                    raise ValueError(f"`{place}` is {str(number)[:40]!r}, not a number")
                if not 0 <= number <= _MOST:
                    raise ValueError(f"`{place}` is {'too large' if number > _MOST else number}")
    completed, failed, prompts = (data.get(name) for name in ("completed", "failed", "num_prompts"))
    if failed is not None and prompts is not None and completed + failed > prompts:
        raise ValueError(f"`num_prompts` is {prompts}, but `completed` is {completed} and `failed` is {failed}")


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """What stands in nested lists, each with its place; what is absent is passed over."""
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")
    elif value is not None:
        yield place, value
