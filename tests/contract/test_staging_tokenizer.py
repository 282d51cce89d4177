"""Token counts, held against `transformers`, which shares no code with ours but the tokenizer's own library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eagle_bench.adapters.tokenizer import copy, load
from eagle_bench.errors import InputError
from eagle_bench.workload import readers
from eagle_bench.workload.prompts import Message
from eagle_bench.workload.slices import builtin_prompts
from servers.tokenizers import LLAMA, MINIMAL, SMOL, write_tokenizer

CONVERSATIONS: list[list[Message]] = [
    [Message(role="user", content="Why is the sky blue?")],
    [Message(role="system", content="Be brief."), Message(role="user", content="¿Qué? 山 🙂 </s> <|im_end|>")],
    [
        Message(role="user", content="  A  "),
        Message(role="assistant", content="b\n\n"),
        Message(role="user", content="C" * 300),
    ],
]


def reference(folder: Path, messages: Sequence[Message]) -> int:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    return len(
        tokenizer.apply_chat_template(
            [message.model_dump() for message in messages], add_generation_prompt=True, tokenize=True, return_dict=False
        )
    )


@pytest.mark.parametrize("template", [SMOL, LLAMA, MINIMAL])
@pytest.mark.parametrize("place", ["tokenizer_config.json", "chat_template.jinja"])
def test_conversations_count_as_transformers_counts_them(tmp_path: Path, template: str, place: str) -> None:
    write_tokenizer(tmp_path, template, place=place)
    counter = load(tmp_path)
    for messages in CONVERSATIONS:
        assert counter.count(messages) == reference(tmp_path, messages)


def test_a_text_counts_without_special_tokens(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, SMOL)
    counter = load(tmp_path)
    assert counter.count_text("") == 0
    assert counter.count_text("one") + counter.count_text(" two") == counter.count_text("one two")


def test_without_a_template_the_texts_count(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, None)
    assert load(tmp_path).count(CONVERSATIONS[0]) == load(tmp_path).count_text("Why is the sky blue?")


def test_a_template_that_refuses_a_conversation_says_what(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, "{{ raise_exception('no system role here') }}")
    with pytest.raises(InputError, match="refuses a conversation: no system role here"):
        load(tmp_path).count(CONVERSATIONS[0])


def test_a_template_cannot_reach_the_machine(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, "{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(InputError, match="refuses a conversation"):
        load(tmp_path).count(CONVERSATIONS[0])


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no tokenizer.*found nothing"),
        ({"model.safetensors": ""}, "holds no tokenizer.*found model.safetensors"),
        ({"tokenizer.json": "{"}, "can't be loaded"),
        ({"tokenizer.json": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"}, "git lfs pull"),
    ],
)
def test_what_is_no_tokenizer_is_named(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        load(tmp_path)
    with pytest.raises(InputError, match="no such tokenizer folder"):
        load(tmp_path / "nowhere")


def test_a_copy_leaves_the_weights_behind(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "model", SMOL)
    (tmp_path / "model" / "model.safetensors").write_bytes(b"\0" * 100)
    (tmp_path / "model" / "model.safetensors.index.json").write_text("{}")
    copy(tmp_path / "model", tmp_path / "copy")
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
    assert load(tmp_path / "copy").count(CONVERSATIONS[0]) == load(tmp_path / "model").count(CONVERSATIONS[0])


def test_the_built_in_prompts_fit_the_default_limits(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, SMOL)
    counter = load(tmp_path)
    lengths = [counter.count(entry.prompt.messages) for entry in readers.read(builtin_prompts()) if entry.prompt]
    assert max(lengths) <= 1024
    assert min(lengths) >= 16


def test_a_config_that_is_not_an_object_is_left_aside(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, None)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps([]))
    assert load(tmp_path).count(CONVERSATIONS[0]) > 0
