"""The prompts of one cell from a user's file, as `eagle-bench bench` takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle_bench.errors import InputError
from eagle_bench.workload import cell_prompts
from eagle_bench.workload.prompts import Prompt, StagedPrompt


def cell(
    path: Path,
    *,
    concurrency: int = 2,
    num: int | None = None,
    rounds: int = 1,
    seed: int = 0,
    limit: int | None = None,
) -> tuple[list[Prompt], list[StagedPrompt]]:
    return cell_prompts(
        path,
        concurrency=concurrency,
        num_prompts=num,
        rounds=rounds,
        tokenizer=None,
        seed=seed,
        max_output_tokens=limit,
    )


def lines(path: Path, prompts: list[str], output_tokens: int | None = None) -> Path:
    extra = {} if output_tokens is None else {"output_tokens": output_tokens}
    path.write_text("\n".join(json.dumps({"prompt": prompt, **extra}) for prompt in prompts))
    return path


def texts(prompts: list[Prompt] | list[StagedPrompt]) -> list[str]:
    return [prompt.messages[0].content for prompt in prompts]


@settings(deadline=None, max_examples=50)
@given(
    asked=st.lists(st.text(alphabet="abc é", min_size=1).filter(str.strip), min_size=1, max_size=30, unique=True),
    rounds=st.integers(1, 4),
    concurrency=st.integers(1, 20),
)
def test_a_file_of_different_prompts_is_measured_whole_in_order(
    asked: list[str], rounds: int, concurrency: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rounds = min(rounds, len(asked))
    path = lines(tmp_path_factory.mktemp("cell") / "p.jsonl", asked)
    for num in (None, len(asked)):
        warmup, measured = cell(path, concurrency=concurrency, num=num, rounds=rounds)
        assert texts(measured) == asked
        assert [prompt.round for prompt in measured] == sorted(prompt.round for prompt in measured)
        assert {prompt.round for prompt in measured} == set(range(rounds))
        assert len(warmup) == 2 * concurrency == len(set(texts(warmup)))
        assert not set(texts(warmup)) & set(asked)


def test_prompts_that_begin_alike_are_the_users_choice(tmp_path: Path) -> None:
    asked = [f"{'Summarise the following note in one short sentence, please: ' * 2}{n}" for n in range(20)]
    assert texts(cell(lines(tmp_path / "p", asked))[1]) == asked


def test_fewer_than_there_are_is_a_sample_by_seed_and_the_rest_warms_up(tmp_path: Path) -> None:
    asked = [f"{n}: a question" for n in range(100)]
    path = lines(tmp_path / "p", asked)
    warmup, measured = cell(path, num=20)
    assert len(measured) == 20
    assert texts(measured) == [text for text in asked if text in texts(measured)]
    assert set(texts(warmup)) <= set(asked) - set(texts(measured))
    assert cell(path, num=20) == (warmup, measured)
    assert texts(cell(path, num=20, seed=1)[1]) != texts(measured)


def test_more_than_there_are_names_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"50 prompts were asked for, and it holds 12 different ones.*--num-prompts 12"
    ):
        cell(lines(tmp_path / "p", [f"{n}?" for n in range(12)]), num=50)


def test_a_prompt_that_would_be_sent_twice_is_refused_by_its_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "p", ["A?", "B?", "A?"])
    with pytest.raises(InputError, match=r"3 prompts.*2 different.*line 3 repeats line 1.*prefix cache"):
        cell(path)
    assert texts(cell(path, num=2)[1]) == ["A?", "B?"]


def test_nothing_to_measure_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of its entries can be used: 2 empty"):
        cell(lines(tmp_path / "p", ["", " "]))


@pytest.mark.parametrize(
    ("own", "limit", "expected"), [(7, None, 7), (7, 5, 5), (7, 50, 7), (None, 5, 5), (None, None, None)]
)
def test_the_lower_of_the_rows_length_and_the_limit_holds(
    tmp_path: Path, own: int | None, limit: int | None, expected: int | None
) -> None:
    _, measured = cell(lines(tmp_path / "p", ["A?", "B?"], own), limit=limit)
    assert [prompt.max_tokens for prompt in measured] == [expected, expected]


def test_made_up_warm_up_is_as_long_as_what_is_measured(tmp_path: Path) -> None:
    asked = [f"{n} " + "word " * 300 for n in range(10)]
    warmup, _ = cell(lines(tmp_path / "p", asked, 33))
    for prompt in warmup:
        assert 0.5 < len(prompt.messages[0].content) / len(asked[0]) < 2
        assert prompt.max_tokens == 33


def test_more_rounds_than_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 rounds can't share 2 prompts"):
        cell(lines(tmp_path / "p", ["A?", "B?"]), rounds=3)
