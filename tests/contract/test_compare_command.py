"""`eagle-bench compare`: files of ours and of vLLM, exit statuses, the gate, and words that help."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eagle_bench.cli import main
from simulated_cells import BASELINE, EAGLE, Engine, cell
from vllm_result_files import result

Files = dict[str, Any]

NEGATIVE = cell("a", 1)
NEGATIVE["requests"][3]["ttft_ms"] = -1.0


def damaged(*path: str | int, value: object) -> dict[str, Any]:
    """A cell with one value changed."""
    whole = cell("a", 1)
    part: Any = whole
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return whole


def write(folder: Path, files: Files) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return [str(folder / name) for name in files]


def run(*args: object) -> int:
    with pytest.raises(SystemExit) as exited:
        main(["compare", *(str(arg) for arg in args)])
    return int(exited.value.code or 0)


def ours(**changes: Engine) -> Files:
    engines = {"baseline": BASELINE, "eagle3": EAGLE} | changes
    return {f"{v}-{c}.json": cell(v, c, e, prompts=100) for v, e in engines.items() for c in (1, 4)}


def comparison(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "comparison.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("noted", "order"),
    [
        (
            {"parameters": {"variants": [{"id": "base"}, {"id": "n-gram"}, {"id": "eagle3"}]}},
            ["base", "n-gram", "eagle3", "b"],
        ),
        ({"parameters": [1]}, ["base", "b", "eagle3", "n-gram"]),
        ("{", ["base", "b", "eagle3", "n-gram"]),
    ],
)
@pytest.mark.parametrize("given", ["", "results"])
def test_variants_stand_as_their_run_had_them(tmp_path: Path, given: str, noted: object, order: list[str]) -> None:
    """What the run does not tell of comes behind, by name."""
    write(tmp_path, {"run.json": noted})
    write(
        tmp_path / "results", {f"{name}.json": cell(name, 1, prompts=60) for name in ("n-gram", "base", "b", "eagle3")}
    )
    run(tmp_path / given if noted != "{" else tmp_path / "results", "--baseline", "base", "--out", tmp_path / "out")
    assert comparison(tmp_path / "out")["variants"] == order


def test_our_cells_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", ours())
    monkeypatch.chdir(tmp_path)
    assert run("in", "--baseline", "baseline", "--out", "./out") == 0
    found = comparison(tmp_path / "out")
    assert (found["variants"], found["levels"]) == (["baseline", "eagle3"], [1, 4])
    assert [c["verdict"] for c in found["comparisons"]] == ["faster", "faster"]
    assert found["decisions"][0]["turn_on"] is True and found["decisions"][0]["up_to_concurrency"] == 4
    for key in ("schema_version", "baseline", "cells", "comparisons", "decisions", "warnings"):
        assert key in found
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "Turn on eagle3" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    printed = capsys.readouterr().out
    assert "Turn on eagle3 up to concurrency 4" in " ".join(printed.split())
    assert printed.endswith("\nreport:  ./out/report.html\nresults: ./out/comparison.json\n"), "as the user spelt it"


def test_keys_that_a_newer_writer_added_are_no_fault(tmp_path: Path) -> None:
    files = ours()
    for content in files.values():
        content["added_later"] = 1
        content["metrics"]["added_later"] = {"deep": True}
        content["requests"][0]["added_later"] = None
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 0


@pytest.mark.parametrize("version", ["0.8", "0.33"])
def test_results_of_vllm_with_details(tmp_path: Path, version: str) -> None:
    files = {
        f"{v}-concurrency{c}.json": result(ms, concurrency=c, version=version)
        for v, ms in (("baseline", 12.0), ("eagle3", 8.0))
        for c in (1, 2)
    }
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 0
    found = comparison(tmp_path)
    for level in found["comparisons"]:
        assert level["verdict"] == "faster" and level["paired_prompts"] == 100
        assert level["speedup"]["tpot"]["estimate"] == pytest.approx(1.5, rel=0.03)
        assert level["speedup"]["throughput"]["estimate"] > 1.2
    if version == "0.33":
        assert found["cells"][2]["acceptance"] == {
            "length": 2.4, "source": "metrics", "drafted_tokens": 2700, "accepted_tokens": 1260, "drafts": 900,
            "steps": None,
            "by_position": [0.7, 0.45, 0.25],
        }  # fmt: skip


@pytest.mark.parametrize("version", ["0.8", "0.33"])
def test_results_of_vllm_without_details_say_why_there_is_no_verdict(tmp_path: Path, version: str) -> None:
    files = {
        f"{v}-c2.json": result(ms, concurrency=2, version=version, detailed=False)
        for v, ms in (("baseline", 12.0), ("eagle3", 8.0))
    }
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 0
    found = comparison(tmp_path)
    [level] = found["comparisons"]
    assert level["verdict"] == "inconclusive" and "details" in level["reasons"][0]
    assert level["speedup"]["tpot"]["estimate"] == pytest.approx(1.5, rel=0.03)
    assert level["speedup"]["tpot"]["low"] is None
    assert "no_details" in {w["code"] for w in found["warnings"]}
    assert (level["speedup"]["e2e"] is None) == (version == "0.8")


def test_a_run_of_vllm_in_which_all_requests_failed_has_no_zeros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "baseline-c1.json": result(12.0, concurrency=1),
        "eagle3-c1.json": result(8.0, concurrency=1, failing=100),
        "sums-c1.json": result(8.0, concurrency=1, failing=100, detailed=False, version="0.8"),
    }
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 4
    found = comparison(tmp_path)
    assert [c["metrics"] for c in found["cells"]][1:] == [None, None]
    assert {c["verdict"] for c in found["comparisons"]} == {"invalid"}
    assert "no level has a valid comparison" in capsys.readouterr().err


def test_failed_requests_and_empty_answers_of_vllm_are_out(tmp_path: Path) -> None:
    broken = result(8.0, concurrency=1, failing=3)
    broken["generated_texts"][50] = ""
    files = {"baseline-c1.json": result(12.0, concurrency=1), "eagle3-c1.json": broken}
    assert (
        run(*write(tmp_path / "in", files), "--baseline", "baseline", "--max-failure-rate", "5%", "--out", tmp_path)
        == 0
    )
    found = comparison(tmp_path)
    assert found["cells"][1]["counts"] == {"requested": 100, "completed": 96, "failed": 4, "empty": 1}
    assert found["comparisons"][0]["paired_prompts"] == 96
    assert {f["body"] for f in found["failures"]} == {"Service Unavailable", "answered without content"}


def test_other_prompts_are_noticed_by_their_lengths(tmp_path: Path) -> None:
    files = {"baseline-c1.json": result(12.0, concurrency=1), "eagle3-c1.json": result(8.0, concurrency=1, seed=1)}
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 4
    assert "different prompts" in comparison(tmp_path)["comparisons"][0]["reasons"][0]


def test_labels_tell_what_a_file_is(tmp_path: Path) -> None:
    one, two = write(
        tmp_path / "in", {"x.json": result(12.0, concurrency=None, streams=4), "y.json": result(8.0, concurrency=4)}
    )
    labels = ("--label", f"{one}=base@4", "--label", f"{two}=eagle3")
    assert run(one, two, *labels, "--baseline", "base", "--out", tmp_path) == 0
    assert comparison(tmp_path)["levels"] == [4]


@pytest.mark.parametrize(("content", "level"), [(cell("b", 1), 1), (result(9.0, concurrency=4), 4)])
def test_a_label_is_no_other_level_than_the_file_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: dict[str, Any], level: int
) -> None:
    (given,) = write(tmp_path / "in", {"a.json": content})
    assert run(given, "--label", f"{given}=x@2", "--baseline", "x", "--out", tmp_path) == 2
    assert f"concurrency 2 is not what the file holds: it was measured at {level}. Give {given}=x." in (
        capsys.readouterr().err
    )


def test_a_label_settles_what_name_and_content_tell_apart(tmp_path: Path) -> None:
    content = {"a-c4.json": result(12.0, concurrency=4), "b-c8.json": result(9.0, concurrency=4)}
    one, two = write(tmp_path / "in", content)
    assert run(one, two, "--label", f"{two}=b@4", "--baseline", "a", "--out", tmp_path) in {0, 4}
    assert comparison(tmp_path)["levels"] == [4]


def test_vllms_own_file_names_and_labels(tmp_path: Path) -> None:
    files = {
        "base-infqps-concurrency8-llama-20260101-000000.json": result(12.0, concurrency=8, prompts=200, version="0.8"),
        "openai-chat-infqps-concurrency8-llama-20260101-000001.json": result(
            8.0, concurrency=8, prompts=200, label="eagle3"
        ),
    }
    assert run(*write(tmp_path / "in", files), "--baseline", "base", "--out", tmp_path) == 0
    assert comparison(tmp_path)["variants"] == ["base", "eagle3"]


def test_appended_results_are_read_line_by_line(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(result(12.0, concurrency=c, label="base")) for c in (1, 2))
    files = {
        "all.json": lines,
        "eagle3-c1.json": result(8.0, concurrency=1),
        "eagle3-c2.json": result(8.0, concurrency=2),
    }
    assert run(*write(tmp_path / "in", files), "--baseline", "base", "--out", tmp_path) == 0
    assert comparison(tmp_path)["levels"] == [1, 2]


def test_one_variant_dead_and_one_alive_is_still_an_answer(tmp_path: Path) -> None:
    files = ours(ngram=Engine(failing=1.0))
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 0
    turned = {d["variant"]: d["turn_on"] for d in comparison(tmp_path)["decisions"]}
    assert turned == {"eagle3": True, "ngram": None}


def test_the_baseline_run_twice_makes_equal_answers_a_verdict(tmp_path: Path) -> None:
    files = {f"{v}.json": cell(v, 1, prompts=20) for v in ("baseline", "eagle3", "again")}
    given = (*write(tmp_path / "in", files), "--baseline", "baseline", "--baseline-again", "again")
    assert run(*given, "--out", tmp_path) == 0
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert [decision["variant"] for decision in found["decisions"]] == ["eagle3"]
    [answers] = found["losslessness"]
    assert (answers["variant"], answers["pairs"], answers["baseline_pairs"]) == ("eagle3", 20, 20)


def test_price_and_objective(tmp_path: Path) -> None:
    more = ("--price-per-hour", 88, "--slo-ttft-ms", 500, "--slo-tpot-ms", 30, "--out", tmp_path)
    assert run(*write(tmp_path / "in", ours()), "--baseline", "baseline", *more) == 0
    found = comparison(tmp_path)
    assert all(view["dollars_per_million_tokens"] > 0 and view["meets_slo"] for view in found["views"])
    assert "per million output tokens" in found["decisions"][0]["text"]


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        ({"a.json": "{"}, (), "a.json, line 1: not JSON"),
        ({"a.json": {"x": 1}}, (), "a.json: neither a cell.json nor a result that `vllm bench serve"),
        ({"a.json": result(9.0, concurrency=None)}, (), "a.json: does not tell its variant"),
        ({"a.json": cell("a", 1) | {"concurrency": 0}}, (), "`concurrency`"),
        ({"a.json": cell("a", 1) | {"schema_version": 7}}, (), "schema version 7"),
        ({"a.json": cell("a", 1), "b.json": cell("b", 1)}, (), "--baseline 'baseline': the results are of a, b"),
        ({"a.json": cell("baseline", 1)}, (), "nothing to compare it with"),
        ({"a.json": cell("baseline", 1)}, ("--label", "b.json=x@1"), "--label b.json: is not among the files"),
        ({"a.json": cell("baseline", 1)}, ("--label", "a.json"), "must be FILE=VARIANT"),
        ({"a.json": cell("baseline", 1)}, ("--label", "a.json=x@0"), "must be FILE=VARIANT"),
        ({"a.json": cell("baseline", 1)}, ("--label", "a.json=x@²"), "must be FILE=VARIANT"),
        ({"a.json": cell("baseline", 1)}, ("--label", "a.json= @1"), "must be FILE=VARIANT"),
        ({"a.json": cell("baseline", 1)}, ("--label", f"a.json=x@{'9' * 5000}"), "must be FILE=VARIANT"),
        ({"a.json": cell("baseline", 1)}, ("--price-per-hour", "nan"), "not a finite number"),
        ({"a.json": cell("baseline", 1)}, ("--price-per-hour", "inf"), "--price-per-hour"),
        ({"a.json": cell("baseline", 1)}, ("--price-per-hour", "1e308"), "--price-per-hour"),
        ({"a.json": cell("baseline", 1)}, ("--slo-ttft-ms", "inf"), "not a finite number"),
        ({"a.json": "[" * 50_000}, (), "nested too deeply"),
        ({"a.json": '{"concurrency": ' + "9" * 5000 + "}"}, (), "too many digits"),
        ({"a.json": cell("a", 1) | {"concurrency": 10**300}}, (), "`concurrency` must be at most"),
        ({"a.json": cell("", 1)}, (), "`variant` is empty"),
        ({"a.json": cell("a", 1) | {"variant": "e\ud800"}}, (), "half a character"),
        ({"a.json": cell("a", 1) | {"schema_version": "1"}}, (), "`schema_version` must be the number 1, is '1'"),
        ({"a.json": cell("a", 1) | {"counts": {"requested": 0, "failed": 5}}}, (), "`counts.requested` is 0"),
        ({"a.json": cell("a", 1) | {"duration_s": -1.0}}, (), "`duration_s` is below 0"),
        (
            {"a.json": damaged("rounds", 0, "output_tokens_per_s", value=-5.0)},
            (),
            "`rounds.0.output_tokens_per_s` is below",
        ),
        ({"a.json": damaged("rounds", 0, "window_end_s", value=1e300)}, (), "`rounds.0.window_end_s` is too large"),
        ({"a.json": damaged("requests", 0, "start_s", value=-1e300)}, (), "`requests.0.start_s` is below 0"),
        ({"a.json": damaged("requests", 0, "connect_ms", value=-1.0)}, (), "`requests.0.connect_ms` is below 0"),
        ({"a.json": damaged("requests", 1, "ttft_ms", value=5e-324)}, (), "`requests.1.ttft_ms` is too small"),
        ({"a.json": damaged("metrics", "ttft_ms", "p50", value=5e-324)}, (), "`metrics.ttft_ms.p50` is too small"),
        (
            {"a.json": damaged("requests", 5, "error", value={"kind": "timeout"})},
            (),
            "`counts.failed` is 0, but 1 of `requests` are: the file is damaged",
        ),
        (
            {"a.json": damaged("metrics", "ttft_ms", "p50", value=1e6)},
            (),
            "`metrics.ttft_ms.p50` is 1e+06, but those of",
        ),
        (
            {"a.json": damaged("metrics", "output_tokens_per_s", value=1e6)},
            (),
            "`metrics.output_tokens_per_s` is 1e+06",
        ),
        ({"a-concurrency8.json": result(9.0, concurrency=4)}, (), "its name says concurrency 8, its content 4. If "),
        ({"a.json": NEGATIVE}, (), "`requests.3.ttft_ms` is below 0"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"completed": -1}}, (), "`completed` is -1"),
        ({"a.json": cell("a", 1) | {"duration_s": 1e300}}, (), "`duration_s` is too large"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"duration": 10**400}}, (), "`duration` is too large"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"completed": "x"}}, (), "`completed` is 'x', not a number"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"itls": [[0.1, -0.1]] * 100}}, (), "`itls[0][1]` is -0.1"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"failed": 7}}, (), "`num_prompts` is 100, but `completed` is 100"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"median_tpot_ms": math.nan}}, (), "`median_tpot_ms` is nan"),
        ({"a-c1.json": result(9.0, concurrency=1) | {"max_concurrency": 4.7}}, (), "`max_concurrency` must be a whole"),
        (
            {"openai-infqps-llama-20260101-000000.json": result(9.0, concurrency=None)},
            (),
            "does not tell its concurrency. Say it: --label",
        ),
        ({"a.json": cell("baseline", 1)}, ("--max-regression", "lots"), "not a share"),
        (ours(), ("--baseline-again", "eagle"), "--baseline-again 'eagle': no variant beside the baseline"),
        ({"a.json": cell("baseline", 1)}, ("--price-per-hour", "0"), "price-per-hour"),
        ({"a.json": cell("baseline", 1)}, ("--against", "gone.json"), "gone.json: there is no such file"),
    ],
)
def test_bad_input_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: Files, options: tuple[str, ...], said: str
) -> None:
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path, *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "comparison.json").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_few_characters_shows_others_in_the_place_of_those_it_lacks(
    tmp_path: Path, encoding: str
) -> None:
    command = [sys.executable, "-m", "eagle_bench", "compare", *write(tmp_path / "in", ours())]
    done = subprocess.run(
        [*command, "--baseline", "baseline", "--out", str(tmp_path)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    printed = done.stdout.decode(encoding)
    assert "?" in printed and "Turn on eagle3 up to concurrency 4" in " ".join(printed.split())


def test_a_missing_file_and_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "no.json", "--baseline", "a") == 2
    assert "no.json: there is no such file or folder" in capsys.readouterr().err
    assert run(tmp_path, "--baseline", "a") == 2
    assert f"{tmp_path}: no results" in capsys.readouterr().err


def test_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = write(tmp_path / "in", ours())
    assert run(*before, "--baseline", "baseline", "--out", tmp_path / "old") == 0
    old = tmp_path / "old" / "comparison.json"
    gate = ("--baseline", "baseline", "--against", old, "--max-regression", "5%")
    assert run(*before, *gate, "--out", tmp_path / "same") == 0

    worse = ours()
    metrics = worse["eagle3-4.json"]["metrics"]
    metrics["tpot_ms"]["p50"] *= 1.2
    after = write(tmp_path / "worse", worse)
    capsys.readouterr()
    assert run(*after, *gate, "--out", tmp_path / "new") == 3
    said = capsys.readouterr()
    assert "first TPOT of eagle3 at concurrency 4" in said.err
    assert "+20 %" in said.out and "Worse than before by more than 5 %" in said.out
    assert (
        run(*after, "--baseline", "baseline", "--against", old, "--max-regression", "25%", "--out", tmp_path / "x") == 0
    )


def test_the_gate_minds_what_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = write(tmp_path / "in", ours())
    assert run(*before, "--baseline", "baseline", "--out", tmp_path / "old") == 0
    after = write(
        tmp_path / "new", ours(eagle3=Engine(failing=1.0)) | {"n-1.json": cell("ngram", 1, EAGLE, prompts=100)}
    )
    capsys.readouterr()
    gate = ("--baseline", "baseline", "--against", tmp_path / "old" / "comparison.json")
    assert run(*after, *gate, "--out", tmp_path / "out", "--json") == 3
    said = capsys.readouterr()
    assert "result of eagle3 at concurrency 1" in said.err
    worse = json.loads(said.out)["worse"]
    assert [(one["variant"], one["metric"], one["ratio"]) for one in worse] == [("eagle3", "result", None)] * 2


def test_the_gate_minds_a_verdict_that_is_none_any_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = write(tmp_path / "in", ours())
    assert run(*before, "--baseline", "baseline", "--out", tmp_path / "old") == 0
    after = ours()
    after["eagle3-4.json"]["acceptance"] |= {"length": 1.01}  # nothing that a draft could have done
    given = write(tmp_path / "new", after)
    capsys.readouterr()
    gate = ("--baseline", "baseline", "--against", tmp_path / "old" / "comparison.json")
    assert run(*given, *gate, "--out", tmp_path / "out", "--json") == 3
    [worse] = json.loads(capsys.readouterr().out)["worse"]
    assert (worse["variant"], worse["concurrency"], worse["metric"], worse["before"]) == (
        "eagle3",
        4,
        "verdict",
        "faster",
    )
    assert worse["now"].startswith("invalid: a speed-up of")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cell: cell["settings"].update(max_output_tokens=64), "max_output_tokens was 64 and is 512"),
        (lambda cell: cell["prompts"].update(sha256="0" * 64), "other prompts"),
    ],
)
def test_the_gate_is_not_held_against_other_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, Any]], None], said: str
) -> None:
    given = write(tmp_path / "in", ours())
    assert run(*given, "--baseline", "baseline", "--out", tmp_path / "old") == 0
    old = tmp_path / "old" / "comparison.json"
    then = json.loads(old.read_text())
    for cell_of_then in then["cells"]:
        change(cell_of_then)
    old.write_text(json.dumps(then))
    capsys.readouterr()
    assert run(*given, "--baseline", "baseline", "--against", old, "--out", tmp_path / "out") == 2
    assert said in capsys.readouterr().err


def test_the_gate_refuses_a_reference_without_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = write(tmp_path / "in", ours())
    assert run(*given, "--baseline", "baseline", "--out", tmp_path / "old") == 0
    old = tmp_path / "old" / "comparison.json"
    old.write_text(json.dumps(json.loads(old.read_text()) | {"views": []}))
    assert run(*given, "--baseline", "baseline", "--against", old, "--out", tmp_path / "out") == 2
    assert "no valid cell" in capsys.readouterr().err


@pytest.mark.parametrize("rates", [(100.0, 94.0), (100.0, 96.0)])
def test_a_rate_gets_worse_when_it_falls(tmp_path: Path, rates: tuple[float, float]) -> None:
    status = []
    for number, rate in enumerate(rates):
        files = ours()
        for part in (files["eagle3-1.json"]["metrics"], *files["eagle3-1.json"]["rounds"]):
            part["output_tokens_per_s"] = rate
        against = ("--against", tmp_path / "0" / "comparison.json") if status else ()
        given = write(tmp_path / "in", files)
        status.append(run(*given, "--baseline", "baseline", *against, "--out", tmp_path / str(number)))
    assert status == [0, 3 if rates[1] < 95 else 0]


@pytest.mark.parametrize("through", ["plain", "link"])
def test_the_gate_never_writes_over_its_reference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], through: str
) -> None:
    given = write(tmp_path / "in", ours())
    assert run(*given, "--baseline", "baseline", "--out", tmp_path / "out") == 0
    reference = old = tmp_path / "out" / "comparison.json"
    if through == "link":
        reference = tmp_path / "old.json"
        reference.symlink_to(old)
    before, report = old.read_bytes(), tmp_path / "out" / "report.html"
    report.unlink()
    assert run(*given, "--baseline", "baseline", "--against", reference, "--out", tmp_path / "out") == 2
    assert "would write over it" in capsys.readouterr().err
    assert old.read_bytes() == before and not report.exists()


def test_an_empty_folder_to_write_to_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*write(tmp_path / "in", ours()), "--baseline", "baseline", "--out", "") == 2
    assert "name a folder" in capsys.readouterr().err


def test_nothing_in_a_file_or_an_argument_acts_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    acting = "\x1b]0;pwn\x07\x1b[31m\x9b31m"
    files = ours()
    for name in ("eagle3-1.json", "eagle3-4.json"):
        files[name]["variant"] = f"_模型{acting}"
        files[name]["warnings"] = [f"client: {acting}"]
        files[name]["requests"][0].update(
            ttft_ms=None, e2e_ms=None, error={"kind": "other", "status": 500, "body": acting}
        )
        files[name]["counts"].update(completed=99, failed=1)
    given = write(tmp_path / "in", files)
    assert run(*given, "--baseline", "baseline", "--out", tmp_path) == 0
    assert run(*given, "--baseline", acting) == 2
    assert run(*given, "--baseline", "baseline", "--max-regression", acting) == 2
    out, err = capfd.readouterr()
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "summary.md")]
    for text in (out, err, *pages):
        assert not set(text) & {"\x1b", "\x07", "\x9b"}
        assert "x1b" in text, "it is shown instead"
    assert "Glyph" not in err


def test_a_file_counts_once_and_has_one_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = write(tmp_path / "in", ours())
    assert run(*given, given[0], tmp_path / "in", "--baseline", "baseline", "--out", tmp_path) == 0
    found = comparison(tmp_path)
    assert len(found["cells"]) == 4 and "duplicate_cell" not in {w["code"] for w in found["warnings"]}
    labels = ("--label", f"{given[0]}=a@1", "--label", f"{given[0]}=b@1")
    assert run(*given, *labels, "--baseline", "baseline", "--out", tmp_path) == 2
    assert "given twice" in capsys.readouterr().err


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    files = {name: "\ufeff" + json.dumps(content) for name, content in ours().items()}
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-infqps-concurrency4-llama-3-8b-20260101-000000", ("a", 4)),
        ("a-2.5qps-concurrency4-c4-20260101-000000", ("a", 4)),
        ("a-concurrency4", ("a", 4)),
        ("a_c4", ("a", 4)),
        ("a@4", ("a", 4)),
        ("a-concurrency4-again", ("a", 4)),
    ],
)
def test_names_that_tell_variant_and_concurrency(tmp_path: Path, name: str, expected: tuple[str, int]) -> None:
    files = {
        f"{name}.json": result(12.0, concurrency=None, streams=4),
        "z-c4.json": result(8.0, concurrency=None, streams=4),
    }
    write(tmp_path / "in", files)
    assert run(tmp_path / "in", "--baseline", "a", "--out", tmp_path) == 0
    first = comparison(tmp_path)["cells"][0]
    assert (first["variant"], first["concurrency"]) == expected


def test_equally_long_prompts_of_vllm_are_not_paired(tmp_path: Path) -> None:
    """vLLM's random data set: all lengths are the same, so a file does not tell which prompts it had."""
    files = {"baseline-c1.json": result(12.0, concurrency=1), "eagle3-c1.json": result(8.0, concurrency=1)}
    for content in files.values():
        content["input_lens"] = [128] * 100
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 0
    found = comparison(tmp_path)
    [level] = found["comparisons"]
    assert level["verdict"] == "inconclusive" and level["paired_prompts"] == 0
    assert "too much alike" in level["reasons"][0]
    assert level["speedup"]["tpot"]["low"] is None and level["speedup"]["tpot"]["estimate"] > 1.3
    assert "unproven_prompts" in {w["code"] for w in found["warnings"]}
    assert "too much alike" in found["decisions"][0]["text"]


def test_ours_against_vllms_is_said_to_be_unproven(tmp_path: Path) -> None:
    files = {"baseline.json": cell("baseline", 1), "eagle3-c1.json": result(8.0, concurrency=1)}
    assert run(*write(tmp_path / "in", files), "--baseline", "baseline", "--out", tmp_path) == 4
    [level] = comparison(tmp_path)["comparisons"]
    assert level["verdict"] == "invalid" and "different kinds" in level["reasons"][0]


def test_other_work_is_compared_only_when_asked_for(tmp_path: Path) -> None:
    files = ours()
    for name in ("eagle3-1.json", "eagle3-4.json"):
        files[name]["settings"]["max_output_tokens"] = 256
    given = write(tmp_path / "in", files)
    assert run(*given, "--baseline", "baseline", "--out", tmp_path / "no") == 4
    assert run(*given, "--baseline", "baseline", "--allow-difference", "--out", tmp_path / "yes") == 0
    verdicts = [{c["verdict"] for c in comparison(tmp_path / name)["comparisons"]} for name in ("no", "yes")]
    assert verdicts == [{"invalid"}, {"faster"}]
