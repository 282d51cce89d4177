"""Prompts and the slices of them that the cells of a run get.

A staged folder (the artifact of `stage_data`) holds

    manifest.json    `Manifest`: where the prompts came from, what was dropped and why, the slices' hashes
    prompts.jsonl    one `StagedPrompt` a line
    tokenizer/       the tokenizer's files, where one was staged
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from eagle_bench.errors import InputError
from eagle_bench.results import Record

MANIFEST, PROMPTS, TOKENIZER = "manifest.json", "prompts.jsonl", "tokenizer"


class Message(Record):
    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(Record):
    """One conversation to send, up to and with the user's last turn."""

    id: str
    kind: str | None = Field(None, description="chat, code, summary, … where the source says")
    messages: tuple[Message, ...] = Field(min_length=1)
    prompt_tokens: int | None = Field(None, description="as the tokenizer's chat template makes them; None without one")
    max_tokens: int | None = Field(None, description="length of the answer, where the source or the shape fixes it")


class StagedPrompt(Prompt):
    """A prompt with the place in the run that it belongs to, and no other."""

    concurrency: int = Field(ge=1)
    round: int = Field(ge=-1, description="0, 1, … or -1 for the warm-up")


class Drop(Record):
    reason: str
    count: int


class Slice(Record):
    concurrency: int
    round: int
    count: int
    sha256: str


class Manifest(Record):
    source: str
    source_sha256: str | None
    label: str | None = Field(None, description="of a synthetic shape")
    seed: int
    read: int
    kept: int
    dropped: tuple[Drop, ...]
    slices: tuple[Slice, ...]
    tokenizer: str | None = None


def sha256_of(prompts: Iterable[Prompt]) -> str:
    """Hash of ids and texts in order: equal hashes mean equal load."""
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(prompt.id.encode())
        for message in prompt.messages:
            digest.update(f"\x1f{message.role}\x1f{message.content}".encode())
        digest.update(b"\x1e")
    return digest.hexdigest()


def read_staged(folder: Path, concurrency: int) -> tuple[list[StagedPrompt], list[StagedPrompt]]:
    """The warm-up and the measured prompts of one level, the latter ordered by round.

    Raises:
        InputError: the folder holds no prompts for this level.
    """
    path = folder / PROMPTS
    if not path.is_file():
        raise InputError(f"{folder}: no staged prompts: there is no {PROMPTS} in it.")
    warmup: list[StagedPrompt] = []
    measured: list[StagedPrompt] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            prompt = StagedPrompt.model_validate_json(line)
            if prompt.concurrency == concurrency:
                (warmup if prompt.round < 0 else measured).append(prompt)
    if not measured:
        raise InputError(f"{folder}: no prompts were staged for concurrency {concurrency}.")
    return warmup, sorted(measured, key=lambda p: p.round)
