"""The examples in docs/prompts.md are read as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eagle_bench.adapters.hugging_face import DATASET
from eagle_bench.adapters.sources import NAMED
from eagle_bench.workload import readers
from eagle_bench.workload.slices import BUILTIN
from eagle_bench.workload.synthetic import shape_of

PAGE = (Path(__file__).parents[2] / "docs" / "prompts.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_there_is_an_example_of_every_form() -> None:
    assert [form for form, _ in EXAMPLES] == ["json", "jsonl", "jsonl", "csv"]


@pytest.mark.parametrize(("form", "example"), EXAMPLES)
def test_an_example_is_read(form: str, example: str, tmp_path: Path) -> None:
    path = tmp_path / f"example.{form}"
    path.write_text(example, encoding="utf-8")
    first, *_ = readers.read(path)
    assert first.prompt is not None
    assert first.prompt.messages[-1].content == "Why is the sky blue?"


def test_every_kind_of_source_is_on_the_page_and_is_one() -> None:
    for name in (BUILTIN, *NAMED):
        assert f"`{name}`" in PAGE
    for address in re.findall(r"`(hf://[^`]+)`", PAGE):
        assert DATASET.match(address)
    (shape,) = set(re.findall(r"`(synthetic:[^`]+)`", PAGE))
    assert shape_of(shape)
