"""Prompts of a fixed length from random words: shapes such as `synthetic:512x128`.

They measure the engine at a shape, not EAGLE's benefit: nobody asks in random words, and drafts guess badly at what
follows them. Results carry the shape's label for that reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import shake_128
from typing import NamedTuple

from eagle_bench.errors import InputError
from eagle_bench.workload.filters import TokenCounter
from eagle_bench.workload.prompts import Message, Prompt

SHAPE = re.compile(r"^synthetic:([1-9]\d{0,6})x([1-9]\d{0,6})$")
# Short and common, so that nearly each is one token in nearly every vocabulary.
WORDS = tuple(
    """time year people way day man thing woman life child world school state family student group country problem
    hand part place case week company system program question work number night point home water room mother area
    money story fact month lot right study book eye job word business issue side kind head house service friend
    father power hour game line end member law car city community name president team minute idea body information
    back parent face others level office door health person art war history party result change morning reason
    research girl guy moment air teacher force education foot boy age policy music market sense nation plan college
    interest death experience effect use class control field development role effort rate heart drug show leader
    light voice wife police mind price report decision son view relationship town road arm difference value
    building action season society tax director position player record paper space ground form event official
    matter center couple site project activity star table need court oil situation cost industry figure street
    image phone data picture practice piece land product doctor wall patient worker news test movie north love
    step staff sister river window snow field green blue red small large early late open clear strong simple
    quick quiet warm cold dry deep high low long short young old new full free whole main great""".split()  # noqa: SIM905 three hundred quotes would hide the words
)


class Shape(NamedTuple):
    """Tokens in, with the chat template, and out."""

    input_tokens: int
    output_tokens: int

    def label(self, *, exact: bool, ignore_eos: bool) -> str:
        """How a report names the workload."""
        about = "" if exact else "about "
        upto = "" if ignore_eos else "up to "
        return (
            f"synthetic: random words, {about}{self.input_tokens} input tokens and {upto}{self.output_tokens} "
            "output tokens a request; no measure of what people ask"
        )


def shape_of(dataset: str) -> Shape | None:
    """The shape that a data set's name stands for; None where it names no shape.

    Raises:
        InputError: the name starts with `synthetic:` and goes on otherwise.
    """
    if not dataset.startswith("synthetic"):
        return None
    match = SHAPE.match(dataset)
    if not match:
        raise InputError(
            f"`workload.dataset`: {dataset!r} is not a shape.",
            hint="Allowed: synthetic:INPUTxOUTPUT in tokens, such as synthetic:512x128.",
        )
    return Shape(int(match[1]), int(match[2]))


def generate(shape: Shape, *, seed: int, counter: TokenCounter | None, prefix: str = "synthetic") -> Iterator[Prompt]:
    """Endlessly many different prompts of a shape, the same for the same seed.

    With a tokenizer each has exactly `input_tokens`, chat template included; without one the length is about right
    (a word a token) and `prompt_tokens` is None.

    Raises:
        InputError: the chat template alone is longer than the shape, or no text of that length could be made.
    """
    number = 0
    while True:
        words = _words(f"{prefix}:{seed}:{number}", shape.input_tokens)
        text = " ".join(words) if counter is None else _cut(words, shape.input_tokens, counter)
        yield Prompt(
            id=f"{prefix}-{number:06d}",
            kind=prefix,
            messages=(Message(role="user", content=text),),
            prompt_tokens=None if counter is None else shape.input_tokens,
            max_tokens=shape.output_tokens,
        )
        number += 1


def _words(name: str, count: int) -> list[str]:
    """Random words; hashing instead of `random` keeps them equal on every Python."""
    noise = shake_128(name.encode()).digest(2 * count)
    return [WORDS[int.from_bytes(noise[i : i + 2]) % len(WORDS)] for i in range(0, 2 * count, 2)]


def _cut(words: list[str], wanted: int, counter: TokenCounter) -> str:
    """As many of the words as make exactly `wanted` tokens, the rest filled with single letters."""

    def tokens(text: str) -> int:
        return counter.count((Message(role="user", content=text),))

    low, high = 1, len(words)
    if tokens(words[0]) > wanted:
        raise InputError(
            f"`workload.dataset`: the shape asks for {wanted} input tokens, and the tokenizer's chat template "
            f"with one word takes {tokens(words[0])}.",
            hint="Ask for more input tokens.",
        )
    while low < high:  # the most words that fit
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens(" ".join(words[:middle])) <= wanted else (low, middle - 1)
    text = " ".join(words[:low])
    for filler in (" a", " b", "."):
        padded = text
        while tokens(padded) < wanted:
            padded += filler
        if tokens(padded) == wanted:
            return padded
    raise InputError(
        f"`workload.dataset`: no text of exactly {wanted} tokens could be made with this tokenizer.",
        hint="Ask for another input length.",
    )
