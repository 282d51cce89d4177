"""The EAGLE-3 draft head: one decoder layer over the target's own hidden states (arXiv 2503.01840).

Names and shapes of the parameters are those of the checkpoint that vLLM loads, so `state_dict()` is the export.
H is the target's hidden size, D the draft vocabulary, V the target's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class HeadShape:
    """Sizes of a head; all but the last three are the target's own."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    rms_eps: float
    rope_theta: float
    draft_vocabulary: int
    aux_layers: tuple[int, int, int]
    """Which hidden states the head reads: n is the residual stream after n decoder layers, before any norm."""
    max_positions: int = 8192


class RMSNorm(nn.Module):
    """x / rms(x) · weight, in float32 inside, as the target has it."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class DraftAttention(nn.Module):
    """Grouped-query attention whose later draft steps see the keys of the earlier ones (see `attend`)."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.shape = shape
        heads, kv_heads = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(2 * shape.hidden, heads, bias=False)
        self.k_proj = nn.Linear(2 * shape.hidden, kv_heads, bias=False)
        self.v_proj = nn.Linear(2 * shape.hidden, kv_heads, bias=False)
        self.o_proj = nn.Linear(heads, shape.hidden, bias=False)

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, T, 2H) and positions (T,) to rotated queries and keys and plain values, each (batch, heads, T, head_dim)."""
        split = (*x.shape[:2], -1, self.shape.head_dim)
        groups = self.shape.heads // self.shape.kv_heads
        query = rotate(self.q_proj(x).view(split).transpose(1, 2), positions, self.shape.rope_theta)
        key = rotate(self.k_proj(x).view(split).transpose(1, 2), positions, self.shape.rope_theta)
        value = self.v_proj(x).view(split).transpose(1, 2)
        return query, key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)

    def attend(self, query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
        """Attention of draft step n = len(keys) - 1 for every anchor at once: (batch, heads, T, head_dim).

        An anchor t sees the keys of step 0 at 0..t (made of the target's hidden states) and, of each later step, only its own
        key at t: those of other anchors belong to other drafts.
        """
        if len(keys) == 1:
            return F.scaled_dot_product_attention(query, keys[0], values[0], is_causal=True)
        length = query.shape[2]
        scale = self.shape.head_dim**-0.5
        past = torch.ones(length, length, dtype=torch.bool).tril()
        scores = (query @ keys[0].transpose(-1, -2)).float().masked_fill(~past, -torch.inf)
        own = [(query * key).float().sum(-1, keepdim=True) for key in keys[1:]]
        weights = torch.softmax(torch.cat([scores, *own], -1) * scale, -1).to(query.dtype)
        mixed = weights[..., :length] @ values[0]
        for step, value in enumerate(values[1:]):
            mixed = mixed + weights[..., length + step, None] * value
        return mixed


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Rotary position embedding in the half-split form: x (…, T, head_dim), positions (T,)."""
    half = x.shape[-1] // 2
    frequency = theta ** -(torch.arange(half, dtype=torch.float32) / half)
    angle = positions[:, None].float() * frequency
    cos, sin = torch.cos(angle).repeat(1, 2).to(x.dtype), torch.sin(angle).repeat(1, 2).to(x.dtype)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class GatedMLP(nn.Module):
    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class DraftLayer(nn.Module):
    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden, shape.rms_eps)
        self.hidden_norm = RMSNorm(shape.hidden, shape.rms_eps)
        self.self_attn = DraftAttention(shape)
        self.post_attention_layernorm = RMSNorm(shape.hidden, shape.rms_eps)
        self.mlp = GatedMLP(shape)


class Eagle3Head(nn.Module):
    """The head; embeddings of tokens come from the target and are passed in."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(3 * shape.hidden, shape.hidden, bias=False)
        self.midlayer = DraftLayer(shape)
        self.norm = RMSNorm(shape.hidden, shape.rms_eps)
        self.lm_head = nn.Linear(shape.hidden, shape.draft_vocabulary, bias=False)
        self.register_buffer("d2t", torch.zeros(shape.draft_vocabulary, dtype=torch.int64))
        self.register_buffer("t2d", torch.zeros(shape.vocabulary, dtype=torch.bool))
        self.d2t: Tensor
        self.t2d: Tensor

    def use_vocabulary(self, kept: Tensor) -> None:
        """Draft only the target's tokens `kept` (ascending ids): d2t[i] = kept[i] - i, t2d[kept] = True."""
        self.d2t.copy_(kept - torch.arange(len(kept)))
        self.t2d.zero_()
        self.t2d[kept] = True

    def kept_tokens(self) -> Tensor:
        """The target's ids of the draft vocabulary, ascending: (D,)."""
        return self.d2t + torch.arange(len(self.d2t))

    def step(
        self, embeddings: Tensor, hidden: Tensor, keys: list[Tensor], values: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """One draft step for every anchor: (for `lm_head`, for the next step), each (batch, T, H).

        `embeddings` are those of the newest token of each anchor, `hidden` is `fc` of the target's states in step 0 and the
        second output of the step before in later ones. `keys` and `values` of earlier steps are read, this step's are added.
        """
        layer = self.midlayer
        positions = torch.arange(hidden.shape[1]) + len(keys)
        both = torch.cat([layer.input_layernorm(embeddings), layer.hidden_norm(hidden)], -1)
        query, key, value = layer.self_attn.project(both, positions)
        keys.append(key)
        values.append(value)
        mixed = layer.self_attn.attend(query, keys, values).transpose(1, 2).flatten(2)
        stream = hidden + layer.self_attn.o_proj(mixed)
        stream = stream + layer.mlp(layer.post_attention_layernorm(stream))
        return self.norm(stream), stream
