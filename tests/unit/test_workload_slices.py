"""Slices: disjoint, of the right size, without long shared prefixes, the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle_bench.config import Workload
from eagle_bench.errors import InputError
from eagle_bench.workload import stage
from eagle_bench.workload.prompts import MANIFEST, PROMPTS, Manifest, Message, StagedPrompt, read_staged, sha256_of


def write(path: Path, prompts: Sequence[str]) -> Path:
    path.write_text(json.dumps([{"conversations": [{"from": "human", "value": p}]} for p in prompts]))
    return path


def different(count: int, word: str = "question") -> list[str]:
    return [f"{number} is the number of this {word}, which nobody else asks" for number in range(count)]


def staged(folder: Path) -> list[StagedPrompt]:
    return [StagedPrompt.model_validate_json(line) for line in (folder / PROMPTS).read_text().splitlines()]


def run(source: Path, out: Path, levels: Sequence[int], *, requests: int, repeats: int = 1, seed: int = 0) -> Manifest:
    return stage(
        Workload(dataset=str(source), seed=seed),
        source,
        concurrency=levels,
        repeats=repeats,
        requests_at=lambda _: requests,
        tokenizer=None,
        out=out,
    )


def shared(one: bytes, other: bytes) -> int:
    """Bytes that two texts have in common before they part."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


OPENINGS = st.sampled_from(["", "Please tell me, as well as you can and in your own words, whether ", "é" * 40])


@settings(max_examples=30, deadline=None)
@given(
    prompts=st.lists(
        st.builds(lambda o, n: f"{o}{n} is odd", OPENINGS, st.integers(0, 400)), min_size=30, max_size=150
    ),
    levels=st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
    requests=st.integers(1, 12),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_the_law_of_slices(
    prompts: list[str],
    levels: list[int],
    requests: int,
    repeats: int,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("slices")
    source = write(folder / "prompts.json", prompts)
    # The oracle: a greedy look at every pair, by the prefixes that two texts really have in common.
    usable: list[bytes] = []
    for prompt in prompts:
        text = prompt.encode()
        if all(shared(text, other) < 64 and text != other for other in usable):
            usable.append(text)
    needed = sum(requests + 2 * level for level in levels)
    if requests < repeats or len(usable) < needed:
        with pytest.raises(InputError):
            run(source, folder / "out", levels, requests=requests, repeats=repeats, seed=seed)
        return
    manifest = run(source, folder / "out", levels, requests=requests, repeats=repeats, seed=seed)
    got = staged(folder / "out")
    texts = [prompt.messages[0].content.encode() for prompt in got]
    assert len(set(texts)) == len(texts) == needed
    assert len({prompt.id for prompt in got}) == needed
    assert all(shared(*pair) < 64 for pair in combinations(texts, 2))
    assert manifest.kept == len(usable)
    assert manifest.read == len(prompts) == manifest.kept + sum(drop.count for drop in manifest.dropped)
    for level in levels:
        warmup, measured = read_staged(folder / "out", level)
        assert len(warmup) == 2 * level
        sizes = [sum(prompt.round == index for prompt in measured) for index in range(repeats)]
        assert sum(sizes) == requests
        assert max(sizes) - min(sizes) <= 1
    again = run(source, folder / "again", levels, requests=requests, repeats=repeats, seed=seed)
    assert again == manifest
    assert (folder / "again" / PROMPTS).read_bytes() == (folder / "out" / PROMPTS).read_bytes()


def test_hashes_are_those_of_what_is_staged(tmp_path: Path) -> None:
    manifest = run(write(tmp_path / "p.json", different(200)), tmp_path / "out", [1, 2], requests=50, repeats=3)
    everything = staged(tmp_path / "out")
    for part in manifest.slices:
        prompts = [p for p in everything if (p.concurrency, p.round) == (part.concurrency, part.round)]
        assert (part.count, part.sha256) == (len(prompts), sha256_of(prompts))
    assert Manifest.model_validate_json((tmp_path / "out" / MANIFEST).read_text()) == manifest


def test_another_seed_takes_other_prompts(tmp_path: Path) -> None:
    source = write(tmp_path / "p.json", different(500))
    first, second = (run(source, tmp_path / f"{seed}", [1], requests=50, seed=seed) for seed in (1, 2))
    assert first.slices[0].sha256 != second.slices[0].sha256


def test_the_sample_does_not_favour_a_part_of_the_file(tmp_path: Path) -> None:
    run(write(tmp_path / "p.json", different(4000)), tmp_path / "out", [1], requests=1000)
    places = [int(prompt.messages[0].content.split()[0]) for prompt in staged(tmp_path / "out")]
    # Of 1,002 prompts out of four quarters each gets 250 ± 14; six deviations are never seen.
    for quarter in range(4):
        assert 168 < sum(1000 * quarter <= place < 1000 * (quarter + 1) for place in places) < 333


@pytest.mark.parametrize(("common", "kept"), [(63, 2), (64, 1), (65, 1)])
@pytest.mark.parametrize("letter", ["a", "é", "山"])
def test_sixty_four_bytes_in_common_are_too_many(tmp_path: Path, letter: str, common: int, kept: int) -> None:
    # Letters of one, two and three bytes, filled up with single ones.
    opening = letter * (common // len(letter.encode()))
    opening += "." * (common - len(opening.encode()))
    source = write(tmp_path / "p.json", [f"{opening}1 and more", f"{opening}2 and more", *different(60)])
    assert run(source, tmp_path / "out", [1], requests=50).kept == 60 + kept


def test_a_common_system_message_does_not_make_prompts_the_same(tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "system", "content": "S" * 300}, {"role": "user", "content": q}]} for q in different(60)
    ]
    source = tmp_path / "p.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in rows))
    assert run(source, tmp_path / "out", [1], requests=50).kept == 60


def test_too_few_says_how_many_there_are_how_many_are_needed_and_what_to_change(tmp_path: Path) -> None:
    prompts = [*different(130), *different(20), "", " "]
    with pytest.raises(InputError) as refused:
        run(write(tmp_path / "p.json", prompts), tmp_path / "out", [1, 2, 4], requests=50)
    message = str(refused.value)
    assert "130 of the 152" in message
    assert "164 are needed" in message
    assert "20 the same as another prompt" in message
    assert "2 empty" in message
    for way in ("`concurrency`", "`workload.dataset`"):
        assert way in message


def test_too_few_for_the_number_asked_for_offers_a_smaller_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lower `workload.prompts_per_level` \(1000\)"):
        run(write(tmp_path / "p.json", different(400)), tmp_path / "out", [1, 2], requests=1000)


class Words:
    """Counts words, so that a test can say what is too long."""

    def count(self, messages: Sequence[Message]) -> int:
        return sum(len(message.content.split()) for message in messages)

    def count_text(self, text: str) -> int:
        return len(text.split())


def test_every_prompt_over_the_limit_names_the_filter_and_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eagle_bench.workload.slices.counter_of", lambda folder: Words() if folder else None)
    source = write(tmp_path / "p.json", [f"{n} " + "long " * 1500 for n in range(120)])
    (tmp_path / "tokenizer").mkdir()
    with pytest.raises(InputError) as refused:
        stage(
            Workload(dataset="mine"),
            source,
            concurrency=[1],
            repeats=1,
            requests_at=lambda _: 50,
            tokenizer=tmp_path / "tokenizer",
            out=tmp_path / "out",
        )
    message = str(refused.value)
    assert "mine: none of the 120 conversations can be used, and 52 are needed" in message
    assert "120 longer than max_prompt_tokens = 1024" in message
    assert "`workload.max_prompt_tokens` (1024)" in message


def test_more_rounds_than_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`repeats`: 60 rounds can't share the 50 requests of concurrency 1"):
        run(write(tmp_path / "p.json", different(200)), tmp_path / "out", [1], requests=50, repeats=60)
