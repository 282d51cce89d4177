"""The built-in prompts: as their sources say, enough of each kind, none like another."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from eagle_bench.builtin import compose
from eagle_bench.config import Workload
from eagle_bench.tasks.stage_data import stage_data
from eagle_bench.workload import readers
from eagle_bench.workload.slices import builtin_prompts


def test_the_file_is_what_its_sources_make() -> None:
    assert builtin_prompts().read_text(encoding="utf-8") == compose.compose(), (
        "run: python -m eagle_bench.builtin.compose"
    )


def test_there_are_enough_of_every_kind() -> None:
    data = json.loads(builtin_prompts().read_text(encoding="utf-8"))
    kinds = Counter(entry["kind"] for entry in data)
    assert set(kinds) == set(compose.KINDS)
    assert min(kinds.values()) >= 60
    assert len({entry["id"] for entry in data}) == len(data) == 700
    assert sum(len(entry["conversations"]) == 3 for entry in data) >= 20


def test_lengths_are_those_of_real_questions() -> None:
    for entry in readers.read(builtin_prompts()):
        assert entry.prompt is not None
        words = sum(len(message.content.split()) for message in entry.prompt.messages)
        assert 15 <= words <= 280, entry.prompt.id


def test_no_two_begin_alike() -> None:
    # The first nine words, whatever the case: no opening is a template.
    openings = Counter(
        " ".join(" ".join(m.content for m in entry.prompt.messages).lower().split()[:9])
        for entry in readers.read(builtin_prompts())
        if entry.prompt
    )
    assert [opening for opening, count in openings.items() if count > 1] == []


def test_a_run_on_three_levels_finds_all_it_needs(tmp_path: Path) -> None:
    load = Workload(prompts_per_level=180).model_dump(mode="json")
    manifest = stage_data(load, None, None, [1.0, 2.0, 4.0], 3.0, tmp_path)  # type: ignore[list-item, arg-type]
    assert (manifest.read, manifest.kept, manifest.dropped) == (700, 700, ())
    assert sum(part.count for part in manifest.slices) == 3 * 180 + 2 * (1 + 2 + 4)
