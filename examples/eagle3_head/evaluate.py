"""How many drafted tokens the target accepts, predicted from its own greedy answers without an engine.

At temperature 0 a draft is accepted as long as it is the target's argmax, and an answer is the sequence of those. So a walk over
a known answer gives exactly what verification would do: draft k tokens, keep those that agree, take one more from the target.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import torch

from .head import Eagle3Head
from .states import Conversation, StateFile, Target, batches, padded
from .train import draft_steps, shifted


@dataclass(frozen=True)
class Acceptance:
    """Counts of a walk: how many drafts were made, and how many reached each draft position accepted."""

    drafts: int
    accepted: tuple[int, ...]

    @property
    def by_position(self) -> list[float]:
        """Share of drafts whose tokens up to position i were accepted (vLLM's per-position rates)."""
        return [n / self.drafts for n in self.accepted]

    @property
    def length(self) -> float:
        """Mean tokens per verification: 1 + Σ by_position."""
        return 1 + sum(self.by_position)

    def __add__(self, other: Acceptance) -> Acceptance:
        return Acceptance(
            self.drafts + other.drafts, tuple(a + b for a, b in zip(self.accepted, other.accepted, strict=True))
        )


def walk(agrees: list[list[bool]], first: int, last: int) -> Acceptance:
    """Verify drafts along an answer: `agrees[n][t]` says whether step n of anchor t is right; anchors from `first` to `last`."""
    steps = len(agrees)
    drafts, accepted, anchor = 0, [0] * steps, first
    while anchor <= last:
        run = 0
        while run < steps and anchor + run <= last and agrees[run][anchor]:
            accepted[run] += 1
            run += 1
        drafts += 1
        anchor += run + 1
    return Acceptance(drafts, tuple(accepted))


@torch.inference_mode()
def acceptance(
    head: Eagle3Head, target: Target, conversations: list[Conversation], states: StateFile, steps: int
) -> dict[str, Acceptance]:
    """Acceptance by kind of prompt with `steps` drafted tokens; the key "all" has the sum."""
    kept = head.kept_tokens()
    found: dict[str, Acceptance] = defaultdict(lambda: Acceptance(0, (0,) * steps))
    for batch in batches(conversations):
        ids, agrees = padded(batch), []
        for step, out in enumerate(draft_steps(head, ids, states.of(batch), target.embedding, steps)):
            drafted = kept[head.lm_head(out).argmax(-1)]
            agrees.append((drafted == shifted(ids, 2 + step)).tolist())
        for row, conversation in enumerate(batch):
            # the anchor of the first draft is the last prompt token; its first drafted token stands at `start` + 1
            one = walk([step[row] for step in agrees], conversation.start - 1, len(conversation.ids) - 3)
            found[conversation.kind or "training kind"] += one
            found["all"] += one
    return dict(found)


def table(found: dict[str, Acceptance]) -> str:
    """A Markdown table, a line a kind."""
    steps = len(next(iter(found.values())).accepted)
    lines = [
        "| kind of prompt | drafts | acceptance length | "
        + " | ".join(f"position {i + 1}" for i in range(steps))
        + " |"
    ]
    lines.append("|---" * (3 + steps) + "|")
    for kind, one in sorted(found.items(), key=lambda item: item[0] == "all"):
        rates = " | ".join(f"{rate:.3f}" for rate in one.by_position)
        lines.append(f"| {kind} | {one.drafts} | {one.length:.2f} | {rates} |")
    return "\n".join(lines)


def without(
    conversations: list[Conversation], heldout: list[Conversation], share: float, seed: int
) -> tuple[list[Conversation], list[Conversation]]:
    """(training, validation): no held-out prompt in either, `share` of the rest drawn for validation."""
    forbidden = {c.prompt for c in heldout}
    free = [c for c in conversations if c.prompt not in forbidden]
    chosen = set(random.Random(seed).sample(range(len(free)), round(share * len(free))))  # noqa: S311
    return [c for i, c in enumerate(free) if i not in chosen], [c for i, c in enumerate(free) if i in chosen]
