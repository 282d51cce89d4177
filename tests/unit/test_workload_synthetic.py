"""Shapes: prompts of an exact length, all different, with a label that says what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle_bench.config import Workload
from eagle_bench.errors import InputError
from eagle_bench.workload import stage
from eagle_bench.workload.prompts import PROMPTS, Manifest, Message
from eagle_bench.workload.synthetic import Shape, generate, shape_of


class Pieces:
    """A tokenizer of its own kind: 9 tokens of template, and pieces of up to 4 letters."""

    def count(self, messages: Sequence[Message]) -> int:
        return 9 + sum(self.count_text(message.content) for message in messages)

    def count_text(self, text: str) -> int:
        return len(re.findall(r"\w{1,4}|[^\w\s]", text))


@settings(deadline=None, max_examples=50)
@given(tokens=st.integers(12, 700), seed=st.integers(0, 3))
def test_every_prompt_has_exactly_the_length_asked_for(tokens: int, seed: int) -> None:
    prompts = list(islice(generate(Shape(tokens, 32), seed=seed, counter=Pieces()), 3))
    assert [Pieces().count(prompt.messages) for prompt in prompts] == [tokens] * 3
    assert [prompt.prompt_tokens for prompt in prompts] == [tokens] * 3
    assert {prompt.max_tokens for prompt in prompts} == {32}
    assert len({prompt.messages for prompt in prompts}) == 3


class Pairs(Pieces):
    """Every word is two tokens and a full stop `stop`: only with 1 can odd lengths be made."""

    def __init__(self, stop: int) -> None:
        self.stop = stop

    def count(self, messages: Sequence[Message]) -> int:
        return 10 + sum(self.count_text(message.content) for message in messages)

    def count_text(self, text: str) -> int:
        return 2 * len(re.findall(r"\w+", text)) + self.stop * text.count(".")


def test_where_no_filler_fits_the_next_is_tried_and_in_the_end_it_is_said() -> None:
    prompt = next(generate(Shape(51, 8), seed=0, counter=Pairs(1)))
    assert Pairs(1).count(prompt.messages) == 51
    with pytest.raises(InputError, match="no text of exactly 51 tokens"):
        next(generate(Shape(51, 8), seed=0, counter=Pairs(2)))


def test_a_length_that_the_template_alone_exceeds_is_refused() -> None:
    with pytest.raises(InputError, match=r"asks for 8 input tokens.*takes 1[01]"):
        next(generate(Shape(8, 32), seed=0, counter=Pieces()))


@pytest.mark.parametrize(
    "name", ["synthetic", "synthetic:", "synthetic:10", "synthetic:0x5", "synthetic:5x-1", "synthetic:axb"]
)
def test_what_is_no_shape_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(InputError, match="synthetic:512x128"):
        shape_of(name)


def synthetic(out: Path, shape: str, *, requests: int = 50, ignore_eos: bool = False) -> Manifest:
    return stage(
        Workload(dataset=shape, ignore_eos=ignore_eos),
        None,
        concurrency=[1, 2],
        repeats=2,
        requests_at=lambda _: requests,
        tokenizer=None,
        out=out,
    )


def test_a_staged_shape_has_its_label_and_different_openings(tmp_path: Path) -> None:
    manifest = synthetic(tmp_path / "out", "synthetic:100x20")
    assert manifest.label is not None
    assert "about 100 input tokens and up to 20 output tokens" in manifest.label
    texts = [
        json.loads(line)["messages"][0]["content"] for line in (tmp_path / "out" / PROMPTS).read_text().splitlines()
    ]
    assert len({text[:64] for text in texts}) == len(texts) == 106
    assert {len(text.split()) for text in texts} == {100}
    fixed = synthetic(tmp_path / "fixed", "synthetic:100x20", ignore_eos=True)
    assert fixed.label is not None
    assert "and 20 output tokens" in fixed.label


def test_a_shape_too_short_for_so_many_different_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too little room"):
        synthetic(tmp_path, "synthetic:1x20", requests=2000)
