"""The folder of an earlier run: what is damaged in it is told by file and cell, and everything else is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eagle_bench import config_file
from eagle_bench.adapters.pipeline_template import parameters
from eagle_bench.errors import InputError
from eagle_bench.runs.earlier_runs import bring_together, run_in
from eagle_bench.runs.gathering import make_room, note
from simulated_cells import cell

RUN_ID = "eagle-benchmark-20260101-000000-abcd"
TOLD = parameters(
    config_file.validate(
        {
            "project": "p",
            "location": "us-central1",
            "variants": [{"id": "baseline", "url": "http://a/v1"}, {"id": "eagle3", "url": "http://b/v1"}],
            "workload": {"prompts_per_level": 60},
            "concurrency": [1, 2],
        }
    ),
    {},
)
CELLS = [(variant, level) for variant in ("baseline", "eagle3") for level in (1, 2)]


def text(variant: str, level: int, **changes: Any) -> str:
    return json.dumps(cell(variant, level, prompts=60) | changes, indent=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a run left, with all of its cells whole."""
    note(RUN_ID, {}, tmp_path, {"cores": 2})
    (tmp_path / "results").mkdir()
    for variant, level in CELLS:
        (tmp_path / "results" / f"{variant}-c{level}.json").write_text(text(variant, level))
    return tmp_path


def test_a_whole_folder_is_taken_without_a_word(folder):
    said: list[str] = []
    found = run_in(folder, said.append)
    assert [(kept.cell.variant, kept.cell.concurrency) for kept in found.cells] == CELLS
    assert (found.run_id, found.equipment, found.noted_in) == (RUN_ID, {"cores": 2}, str(folder / "run.json"))
    assert said == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (text("eagle3", 2)[:400].encode(), "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not text in UTF-8"),
        (b"[]", "not the result of a cell"),
        (b"{}", "not the result of a cell"),
        (b"[" * 100_000, "nested too deeply"),
        (text("eagle3", 2, counts={"requested": "x"}).encode(), "`counts.requested`"),
        (text("eagle3", 2, duration_s=-1).encode(), "`duration_s` is below 0"),
        (text("eagle3", 2, counts={"requested": 9, "completed": 60, "failed": 0, "empty": 0}).encode(), "damage"),
        (text("eagle3", 2, schema_version=99).encode(), "schema version 99"),
        (text("eagle3", 2).replace("\n", "").encode() * 2, "not JSON"),
    ],
)
def test_a_damaged_cell_is_named_and_the_others_are_taken(folder, content, words):
    path = folder / "results" / "eagle3-c2.json"
    path.write_bytes(content)
    said: list[str] = []
    found = run_in(folder, said.append)
    assert [(kept.cell.variant, kept.cell.concurrency) for kept in found.cells] == CELLS[:3]
    (line,) = said
    assert line.startswith(f"the earlier result of eagle3 at concurrency 2 can't be read and counts as missing: {path}")
    assert words in line or words == "damage"
    assert "\n" not in line


def test_a_cell_that_may_not_be_read_is_named(folder):
    path = folder / "results" / "eagle3-c2.json"
    path.unlink()
    path.mkdir()
    said: list[str] = []
    assert len(run_in(folder, said.append).cells) == 3
    assert said == [
        f"the earlier result of eagle3 at concurrency 2 can't be read and counts as missing: {path}: Is a directory."
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b'{"run": "eagle', "line 1 is not JSON"),
        (b"\xff", "it is not text in UTF-8"),
        (b"[1]", "it is no mapping"),
        (b"{}", "`run` is missing"),
        (b'{"run": "../../etc", "parameters": {}}', "`run` is not the id of a run"),
        (b'{"run": 7, "parameters": {}}', "`run` is not what `run` wrote"),
        (b'{"run": "r"}', "`parameters` is missing"),
        (b'{"run": "r", "parameters": [1]}', "`parameters` is not what `run` wrote"),
        (b'{"run": "r", "parameters": {}, "equipment": 3}', "`equipment` is not what `run` wrote"),
    ],
)
def test_a_run_that_is_not_noted_any_more_is_refused_by_its_file(folder, content, words):
    path = folder / "run.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        run_in(folder, print)
    assert refused.value.message.startswith(f"--resume: {path} can't be used: {words}")
    assert "run without --resume" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("earlier", [[1], {"cells": [1]}, {"cells": {"gs://b": 1}}])
def test_parameters_that_name_earlier_cells_in_another_way_are_refused(tmp_path, earlier):
    note(RUN_ID, {"earlier": earlier}, tmp_path)
    with pytest.raises(InputError, match=r"run.json can't be used: `parameters.earlier` is not what `run` wrote"):
        run_in(tmp_path, print)


def test_what_a_killed_run_had_is_brought_together_with_what_it_had_taken(tmp_path):
    """Its own cells lie in a folder for each task, all by one name; the others where it copied them to."""
    root = tmp_path / "local-vertex" / "buckets" / "b" / "1" / RUN_ID
    for number, key in enumerate(CELLS[:2]):
        path = root / f"{number}" / f"benchmark-{number}" / "cell"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(json.loads(text(*key))))
    (root / "2" / "benchmark").mkdir(parents=True)
    (root / "2" / "benchmark" / "cell").write_text('{"variant": "eag')
    taken = root / "earlier" / "eagle3-c1.json"
    taken.parent.mkdir()
    taken.write_text(text("eagle3", 1))
    lost = {"cells": {f"gs://b/1/{RUN_ID}": ["earlier/eagle3-c1.json", "earlier/eagle3-c2.json"]}}
    note(RUN_ID, {**TOLD, "earlier": lost}, tmp_path, {"cores": 2})
    said: list[str] = []
    found = run_in(tmp_path, said.append)
    assert {(kept.cell.variant, kept.cell.concurrency) for kept in found.cells} == set(CELLS[:3])
    assert found.equipment == {"cores": 2}
    assert f"{root}/2/benchmark/cell: " in said[0]
    assert f"of eagle3 at concurrency 2 can't be read and counts as missing: {root}/earlier/eagle3-c2.json" in said[1]
    assert said[2:] == [f"{RUN_ID} ended before it had brought its results together: they are in {tmp_path} now"]
    assert {path.stem for path in (tmp_path / "results").iterdir()} == {"baseline-c1", "baseline-c2", "eagle3-c1"}
    assert (tmp_path / "report.html").is_file()

    again: list[str] = []
    assert len(run_in(tmp_path, again.append).cells) == 3
    assert again == []


def test_a_killed_run_whose_parameters_are_none_is_refused_by_its_file(tmp_path):
    note(RUN_ID, {**TOLD, "variants": [{"name": "x"}]}, tmp_path)
    with pytest.raises(InputError, match=r"run.json can't be used: .* its parameters can't be read: `id`") as refused:
        run_in(tmp_path, print)
    assert "\n" not in str(refused.value)


def test_a_run_that_begins_anew_where_one_was_killed_keeps_what_that_had(tmp_path):
    """Its results are brought together before they are set aside: from there on nobody would find them."""
    path = tmp_path / "local-vertex" / "buckets" / "b" / "1" / RUN_ID / "0" / "benchmark" / "cell"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(json.loads(text("eagle3", 1))))
    note(RUN_ID, TOLD, tmp_path, {"cores": 2})
    said: list[str] = []
    bring_together(tmp_path, said.append)
    assert said == [f"{RUN_ID} ended before it had brought its results together: they are in {tmp_path} now"]
    (kept,) = run_in(make_room(tmp_path, print), print).cells
    assert (kept.cell.variant, kept.cell.concurrency) == ("eagle3", 1)

    bring_together(tmp_path, said.append)  # nothing stands there any more
    (tmp_path / "run.json").write_text("{")
    bring_together(tmp_path, said.append)
    assert said[1].startswith(f"{tmp_path / 'run.json'} can't be used: ")
    assert len(said) == 2
