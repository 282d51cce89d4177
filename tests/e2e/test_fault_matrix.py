"""Whatever fails, wherever: nothing stays deployed, nothing measured is lost, the cause is said, no secret shows.

The real pipeline on Local Vertex with a quick engine, under each fault of `faults.cases`. Two processes run the trials side
by side, each on a Local Vertex of its own; the tests here read what came of them. docs/fault-matrix.md is made by them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import golden_file
from faults.cases import TRIALS, rows
from faults.trial import Row, Trial
from leftover_processes import nothing_left

TESTS = Path(__file__).parents[1]
PAGE = "fault-matrix.md"
WORKERS = ("one", "two")
PATIENCE_S = 1200.0  # for all trials; only a hang meets it

INTRO = """# What happens when something fails

Eight H100s cost about 88 dollars an hour. So whatever fails, wherever: nothing stays deployed, nothing that was measured is lost,
the cause is reported, and no secret shows up. A test (`make test-faults`) makes this table: it runs the whole pipeline
on Local Vertex, with a quick engine, under each of these faults. In every case:

- no endpoint and no model is left: the run gives them back itself, or, if no task can run any more,
  `eagle-bench cleanup RUN_ID --yes` does; in the one row in which Local Vertex itself ends, they end with it;
- the results of every cell that had finished are kept, in the report or for `fetch`;
- the messages name the cause;
- no secret shows up anywhere: no Hugging Face token, no access token, no key of the service account. The test searches parameters and
  specifications, argument lists and environments of processes, logs, results and reports.

"Kept" is what remains of the cell that was hit. The baseline's cells are complete unless the whole run ends first.

| fault | hits | kept | given back by | people are told |
| :-- | :-- | :-- | :-- | :-- |
"""


@pytest.fixture(scope="session")
def findings(tmp_path_factory: pytest.TempPathFactory, tokenizer_folder: Path) -> Iterator[Callable[[Trial], dict]]:
    """What came of a trial, as soon as it has ended."""
    folder = tmp_path_factory.mktemp("faults")
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    workers = []
    for name in WORKERS:
        command = [sys.executable, "-m", "faults.worker", str(folder), str(tokenizer_folder), name]
        with (folder / f"{name}.log").open("w") as log:
            workers.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
    deadline = time.monotonic() + PATIENCE_S

    def of(trial: Trial) -> dict:
        found, failed = folder / f"{trial.id}.json", folder / f"{trial.id}.error"
        while not found.exists():
            assert not failed.exists(), failed.read_text()
            alive = any(worker.poll() is None for worker in workers)
            logs = "\n".join((folder / f"{name}.log").read_text()[-3000:] for name in WORKERS)
            assert alive and time.monotonic() < deadline, f"{trial.id} was not run to its end:\n{logs}"
            time.sleep(0.2)
        return json.loads(found.read_text())

    yield of
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
        worker.wait()
    assert nothing_left(str(folder))


@pytest.mark.parametrize(("trial", "row"), [pytest.param(trial, row, id=row.id) for trial, row in rows()])
def test_a_fault(trial: Trial, row: Row, findings: Callable[[Trial], dict]) -> None:
    found = findings(trial)
    assert row.id not in found["not_acted"], f"it never came to it:\n{found['said']}"
    assert found["state"] in trial.ends.split(" or "), found["said"]
    assert re.search(row.says, found["said"]), found["said"]
    assert found["cells"].get(row.id, "nothing") in {row.kept, "nothing" if row.or_less else row.kept}, found["said"]
    if trial.baseline is not None:
        assert found["cells"].get("baseline", "nothing") == trial.baseline, found["said"]
    for variant in found["finished"]:
        assert found["cells"].get(variant, "nothing") != "nothing", (
            f"{variant} was measured and is lost:\n{found['said']}"
        )
    if row.by != "cleanup":
        assert found["left"] == []
    assert found["left_in_the_end"] == []
    assert found["leaks"] == []


def test_there_are_enough_faults() -> None:
    ids = [row.id for _, row in rows()]
    assert len(set(ids)) == len(ids) >= 25
    assert len({trial.id for trial in TRIALS}) == len(TRIALS)


@pytest.mark.golden
def test_the_page_shows_the_matrix(findings: Callable[[Trial], dict]) -> None:
    lines = [line(row, findings(trial)) for trial, row in rows()]
    golden_file.check(PAGE, INTRO + "\n".join(lines) + "\n", folder=TESTS.parent / "docs")


def line(row: Row, found: dict) -> str:
    """A row of the page, from what was found."""
    by = {"cleanup": "`cleanup`", "its end": "the end of Local Vertex"}.get(row.by, row.by)
    told = re.search(row.says, found["said"])
    assert told, found["said"]
    words = re.sub(r"\s+", " ", " … ".join(told.groups() or (told[0],))).replace("|", "\\|")
    return f"| {row.fault} | {row.stage} | {row.kept} | {by} | {words} |"
