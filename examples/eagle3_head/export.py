"""Write and read a head as the checkpoint that vLLM loads with `--speculative-config '{"method": "eagle3", …}'`.

    model.safetensors   the parameters in bfloat16 (MLP and lm_head: float8_e4m3fn), d2t (int64: target id - draft id) and t2d (bool: is it in the draft vocabulary)
    config.json         the shapes, and which of the target's hidden states the head reads
    PROVENANCE.json     what it was made from: hashes, recipe, figures

The embedding is not stored: the engine shares the target's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from .head import Eagle3Head, HeadShape


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def config_of(shape: HeadShape) -> dict[str, Any]:
    """The checkpoint's config.json."""
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "num_hidden_layers": 1,
        "vocab_size": shape.vocabulary,
        "draft_vocab_size": shape.draft_vocabulary,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(shape.aux_layers), "use_aux_hidden_state": True},
        "rms_norm_eps": shape.rms_eps,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": shape.max_positions,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "bfloat16",
    }


def stored_type(name: str, value: torch.Tensor) -> torch.dtype:
    """bfloat16 for weights, but eight bits for the large ones that bear it; vLLM's loader casts both to the engine's type."""
    if not value.is_floating_point():
        return value.dtype
    return torch.float8_e4m3fn if "mlp" in name or "lm_head" in name else torch.bfloat16


def save(head: Eagle3Head, folder: Path) -> None:
    """Write model.safetensors and config.json into `folder`."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.to(stored_type(name, value)).contiguous() for name, value in head.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config_of(head.shape), indent=2) + "\n")


def load(folder: Path) -> Eagle3Head:
    """The head that `save` wrote, in float32."""
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    first, second, third = config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
    head = Eagle3Head(
        HeadShape(
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config["head_dim"],
            vocabulary=config["vocab_size"],
            rms_eps=config["rms_norm_eps"],
            rope_theta=config["rope_theta"],
            draft_vocabulary=config["draft_vocab_size"],
            aux_layers=(first, second, third),
            max_positions=config["max_position_embeddings"],
        )
    )
    head.load_state_dict(load_file(folder / "model.safetensors"))
    return head


def save_provenance(folder: Path, facts: dict[str, Any]) -> None:
    """Write PROVENANCE.json: `facts`, and the hashes and sizes of the two files beside it."""
    files = {
        name: {"sha256": sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in ("model.safetensors", "config.json")
    }
    (folder / "PROVENANCE.json").write_text(json.dumps({"files": files} | facts, indent=2) + "\n")


def random_head(like: Path, folder: Path, seed: int = 0) -> None:
    """A head of the same shape that learned nothing: a broken draft, whose tokens are never accepted."""
    trained = load(like)
    torch.manual_seed(seed)
    head = Eagle3Head(trained.shape)
    head.use_vocabulary(trained.kept_tokens())
    for name, value in head.named_parameters():
        if "norm" not in name:
            torch.nn.init.normal_(value, std=0.02)
    save(head, folder)
    save_provenance(folder, {"what": "random weights: a broken draft for tests", "seed": seed})


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a random head, the broken draft of the tests.")
    parser.add_argument(
        "--like", type=Path, required=True, help="folder of a trained head: shape and vocabulary are taken from it"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random_head(args.like, args.out, args.seed)


if __name__ == "__main__":
    main()
