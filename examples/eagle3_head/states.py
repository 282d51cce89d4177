"""The target's hidden states over the distilled conversations, kept on disk as bfloat16.

One row a token: the three states that the head reads, then the final normed state, from which the target's distribution over
any vocabulary follows by one product with its output embedding. 4 · H · 2 bytes a token (4.6 kB for H = 576).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .head import HeadShape

TOKENS_A_BATCH = 4096


@dataclass(frozen=True)
class Conversation:
    """Token ids, the index of the first answer token, and the row of its first token in the states' file."""

    ids: list[int]
    start: int
    row: int
    prompt: str
    kind: str


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a JSON lines file that have at least 8 answer tokens."""
    found, row = [], 0
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if len(entry["ids"]) - entry["start"] >= 8:
            found.append(Conversation(entry["ids"], entry["start"], row, entry["prompt"], entry.get("kind", "")))
            row += len(entry["ids"])
    return found


class Target:
    """The frozen target: hidden states, embeddings, and what the head is initialised from."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM

        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.config = self.model.config
        self.embedding: Tensor = self.model.get_input_embeddings().weight.detach()
        self.output_embedding: Tensor = self.model.get_output_embeddings().weight.detach()

    def head_shape(self, draft_vocabulary: int, aux_layers: tuple[int, int, int]) -> HeadShape:
        """A head of the target's own sizes."""
        c = self.config
        return HeadShape(
            hidden=c.hidden_size,
            intermediate=c.intermediate_size,
            heads=c.num_attention_heads,
            kv_heads=c.num_key_value_heads,
            head_dim=c.head_dim,
            vocabulary=c.vocab_size,
            rms_eps=c.rms_norm_eps,
            rope_theta=c.rope_parameters["rope_theta"],
            draft_vocabulary=draft_vocabulary,
            aux_layers=aux_layers,
            max_positions=c.max_position_embeddings,
        )

    @torch.inference_mode()
    def states(self, ids: Tensor, aux_layers: tuple[int, int, int]) -> Tensor:
        """(batch, T) token ids, right-padded, to (batch, T, 4, H): the aux states and the final normed one."""
        seen: dict[int, Tensor] = {}

        def keep(number: int) -> Any:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                seen[number] = output[0] if isinstance(output, tuple) else output

            return hook

        hooks = [self.model.model.layers[n - 1].register_forward_hook(keep(n)) for n in aux_layers]
        final = self.model.model(input_ids=ids, use_cache=False).last_hidden_state
        for hook in hooks:
            hook.remove()
        return torch.stack([*(seen[n] for n in aux_layers), final], 2).bfloat16()


def padded(conversations: list[Conversation]) -> Tensor:
    """Token ids as (batch, longest), filled up with 0 on the right."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(c.ids) for c in conversations], batch_first=True)


def batches(conversations: list[Conversation], tokens: int = TOKENS_A_BATCH) -> Iterator[list[Conversation]]:
    """Batches of similar lengths with at most `tokens` tokens, padding included."""
    batch: list[Conversation] = []
    for conversation in sorted(conversations, key=lambda c: len(c.ids)):
        if batch and len(conversation.ids) * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(conversation)
    if batch:
        yield batch


class StateFile:
    """The states of a file of conversations, computed once; a second start continues where the first one stopped."""

    def __init__(self, path: Path, hidden: int, rows: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        row_bytes = 4 * hidden * 2
        with path.open("ab") as file:
            file.truncate(max(rows * row_bytes, path.stat().st_size))
        stored = path.stat().st_size // row_bytes
        self.values = torch.from_file(str(path), shared=True, size=stored * 4 * hidden, dtype=torch.bfloat16).view(
            -1, 4, hidden
        )

    def fill(self, target: Target, conversations: list[Conversation], aux_layers: tuple[int, int, int]) -> None:
        """Compute the states that are not there yet (all-zero final states)."""
        missing = [c for c in conversations if not self.values[c.row, 3].any()]
        for batch in batches(missing):
            states = target.states(padded(batch), aux_layers)
            for conversation, rows in zip(batch, states, strict=True):
                length = len(conversation.ids)
                self.values[conversation.row : conversation.row + length] = rows[:length]

    def of(self, batch: list[Conversation]) -> Tensor:
        """(batch, longest, 4, H), zeros on the right."""
        return torch.nn.utils.rnn.pad_sequence(
            [self.values[c.row : c.row + len(c.ids)] for c in batch], batch_first=True
        )
