"""Train the head: training-time test over several draft steps (arXiv 2503.01840, section 3.2).

For an anchor t of a conversation x the head reads the target's states at t and the embedding of x[t+1] and predicts x[t+2]; in
draft step n it reads its own output of step n-1 and the embedding of x[t+1+n] and predicts x[t+2+n], as it will in service.
It learns the
target's distribution over the most frequent tokens, sharpened, and the final state that the distribution comes from.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from .head import Eagle3Head
from .states import Conversation, StateFile, Target, batches, padded


@dataclass(frozen=True)
class Recipe:
    """What a training run is made of."""

    epochs: int = 3
    draft_steps: int = 3
    step_decay: float = 0.8
    """The loss of draft step n weighs step_decay ** n."""
    sharpness: float = 2.0
    """The target's logits are multiplied by this: at temperature 0 its argmax matters, near ties share."""
    state_weight: float = 1.0
    """Of the squared error to the target's final state, relative to that state's variance: dense, so few tokens teach much."""
    learning_rate: float = 1e-3
    warmup_steps: int = 30
    tokens_a_batch: int = 1024
    max_minutes: float = math.inf
    seed: int = 0


def frequent_tokens(conversations: list[Conversation], count: int, vocabulary: int) -> Tensor:
    """The `count` tokens, ascending, that are most likely to be said.

    Counts of the conversations, plus a prior of 200 / (id + 300): a byte-pair tokenizer's ids are in the order of its merges,
    so low ones are frequent in the text at large. Without it the choice fits the words of the training subjects.
    """
    seen = Counter(token for c in conversations for token in c.ids)
    expected = torch.tensor([seen[token] + 200 / (token + 300) for token in range(vocabulary)])
    return expected.topk(count).indices.sort().values


def covered(kept: Tensor, conversations: list[Conversation]) -> float:
    """The share of all answer tokens that are among `kept`."""
    among = set(kept.tolist())
    said = [token for c in conversations for token in c.ids[c.start :]]
    return sum(token in among for token in said) / len(said)


def common_prefix(conversations: list[Conversation]) -> int:
    """How many tokens all conversations start with: the system prompt."""
    columns = zip(*(c.ids for c in conversations), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))


def initialise(head: Eagle3Head, target: Target) -> None:
    """Start from the target's last layer and output embedding; `fc` starts as the newest of the three states."""
    last = target.model.model.layers[-1]
    layer, hidden = head.midlayer, head.shape.hidden
    with torch.no_grad():
        head.fc.weight.mul_(0.1)[:, 2 * hidden :] += torch.eye(hidden)
        for name in ("q_proj", "k_proj", "v_proj"):
            weight = getattr(layer.self_attn, name).weight
            weight.mul_(0.3)[:, hidden:] += 0.5 * getattr(last.self_attn, name).weight
        layer.self_attn.o_proj.weight.copy_(last.self_attn.o_proj.weight)
        for name in ("gate_proj", "up_proj", "down_proj"):
            getattr(layer.mlp, name).weight.copy_(getattr(last.mlp, name).weight)
        layer.post_attention_layernorm.weight.copy_(last.post_attention_layernorm.weight)
        head.norm.weight.copy_(target.model.model.norm.weight)
    take_output_embedding(head, target)


def take_output_embedding(head: Eagle3Head, target: Target) -> None:
    """`lm_head` is the target's, row by row, and stays so: the head learns to foretell the target's final state.

    A trained one fits the words of few conversations, and this one can be given any vocabulary afterwards.
    """
    with torch.no_grad():
        head.lm_head.weight.copy_(target.output_embedding[head.kept_tokens()])
    head.lm_head.weight.requires_grad_(False)


def with_vocabulary(head: Eagle3Head, target: Target, kept: Tensor) -> Eagle3Head:
    """The same head over another draft vocabulary."""
    other = Eagle3Head(replace(head.shape, draft_vocabulary=len(kept)))
    own = {"lm_head.weight", "d2t", "t2d"}
    other.load_state_dict({n: v for n, v in head.state_dict().items() if n not in own}, strict=False)
    other.use_vocabulary(kept)
    take_output_embedding(other, target)
    return other


@dataclass(frozen=True)
class Lesson:
    """A batch: token ids (B, T), the target's states (B, T, 4, H), and which tokens are worth predicting (B, T)."""

    ids: Tensor
    states: Tensor
    learnt: Tensor

    @classmethod
    def of(cls, batch: list[Conversation], states: StateFile, prefix: int) -> Lesson:
        """All tokens after the first `prefix`, questions too."""
        ids = padded(batch)
        place = torch.arange(ids.shape[1])[None]
        end = torch.tensor([len(c.ids) for c in batch])[:, None]
        return cls(ids, states.of(batch), (place >= prefix) & (place < end))


def shifted(values: Tensor, by: int) -> Tensor:
    """values[:, t + by] at t; the last `by` places are 0 or False."""
    return torch.cat([values[:, by:], torch.zeros_like(values[:, :by])], 1)


def draft_steps(head: Eagle3Head, ids: Tensor, states: Tensor, embedding: Tensor, steps: int) -> list[Tensor]:
    """The head's output (B, T, H) of each draft step, every position t as an anchor, later tokens taken from `ids`."""
    hidden = head.fc(states[:, :, :3].flatten(2).float())
    keys: list[Tensor] = []
    values: list[Tensor] = []
    made = []
    for step in range(steps):
        out, hidden = head.step(embedding[shifted(ids, 1 + step)], hidden, keys, values)
        made.append(out)
    return made


def losses(head: Eagle3Head, target: Target, lesson: Lesson, recipe: Recipe) -> tuple[Tensor, list[float]]:
    """The weighted loss of a batch, and per draft step the share of anchors where the head's argmax is the next token."""
    kept, final = head.kept_tokens(), lesson.states[:, :, 3]
    total, right = torch.zeros(()), []
    for step, out in enumerate(draft_steps(head, lesson.ids, lesson.states, target.embedding, recipe.draft_steps)):
        counts = shifted(lesson.learnt, 2 + step)
        drafted, truth, token = (
            out[counts],
            shifted(final, 1 + step)[counts].float(),
            shifted(lesson.ids, 2 + step)[counts],
        )
        known = head.t2d[token]
        logits = head.lm_head(drafted[known])
        with torch.no_grad():
            wanted = torch.softmax(head.lm_head(truth[known]) * recipe.sharpness, -1)
        loss = F.cross_entropy(logits, wanted) + recipe.state_weight * F.mse_loss(drafted, truth) / truth.var()
        total = total + recipe.step_decay**step * loss
        right.append((kept[logits.argmax(-1)] == token[known]).float().sum().item() / len(token))
    return total, right


def set_learning_rate(optimiser: torch.optim.Optimizer, recipe: Recipe, step: int, progress: float) -> None:
    """A linear warm-up, then a cosine down to 2 %; `progress` is the share of the run that is done."""
    factor = min(1.0, (step + 1) / recipe.warmup_steps) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
    for group in optimiser.param_groups:
        group["lr"] = recipe.learning_rate * factor


def train(
    head: Eagle3Head,
    target: Target,
    conversations: list[Conversation],
    states: StateFile,
    recipe: Recipe,
    checkpoint: Path,
    report: Callable[[str], None],
) -> None:
    """Train `head` in place, keeping a checkpoint every few minutes; continues from it if there is one."""
    torch.manual_seed(recipe.seed)
    rng = random.Random(recipe.seed)  # noqa: S311  # a seed is wanted, not a secret
    prefix = common_prefix(conversations)
    groups = list(batches(conversations, recipe.tokens_a_batch))
    plan = [batch for _ in range(recipe.epochs) for batch in rng.sample(groups, len(groups))]
    optimiser = torch.optim.AdamW(
        [p for p in head.parameters() if p.requires_grad], lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
    )
    first, spent = 0, 0.0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        head.load_state_dict(saved["head"])
        optimiser.load_state_dict(saved["optimiser"])
        first, spent = saved["step"], saved["seconds"]
        report(f"continued at step {first}")
    report(f"{len(conversations)} conversations, {len(plan)} steps, {asdict(recipe)}")
    began = time.monotonic() - spent
    seen, right, total = 0, [0.0] * recipe.draft_steps, 0.0
    for step, batch in enumerate(plan[first:], start=first):
        minutes = (time.monotonic() - began) / 60
        progress = max(step / len(plan), minutes / recipe.max_minutes)
        if progress >= 1:
            break
        loss, shares = losses(head, target, Lesson.of(batch, states, prefix), recipe)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        set_learning_rate(optimiser, recipe, step, progress)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        seen, total, right = seen + 1, total + loss.item(), [a + b for a, b in zip(right, shares, strict=True)]
        if (step + 1) % 25 == 0:
            agreed = " ".join(f"{r / seen:.3f}" for r in right)
            report(
                f"step {step + 1}/{len(plan)} {minutes:.1f} min loss {total / seen:.3f} agreement by draft step {agreed}"
            )
            seen, right, total = 0, [0.0] * recipe.draft_steps, 0.0
        if (step + 1) % 50 == 0:
            kept = {"head": head.state_dict(), "optimiser": optimiser.state_dict()}
            torch.save(kept | {"step": step + 1, "seconds": time.monotonic() - began}, checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").replace(checkpoint)
