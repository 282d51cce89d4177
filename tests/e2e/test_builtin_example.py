"""The built-in example, cut short: vLLM on the CPU, a real model, tokens that are really drafted and accepted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

import eagle_bench
from leftover_processes import nothing_left

BUILTIN = Path(eagle_bench.__file__).parent / "builtin"
EXAMPLES = Path(__file__).parents[2] / "examples"


def head_of_random_weights(folder: Path) -> dict[str, object]:
    """A variant whose draft has the shipped head's shape and nothing learnt: it loads, and is of no use."""
    export = (sys.executable, "-m", "eagle3_head.export", "--like", str(BUILTIN / "eagle3"), "--out", str(folder))
    subprocess.run(export, cwd=EXAMPLES, check=True)
    speculation = {"method": "eagle3", "model": str(folder), "num_speculative_tokens": 3}
    return {"id": "broken", "args": [f"--speculative-config={json.dumps(speculation)}"]}


def test_speculation_is_real_and_a_broken_draft_is_called_so(start, tmp_path):
    config = yaml.safe_load((BUILTIN / "example.yaml").read_text())
    config["variants"].append(head_of_random_weights(tmp_path / "random"))
    config |= {"concurrency": [2], "workload": {**config["workload"], "max_output_tokens": 12}}
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump(config))
    out = tmp_path / "out"
    run = start("run", path, "--out", out)
    assert run.finish() == 0, run.text

    cells = {file.stem: json.loads(file.read_text()) for file in (out / "results").iterdir()}
    assert set(cells) == {f"{variant['id']}-c2" for variant in config["variants"]}
    for cell in cells.values():
        assert cell["counts"] == {"requested": 50, "completed": 50, "failed": 0, "empty": 0}
        assert cell["metrics"]["tpot_ms"]["p50"] > 0
    for speculative in ("ngram-c2", "eagle3-c2"):
        acceptance = cells[speculative]["acceptance"]
        assert acceptance["source"] == "metrics"
        assert 0 < acceptance["accepted_tokens"] < acceptance["drafted_tokens"]
        assert acceptance["length"] > 1
    # Without speculation the engine has no drafts to count.
    assert not (cells["baseline-c2"]["acceptance"] or {}).get("drafted_tokens")

    answer = json.loads((out / "comparison.json").read_text())
    verdicts = {row["variant"]: row["verdict"] for row in answer["comparisons"]}
    assert set(verdicts) == {"ngram", "eagle3", "broken"}

    # What it costs is the machine's to say, and a busy one says nothing. That it does not pay is certain.
    assert cells["broken-c2"]["acceptance"]["length"] < 1.02
    assert verdicts["broken"] != "faster"
    decision = next(decision for decision in answer["decisions"] if decision["variant"] == "broken")
    assert decision["turn_on"] is not True
    warned = {(warning["code"], warning["variant"]) for warning in answer["warnings"]}
    assert ("acceptance_near_one", "broken") in warned
    assert ("acceptance_near_one", "ngram") not in warned
    assert "almost no drafted token is accepted" in (out / "report.html").read_text()
    assert nothing_left(str(out))
