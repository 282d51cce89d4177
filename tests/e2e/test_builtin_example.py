"""The built-in example, cut short: vLLM on the CPU, a real model, tokens that are really drafted and accepted."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

import eagle_bench
from leftover_processes import nothing_left

EXAMPLE = Path(eagle_bench.__file__).parent / "builtin" / "example.yaml"


def test_speculation_is_real(start, tmp_path):
    config = yaml.safe_load(EXAMPLE.read_text())
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
    assert set(verdicts.values()) <= {"faster", "slower", "inconclusive"}
    assert nothing_left(str(out))
