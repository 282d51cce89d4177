"""The EAGLE-3 trainer in examples/eagle3_head: what can be checked without an engine or the target's weights."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from eagle3_head import export
from eagle3_head.evaluate import Acceptance, table, walk, without
from eagle3_head.head import Eagle3Head, HeadShape
from eagle3_head.heldout import HELDOUT
from eagle3_head.states import Conversation, batches
from eagle3_head.subjects import SUBJECTS
from eagle3_head.train import (
    Lesson,
    Recipe,
    common_prefix,
    covered,
    frequent_tokens,
    losses,
    shifted,
    take_output_embedding,
    with_vocabulary,
)

SMALL = HeadShape(
    hidden=8,
    intermediate=12,
    heads=4,
    kv_heads=2,
    head_dim=4,
    vocabulary=50,
    rms_eps=1e-5,
    rope_theta=10_000.0,
    draft_vocabulary=10,
    aux_layers=(2, 4, 6),
)


def conversation(ids: list[int], start: int = 1, prompt: str = "") -> Conversation:
    return Conversation(ids, start, 0, prompt, "")


def random_small_head(seed: int) -> Eagle3Head:
    torch.manual_seed(seed)
    head = Eagle3Head(SMALL)
    head.use_vocabulary(torch.arange(0, 50, 5))
    return head


class TestDraftVocabulary:
    @given(st.sets(st.integers(0, 49), min_size=10, max_size=10))
    def test_the_two_maps_are_each_others_inverse(self, tokens: set[int]) -> None:
        head = Eagle3Head(SMALL)
        head.use_vocabulary(torch.tensor(sorted(tokens)))
        assert {i + offset for i, offset in enumerate(head.d2t.tolist())} == tokens
        assert {i for i, drafted in enumerate(head.t2d.tolist()) if drafted} == tokens

    def test_what_is_said_often_is_kept(self) -> None:
        said = [conversation([40] * 9 + [30] * 7 + [45], start=9)]
        kept = frequent_tokens(said, 2, vocabulary=50)
        assert kept.tolist() == [30, 40]
        assert covered(kept, said) == pytest.approx(7 / 8)

    def test_low_ids_fill_up_what_few_answers_leave_open(self) -> None:
        assert frequent_tokens([conversation([40, 40])], 4, vocabulary=50).tolist() == [0, 1, 2, 40]

    def test_another_vocabulary_leaves_the_head_as_it_is_and_takes_the_targets_rows(self) -> None:
        head, kept = random_small_head(2), torch.tensor([1, 7, 49])
        rows = torch.randn(SMALL.vocabulary, SMALL.hidden)
        other = with_vocabulary(head, SimpleNamespace(output_embedding=rows), kept)  # type: ignore[arg-type]
        assert torch.equal(other.kept_tokens(), kept)
        assert torch.equal(other.lm_head.weight, rows[kept])
        assert torch.equal(other.midlayer.mlp.up_proj.weight, head.midlayer.mlp.up_proj.weight)


class TestLosses:
    def test_a_head_that_learns_from_two_conversations_foretells_them(self) -> None:
        torch.manual_seed(0)
        head = Eagle3Head(SMALL)
        target = SimpleNamespace(output_embedding=torch.randn(50, 8) * 3, embedding=torch.randn(50, 8))
        head.use_vocabulary(torch.arange(10))
        take_output_embedding(head, target)  # type: ignore[arg-type]
        ids = torch.randint(0, 10, (2, 12))
        states = torch.randn(2, 12, 4, 8)
        states[:, :-1, 3] = target.output_embedding[ids[:, 1:]]  # the final state says which token comes next
        learnt = torch.ones_like(ids, dtype=torch.bool)
        recipe = Recipe(draft_steps=2)
        optimiser = torch.optim.AdamW([p for p in head.parameters() if p.requires_grad], lr=2e-2)
        before, _ = losses(head, target, Lesson(ids, states, learnt), recipe)  # type: ignore[arg-type]
        for _ in range(80):
            loss, agreed = losses(head, target, Lesson(ids, states, learnt), recipe)  # type: ignore[arg-type]
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
        assert loss.item() < before.item() / 2
        assert agreed[0] > 0.9


def serial_draft(
    head: Eagle3Head, embeddings: torch.Tensor, hidden: torch.Tensor, anchor: int, steps: int
) -> list[torch.Tensor]:
    """What an engine does for one anchor: a cache of keys and values, one position after the other. In plain Python."""
    w = {name: value.double() for name, value in head.state_dict().items()}
    cache: list[tuple[torch.Tensor, torch.Tensor]] = []

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x / math.sqrt((x * x).mean().item() + SMALL.rms_eps) * weight

    def turned(x: torch.Tensor, position: int) -> torch.Tensor:
        rows = x.view(-1, SMALL.head_dim)
        out = rows.clone()
        for i in range(SMALL.head_dim // 2):
            angle = position / SMALL.rope_theta ** (2 * i / SMALL.head_dim)
            a, b = rows[:, i], rows[:, i + SMALL.head_dim // 2]
            out[:, i] = a * math.cos(angle) - b * math.sin(angle)
            out[:, i + SMALL.head_dim // 2] = b * math.cos(angle) + a * math.sin(angle)
        return out

    def layer(embedding: torch.Tensor, state: torch.Tensor, position: int) -> torch.Tensor:
        x = torch.cat(
            [norm(embedding, w["midlayer.input_layernorm.weight"]), norm(state, w["midlayer.hidden_norm.weight"])]
        )
        query, key = (turned(w[f"midlayer.self_attn.{n}_proj.weight"] @ x, position) for n in "qk")
        cache.append((key, (w["midlayer.self_attn.v_proj.weight"] @ x).view(-1, SMALL.head_dim)))
        mixed = []
        for number in range(SMALL.heads):
            group = number // (SMALL.heads // SMALL.kv_heads)
            scores = torch.stack([query[number] @ k[group] for k, _ in cache]) / math.sqrt(SMALL.head_dim)
            mixed.append(torch.softmax(scores, 0) @ torch.stack([v[group] for _, v in cache]))
        state = state + w["midlayer.self_attn.o_proj.weight"] @ torch.cat(mixed)
        y = norm(state, w["midlayer.post_attention_layernorm.weight"])
        gate = w["midlayer.mlp.gate_proj.weight"] @ y
        return state + w["midlayer.mlp.down_proj.weight"] @ (
            gate * torch.sigmoid(gate) * (w["midlayer.mlp.up_proj.weight"] @ y)
        )

    for position in range(anchor + 1):
        state = layer(embeddings[position].double(), hidden[position].double(), position)
    made = [norm(state, w["norm.weight"])]
    for step in range(1, steps):
        state = layer(embeddings[anchor + step].double(), state, anchor + step)
        made.append(norm(state, w["norm.weight"]))
    return made


class TestDraftSteps:
    @settings(deadline=None, max_examples=15)
    @given(st.integers(0, 10_000), st.integers(0, 5))
    def test_all_anchors_at_once_are_what_an_engine_does_one_after_the_other(self, seed: int, anchor: int) -> None:
        head = random_small_head(seed)
        length, steps = 9, 3
        embeddings, hidden = torch.randn(1, length, SMALL.hidden), torch.randn(1, length, SMALL.hidden)
        wanted = serial_draft(head, embeddings[0], hidden[0], anchor, steps)
        keys: list[torch.Tensor] = []
        values: list[torch.Tensor] = []
        state = hidden
        for step in range(steps):
            out, state = head.step(shifted(embeddings, step), state, keys, values)
            torch.testing.assert_close(out[0, anchor].double(), wanted[step], atol=1e-4, rtol=1e-4)


class TestWalk:
    def test_a_head_that_is_always_right_gives_all_its_tokens(self) -> None:
        found = walk([[True] * 12] * 3, first=0, last=11)
        assert found == Acceptance(3, (3, 3, 3))
        assert found.length == 4.0

    def test_a_head_that_is_never_right_costs_a_draft_a_token(self) -> None:
        found = walk([[False] * 12] * 3, first=2, last=11)
        assert found == Acceptance(10, (0, 0, 0))
        assert found.length == 1.0

    def test_the_anchor_moves_on_by_what_was_accepted_and_one(self) -> None:
        # anchor 0: first right, second wrong, so 2; anchor 2: wrong, so 3; anchor 3: both right
        first, second = [True, True, False, True, True, True], [False, True, True, True, False, False]
        assert walk([first, second], first=0, last=5) == Acceptance(3, (2, 1))

    @given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=60))
    def test_positions_fall_and_all_tokens_are_accounted_for(self, answers: list[tuple[bool, bool, bool]]) -> None:
        agrees = [list(step) for step in zip(*answers, strict=True)]
        found = walk(agrees, 0, len(answers) - 1)
        assert found.drafts >= found.accepted[0] >= found.accepted[1] >= found.accepted[2]
        assert len(answers) <= found.drafts + sum(found.accepted) <= len(answers) + 1

    def test_the_table_ends_with_the_sum(self) -> None:
        lines = table({"all": Acceptance(4, (2, 1)), "code": Acceptance(4, (2, 1))}).splitlines()
        assert lines[2] == "| code | 4 | 1.75 | 0.500 | 0.250 |"
        assert lines[-1].startswith("| all |")


class TestData:
    @given(st.lists(st.integers(1, 300), max_size=40))
    def test_every_conversation_is_in_one_batch_and_no_batch_is_too_large(self, lengths: list[int]) -> None:
        made = list(batches([conversation([1] * n) for n in lengths], tokens=300))
        assert sorted(len(c.ids) for batch in made for c in batch) == sorted(lengths)
        assert all(max(len(c.ids) for c in batch) * len(batch) <= 300 for batch in made)

    def test_no_held_out_prompt_is_trained_on(self) -> None:
        mine = [conversation([1, 2], prompt=p) for p in ("a", "b", "c", "d")]
        training, validation = without(mine, [conversation([1], prompt="b")], share=0.34, seed=0)
        assert sorted(c.prompt for c in training + validation) == ["a", "c", "d"]
        assert len(validation) == 1

    def test_held_out_prompts_have_subjects_of_their_own(self) -> None:
        prompts = [prompt for prompts in HELDOUT.values() for prompt in prompts]
        assert len(set(prompts)) == len(prompts)
        long = [s for s in SUBJECTS if len(s) > 7]
        assert [p for p in prompts for s in long if s in p.lower()] == []

    def test_the_prefix_that_all_share_is_found(self) -> None:
        assert common_prefix([conversation([1, 2, 3, 4]), conversation([1, 2, 5]), conversation([1, 2, 3])]) == 2


class TestExport:
    def test_a_head_comes_back_as_it_was_up_to_its_stored_types(self, tmp_path: Path) -> None:
        head = random_small_head(1)
        export.save(head, tmp_path)
        again = export.load(tmp_path)
        assert again.shape == head.shape
        for name, value in head.state_dict().items():
            if not value.is_floating_point():
                assert torch.equal(again.state_dict()[name], value), name
            else:
                eight_bits = "mlp" in name or "lm_head" in name
                torch.testing.assert_close(
                    again.state_dict()[name], value, rtol=2**-4 if eight_bits else 2**-8, atol=2**-10
                )

    def test_the_names_are_those_that_vllm_loads(self, tmp_path: Path) -> None:
        export.save(random_small_head(1), tmp_path)
        attention = [f"midlayer.self_attn.{n}_proj.weight" for n in "qkvo"]
        mlp = [f"midlayer.mlp.{n}_proj.weight" for n in ("gate", "up", "down")]
        norms = [f"midlayer.{n}.weight" for n in ("input_layernorm", "hidden_norm", "post_attention_layernorm")]
        wanted = {*attention, *mlp, *norms, "fc.weight", "norm.weight", "lm_head.weight", "d2t", "t2d"}
        assert set(load_file(tmp_path / "model.safetensors")) == wanted

    def test_a_random_head_drafts_from_the_same_vocabulary(self, tmp_path: Path) -> None:
        export.save(random_small_head(1), tmp_path / "trained")
        export.random_head(tmp_path / "trained", tmp_path / "random", seed=3)
        trained, broken = (load_file(tmp_path / name / "model.safetensors") for name in ("trained", "random"))
        assert {n: t.shape for n, t in trained.items()} == {n: t.shape for n, t in broken.items()}
        assert torch.equal(trained["d2t"], broken["d2t"])
        assert not torch.equal(trained["fc.weight"], broken["fc.weight"])
        files = json.loads((tmp_path / "random" / "PROVENANCE.json").read_text())["files"]
        assert files["model.safetensors"]["sha256"] == export.sha256(tmp_path / "random" / "model.safetensors")
