"""The README's blocks are executed: what stands there works."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from eagle_bench import config_file
from eagle_bench.adapters.vertex_request import require_image
from truth_server.process import TruthServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = ".venv/bin/eagle-bench"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def lines() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.strip()]


def execute(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "eagle_bench", *shlex.split(line.removeprefix(COMMAND))]
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)


def test_every_line_is_one_that_these_tests_know():
    for line in lines():
        assert re.match(
            rf"make \w+$|python3 -m venv \.venv && \.venv/bin/pip install -e \.$|gcloud auth |{re.escape(COMMAND)} (plan|submit|bench|compare) ",
            line,
        ), line


def test_make_targets_are_there():
    makefile = (ROOT / "Makefile").read_text()
    named = {line.split()[1] for line in lines() if line.startswith("make ")}
    assert {"run", "test", "check"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_config_is_taken():
    (text,) = blocks("yaml")
    taken = config_file.parse(text, source="README.md")
    example = config_file.load(ROOT / "examples" / "llama4-scout.yaml")
    require_image(taken.serving)  # so that `plan` takes it, too
    assert taken.serving.image == example.serving.image
    assert taken.concurrency == example.concurrency
    assert [variant.id for variant in taken.variants] == [variant.id for variant in example.variants]


def test_submit_shows_its_request():
    for line in lines():
        if " submit " in line:
            dry = line.replace(" --wait", "") + ("" if "--dry-run" in line else " --dry-run")
            done = execute(dry, ROOT)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["pipelineJob"]["pipelineSpec"]


def test_plan_says_what_the_example_takes(monkeypatch, tmp_path):
    """Without network and credentials nothing is refused: what can't be asked is said."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (line,) = [line for line in lines() if " plan " in line]
    done = execute(f"{line} --json", ROOT)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert [one["accelerators"] for one in plan["endpoints"]] == ["8 × NVIDIA_H100_80GB"] * 2
    assert {check["name"] for check in plan["checks"] if check["status"] == "ok"} == {"machine", "template", "variants"}


def test_two_servers_are_measured_and_compared(tmp_path):
    rows = [json.dumps({"prompt": f"Question {number}: what is {number} times seven?"}) for number in range(60)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(rows))
    with (
        TruthServer("usage-always", tokens=24, tokens_per_chunk=1) as plain,
        TruthServer("usage-always", tokens=24, tokens_per_chunk=3) as speculative,
    ):
        for line in lines():
            if " bench " in line or " compare " in line:
                here = line.replace("http://127.0.0.1:8000/v1", plain.url)
                done = execute(here.replace("http://127.0.0.1:8001/v1", speculative.url), tmp_path)
                assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads((tmp_path / "answer" / "comparison.json").read_text())
    assert answer["levels"] == [4]
    assert (tmp_path / "answer" / "report.html").is_file()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_to_files(link):
    assert (ROOT / link).is_file()
