"""Small real tokenizers, trained on the built-in prompts in a second, with chat templates of several makers' styles."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from eagle_bench.workload import readers
from eagle_bench.workload.slices import builtin_prompts

SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]
SMOL = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful assistant<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{%- for message in messages %}
    {%- if message.role not in ["user", "assistant", "system"] %}
        {{- raise_exception("unknown role") }}
    {%- endif %}
    {{- "<|im_start|>" + message.role + "\\n" + date_string + "\\n" + message.content | trim + eos_token }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- "<|im_start|>assistant\\n" }}
{%- endif %}
"""
MINIMAL = """{% for message in messages %}
{% if loop.index0 > 9 %}{% break %}{% endif %}
{{ message | tojson }}
{% endfor %}"""


@cache
def _trained() -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (entry.prompt.messages[0].content for entry in readers.read(builtin_prompts()) if entry.prompt)
    tokenizer.train_from_iterator(texts, trainer)
    return str(tokenizer.to_str())


def write_tokenizer(folder: Path, template: str | None, *, place: str = "tokenizer_config.json") -> Path:
    """Write a tokenizer's files, the chat template in `place`; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(_trained())
    settings: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": False, "rstrip": False,
                      "single_word": False},
        "eos_token": "</s>",
    }  # fmt: skip
    if template is not None and place == "tokenizer_config.json":
        settings["chat_template"] = template
    elif template is not None:
        (folder / place).write_text(template)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
