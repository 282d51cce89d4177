"""The head that the built-in example serves: whole, small enough, and what its provenance says."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from typing import Any

import pytest
import torch
from safetensors import safe_open

FOLDER = resources.files("eagle_bench.builtin") / "eagle3"
LARGEST_BYTES = 15_000_000


def read_json(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    with (
        resources.as_file(FOLDER / "model.safetensors") as path,
        safe_open(path, framework="pt") as file,  # type: ignore[no-untyped-call]
    ):
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict


def test_the_files_are_those_of_the_provenance() -> None:
    for name, facts in read_json("PROVENANCE.json")["files"].items():
        data = (FOLDER / name).read_bytes()
        assert len(data) == facts["bytes"]
        assert hashlib.sha256(data).hexdigest() == facts["sha256"]


def test_the_weights_are_at_most_15_mb() -> None:
    assert len((FOLDER / "model.safetensors").read_bytes()) <= LARGEST_BYTES


def test_the_shapes_are_those_of_the_config(tensors: dict[str, torch.Tensor]) -> None:
    config = read_json("config.json")
    hidden, draft = config["hidden_size"], config["draft_vocab_size"]
    assert tensors["fc.weight"].shape == (hidden, 3 * hidden)
    assert tensors["midlayer.self_attn.q_proj.weight"].shape == (
        config["num_attention_heads"] * config["head_dim"],
        2 * hidden,
    )
    assert tensors["midlayer.self_attn.k_proj.weight"].shape == (
        config["num_key_value_heads"] * config["head_dim"],
        2 * hidden,
    )
    assert tensors["midlayer.mlp.up_proj.weight"].shape == (config["intermediate_size"], hidden)
    assert tensors["lm_head.weight"].shape == (draft, hidden)
    assert tensors["d2t"].shape == (draft,)
    assert tensors["t2d"].shape == (config["vocab_size"],)


def test_the_draft_vocabulary_maps_into_the_targets_and_back(tensors: dict[str, torch.Tensor]) -> None:
    into = torch.arange(len(tensors["d2t"])) + tensors["d2t"]
    assert torch.equal(into, torch.nonzero(tensors["t2d"]).flatten())


def test_no_weight_is_missing_or_broken(tensors: dict[str, torch.Tensor]) -> None:
    for name, value in tensors.items():
        assert torch.isfinite(value.float()).all(), name
        assert value.float().std() > 0, name


def test_the_figures_are_there_for_every_kind() -> None:
    figures = read_json("PROVENANCE.json")["predicted_acceptance"]["heldout"]
    assert len(figures) > 5
    for figure in figures.values():
        assert figure["length"] == pytest.approx(1 + sum(figure["by_position"]), abs=0.003)
