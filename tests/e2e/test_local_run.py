"""`eagle-bench run` from a config to a report: the real pipeline on Local Vertex, with an engine that is quick."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leftover_processes import command_of, descendants, nothing_left

TINY_ENGINE = Path(__file__).parents[1] / "contract" / "tiny_engine.py"

KEYS = {"schema_version", "baseline", "variants", "levels", "cells", "comparisons", "decisions", "warnings"}


def read(path):
    return json.loads(path.read_text())


def test_a_run_a_second_one_whose_engine_dies_and_a_third_that_mends_it(start, config, engines, tmp_path):
    out = tmp_path / "out"
    first = start("run", config(), "--engines", engines("--words=20", "--pause=0.002"), "--out", out)
    assert first.finish() == 0, first.text
    # The baseline has the only machine first; the other waits for it, and each line says how far the run is.
    told = [line.partition("] ")[2].rstrip() for line in first.lines]
    done = [line for line in told if " done: " in line]
    assert [line.partition(" done")[0] for line in done] == [
        "baseline: c=1",
        "baseline: c=2",
        "other: c=1",
        "other: c=2",
    ]
    for number, line in enumerate(done[:-1], 1):
        assert re.search(rf" \(cell {number} of 4, about \d+ (s|min) left in all\)$", line), line
    assert done[-1].endswith(" (cell 4 of 4)")
    assert any(line.startswith("other: waits for the machine that baseline uses, ") for line in told)
    assert "were moved to" not in first.text

    answer = read(out / "comparison.json")
    assert set(answer) >= KEYS
    assert (answer["baseline"], answer["variants"], answer["levels"]) == ("baseline", ["baseline", "other"], [1, 2])
    cells = {path.name: read(path) for path in (out / "results").iterdir()}
    assert set(cells) == {f"{variant}-c{level}.json" for variant in ("baseline", "other") for level in (1, 2)}
    for cell in cells.values():
        assert cell["counts"] == {"requested": 50, "completed": 50, "failed": 0, "empty": 0}
        assert len(cell["requests"]) == 50
        assert {record["output_tokens"] for record in cell["requests"]} == {20}
    # Equal load for both variants, and no prompt twice on an endpoint.
    for level in (1, 2):
        assert cells[f"baseline-c{level}.json"]["prompts"] == cells[f"other-c{level}.json"]["prompts"]
    ids = [record["prompt_id"] for level in (1, 2) for record in cells[f"other-c{level}.json"]["requests"]]
    assert len(set(ids)) == len(ids)

    # What ran is the template that lies beside the report, and the report says so.
    digest = hashlib.sha256((out / "pipeline.yaml").read_bytes()).hexdigest()
    assert digest in (out / "report.html").read_text()
    assert answer["decisions"][0]["text"] in first.text
    assert nothing_left(str(out))

    second = start("run", config(), "--engines", engines("--words=20", "--pause=0.02"), "--out", out)
    second.until("other: c=1 done")
    second.until("other: c=2 round")
    os.kill(engine_of(second), signal.SIGKILL)
    status = second.finish()
    assert status == 0, second.text  # level 1 is an answer
    assert "other at concurrency 2" in second.text

    after = read(out / "comparison.json")
    verdicts = {row["concurrency"]: row["verdict"] for row in after["comparisons"]}
    assert verdicts[2] == "invalid"
    assert verdicts[1] != "invalid"
    died = read(out / "results" / "other-c2.json")
    assert died["counts"]["failed"] > 0
    assert any(record["error"] is None for record in died["requests"])  # what was measured before is kept
    kept = read(out / "results" / "baseline-c2.json")
    assert kept["counts"]["completed"] == 50
    assert nothing_left(str(out))

    # The second run measured anew, and the first one's results are still there.
    assert kept["started_at"] > cells["baseline-c2.json"]["started_at"]
    (earlier,) = (out / "earlier").iterdir()
    assert f"the results of an earlier run were moved to {earlier}\n" in second.text
    assert read(earlier / "comparison.json") == answer

    # A third one, on the same engine, goes on with the second: what it has is taken, what is missing is measured.
    options = ("--engines", engines("--words=20", "--pause=0.02"), "--out", out, "--resume", out)
    third = start("run", config(), *options)
    assert third.finish() == 0, third.text
    taken_from = sorted((out / "earlier").iterdir())[-1]
    assert (
        f"taken from {taken_from}: baseline at concurrency 1 and 2, other at concurrency 1; measured now: "
        f"other at concurrency 2; the results of both go to {out}\n"
    ) in third.text
    assert "baseline: nothing left to measure" in third.text
    assert "c=1" not in third.text
    mended = {path.name: read(path) for path in (out / "results").iterdir()}
    assert set(mended) == set(cells)
    assert mended.pop("other-c2.json")["counts"]["completed"] == 50
    for name, cell in mended.items():
        assert cell["run_id"] == kept["run_id"]
        assert cell["counts"]["completed"] == 50, name
    verdicts = {row["concurrency"]: row["verdict"] for row in read(out / "comparison.json")["comparisons"]}
    assert "invalid" not in verdicts.values()
    assert "earlier_run" in {warning["code"] for warning in read(out / "comparison.json")["warnings"]}
    assert len(list((out / "earlier").iterdir())) == 2
    assert nothing_left(str(out))


def test_ctrl_c_leaves_nothing_running_and_says_what_was_kept(start, config, engines, tmp_path):
    out = tmp_path / "out"
    run = start("run", config(), "--engines", engines("--words=20", "--pause=0.02"), "--out", out)
    run.until("c=1 done")
    run.until("c=2 round")
    os.kill(run.process.pid, signal.SIGINT)
    assert run.finish() == 130, run.text
    assert re.search(r"interrupted; \d of 4 cells (was|were) measured and (is|are) kept", run.text)
    assert "was planned and did not come in" not in run.text
    (line,) = [line for line in run.lines if "go on with" in line]
    said, _, command = line.rstrip().partition("; go on with: eagle-bench ")
    assert said == "3 of 4 cells were not measured to their end"
    assert "was planned and did not come in" in (out / "report.html").read_text()
    assert nothing_left(str(out))
    kept = list((out / "results").iterdir())
    assert any(read(path)["counts"]["completed"] == 50 for path in kept)
    assert (out / "report.html").is_file()

    other = start("run", config(), "--resume", out, "--engines", engines("--words=20", "--pause=0.04"), "--out", out)
    assert other.finish() == 2, other.text
    assert "`engines.baseline` had --pause=0.02 and has --pause=0.04" in other.text
    assert len(list((out / "results").iterdir())) == len(kept)

    engines("--words=20", "--pause=0.02")
    again = start(*shlex.split(command), "--out", out)
    assert again.finish() == 0, again.text
    assert len(list((out / "results").iterdir())) == 4
    assert sum("done: " in line for line in again.lines) == 3


def test_an_engine_that_crashes_at_load_ends_without_a_usable_result(start, config, engines, tmp_path):
    out = tmp_path / "out"
    run = start("run", config(concurrency=[1]), "--engines", engines("--crash"), "--out", out, "--json")
    assert run.finish() == 4, run.text
    said = json.loads(re.search(r"^\{\n.*?^\}$", run.text, re.MULTILINE | re.DOTALL)[0])
    assert (said["cells"], said["planned"], said["report"]) == (0, 2, str(out / "report.html"))
    assert "could not be deployed" in run.text
    assert (out / "report.html").is_file()
    assert nothing_left(str(out))


def engine_of(run) -> int:
    """The one engine among the processes that a run started."""
    engines = [pid for pid in descendants(run.process.pid) if command_of(pid)[1:2] == [str(TINY_ENGINE)]]
    assert len(engines) == 1, [command_of(pid) for pid in engines]
    return engines[0]


def test_a_second_ctrl_c_does_not_lose_what_was_measured(start, config, engines, tmp_path):
    out = tmp_path / "out"
    run = start("run", config(), "--engines", engines("--words=20", "--pause=0.02"), "--out", out)
    run.until("c=1 done")
    os.kill(run.process.pid, signal.SIGINT)
    run.until("interrupted: cancelling")
    os.kill(run.process.pid, signal.SIGINT)
    assert run.finish() == 130, run.text
    assert re.search(r"interrupted; \d of 4 cells (was|were) measured and (is|are) kept", run.text)
    assert (out / "results" / "baseline-c1.json").is_file()
    assert nothing_left(str(out))


def test_a_run_whose_terminal_is_closed_is_gone_on_with_but_for_what_was_damaged_since(
    start, config, engines, tmp_path
):
    out, slow = tmp_path / "out", engines("--words=20", "--pause=0.02")
    run = start("run", config(), "--engines", slow, "--out", out)
    run.until("c=2 done")
    os.kill(run.process.pid, signal.SIGHUP)
    assert run.finish() == 129, run.text
    damaged = out / "results" / "baseline-c1.json"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    second = start("run", config(), "--engines", slow, "--out", out, "--resume", out)
    assert second.finish() == 0, second.text
    (line,) = [line for line in second.lines if "counts as missing" in line]
    assert f"the earlier result of baseline at concurrency 1 can't be read and counts as missing: {damaged}" in line
    assert "baseline: c=1 done" in second.text
    assert "baseline: c=2" not in second.text
    assert_whole(out)


def test_a_run_that_was_killed_twice_loses_nothing_that_it_had(start, config, engines, tmp_path):
    out, slow = tmp_path / "out", engines("--words=20", "--pause=0.02")
    for resumed, words in (((), "c=2 done"), (("--resume", out), "submitted")):
        run = start("run", config(), "--engines", slow, "--out", out, *resumed)
        run.until(words)
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        until_nothing_is_left(out)
    third = start("run", config(), "--engines", slow, "--out", out, "--resume", out)
    assert third.finish() == 0, third.text
    assert "baseline: nothing left to measure" in third.text
    assert_whole(out)


def assert_whole(out: Path) -> None:
    cells = {path.stem: read(path) for path in (out / "results").iterdir()}
    assert {cell["counts"]["completed"] for cell in cells.values()} == {50}
    assert {f"{cell['variant']}-c{cell['concurrency']}" for cell in cells.values()} == set(cells)
    assert len(cells) == 4


def test_a_run_whose_local_vertex_was_killed_keeps_what_it_had_and_names_nothing_to_delete(
    start, config, engines, tmp_path
):
    out = tmp_path / "out"
    run = start("run", config(), "--engines", engines("--words=20", "--pause=0.02"), "--out", out)
    run.until("c=1 done")
    (server,) = [pid for pid in descendants(run.process.pid) if "eagle_bench.local_vertex" in command_of(pid)]
    os.kill(server, signal.SIGKILL)
    assert run.finish() == 4, run.text
    assert "Local Vertex was ended from outside, and its engines with it" in run.text
    assert "1 of 4 cells was measured and is kept" in run.text
    assert "gcloud" not in run.text
    assert "go on with: eagle-bench run" in run.text
    assert (out / "results" / "baseline-c1.json").is_file()
    assert nothing_left(str(out))


def test_a_run_whose_words_nobody_reads_any_more_is_measured_all_the_same(start, config, engines, tmp_path):
    out = tmp_path / "out"
    run = start("run", config(concurrency=[1]), "--engines", engines("--words=20", "--pause=0.002"), "--out", out)
    run.until("submitted")
    run.process.stdout.close()
    assert run.process.wait() == 0
    assert {path.name for path in (out / "results").iterdir()} == {"baseline-c1.json", "other-c1.json"}
    assert (out / "report.html").is_file()
    assert nothing_left(str(out))


def test_a_run_says_that_another_program_disturbed_it(start, config, engines, tmp_path):
    out = tmp_path / "out"
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        run = start("run", config(concurrency=[1]), "--engines", engines("--words=20", "--pause=0.02"), "--out", out)
        assert run.finish() == 0, run.text
    finally:
        other.kill()
        other.wait()
    answer = json.loads((out / "comparison.json").read_text())
    disturbed = [warning for warning in answer["warnings"] if warning["code"] == "busy_machine"]
    assert {warning["variant"] for warning in disturbed} == {"baseline", "other"}
    assert "Measure again when it is quiet" in (out / "report.html").read_text()
    assert "Measure again when it is quiet" in run.text.replace("\n", " ")


def test_paths_are_read_from_where_the_command_was_given(start, config, engines, tokenizer_folder, tmp_path):
    """The pipeline's tasks run in folders of their own."""
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(json.dumps({"prompt": f"count to {number}"}) + "\n" for number in range(120)))
    workload = {"dataset": os.path.relpath(mine), "prompts_per_level": 50, "max_output_tokens": 32}
    asked = config(workload=workload, tokenizer=os.path.relpath(tokenizer_folder), concurrency=[1])
    run = start("run", asked, "--engines", engines("--words=20", "--pause=0.002"), "--out", tmp_path / "out")
    assert run.finish() == 0, run.text
    cell = read(tmp_path / "out" / "results" / "other-c1.json")
    assert cell["counts"]["completed"] == 50


def test_a_folder_takes_one_run_at_a_time(start, config, engines, tmp_path):
    out = tmp_path / "out"
    first = start("run", config(concurrency=[1]), "--engines", engines("--words=20", "--pause=0.02"), "--out", out)
    first.until("submitted")
    beside = start("run", config(concurrency=[1]), "--engines", engines("--words=20"), "--out", tmp_path / "beside")
    assert "each slows the other" in beside.until("another run measures on this machine")
    os.kill(beside.process.pid, signal.SIGTERM)
    assert beside.finish() == 143, beside.text
    second = start("run", config(concurrency=[1]), "--engines", engines("--words=20"), "--out", out)
    assert second.finish() == 2, second.text
    assert "another run uses this folder" in second.text
    os.kill(first.process.pid, signal.SIGINT)
    assert first.finish() == 130, first.text
    assert nothing_left(str(out))


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null/x", "/tmp/" + "x" * 300])
def test_a_folder_that_can_not_be_made_is_the_users_to_mend(start, config, engines, place):
    run = start("run", config(concurrency=[1]), "--engines", engines("--words=20"), "--out", place)
    assert run.finish() == 2, run.text
    assert "can't be made" in run.text


def until_nothing_is_left(out: Path) -> None:
    """Local Vertex ends with the process that started it; its engines and tasks with it."""
    deadline = time.monotonic() + 60
    while not nothing_left(str(out)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
