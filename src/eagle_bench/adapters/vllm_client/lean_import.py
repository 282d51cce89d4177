"""Imports vLLM's benchmark without the parts of vLLM that a client never runs.

`vllm.benchmarks.serve` imports vLLM's data sets and tokenizers, and through them its attention, LoRA, image and sound
code and all of `transformers`; vLLM itself imports PyTorch's compiler to patch it. That is 20 s of CPU for each cell on
a small machine. Our prompts and counts come from staging and nothing is compiled here, so while the benchmark is
imported these modules are stood in for. PyTorch itself is named in two annotations of what remains: 2 s more, and half a
gigabyte.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

TORCH, NETWORKS = "torch", "torch.nn"
DATASETS, TOKENIZERS, COMPILER = "vllm.benchmarks.datasets", "vllm.tokenizers", "vllm.env_override"


@dataclass
class SampleRequest:
    """One request, as vLLM's benchmark takes it: its own class has these fields with these defaults."""

    prompt: Any
    prompt_len: int
    expected_output_len: int = 0
    multi_modal_data: Any = None
    lora_request: Any = None
    request_id: str | None = None
    timestamp: float | None = None
    chat_messages: list[dict[str, Any]] | None = None
    request_overrides: dict[str, Any] | None = None


def _never(*_: object, **__: object) -> Any:
    raise AssertionError("vLLM's benchmark asked for a part that was left out of it")


def serve() -> Any:
    """The module `vllm.benchmarks.serve`, imported once; other imports of vLLM find the real modules afterwards."""
    with _stood_in():
        from vllm.benchmarks import serve as module
    return module


@contextmanager
def _stood_in() -> Iterator[None]:
    networks = ModuleType(NETWORKS)
    networks.Module = object  # type: ignore[attr-defined]
    contents: dict[str, dict[str, Any]] = {
        DATASETS: {"SampleRequest": SampleRequest, "add_dataset_parser": _never, "get_samples": _never},
        TOKENIZERS: {"TokenizerLike": object, "get_tokenizer": _never},
        COMPILER: {},
        TORCH: {"Tensor": object, "nn": networks},
    }
    if TORCH in sys.modules:
        del contents[TORCH]
    added = {name: ModuleType(name) for name in contents if name not in sys.modules}
    for name, module in added.items():
        vars(module).update(contents[name])
    sys.modules |= added
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]
