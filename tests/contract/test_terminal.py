"""Ease at a terminal and in scripts: colours that obey, JSON where scripts read, files that are checked, completion."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from eagle_bench import cli
from simulated_cells import BASELINE, EAGLE, cell

COMMAND = [sys.executable, "-m", "eagle_bench"]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    for name, engine in (("baseline", BASELINE), ("eagle3", EAGLE)):
        (folder / f"{name}.json").write_text(json.dumps(cell(name, 2, engine, prompts=60)))
    return folder


def at_a_terminal(arguments, **environment) -> str:
    """What a command writes to a real terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", **environment}
    with subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=theirs, env=env) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0, written.decode()
    return written.decode()


def test_colours_obey(cells, tmp_path):
    arguments = ["compare", str(cells), "--baseline", "baseline", "--out", str(tmp_path)]
    green, bold_green = "\x1b[32m", "\x1b[1;32m"
    coloured = at_a_terminal(arguments, NO_COLOR="")
    assert green in coloured
    assert bold_green in coloured
    plain = at_a_terminal(arguments, NO_COLOR="1")
    assert "faster" in plain
    assert green not in plain
    assert bold_green not in plain


def test_a_pipe_gets_json_alone_and_no_colour(cells, tmp_path):
    arguments = [*COMMAND, "compare", cells, "--baseline", "baseline", "--out", tmp_path, "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["answer"]["decisions"][0]["turn_on"] is True
    assert said["worse"] is None
    assert json.loads(Path(said["comparison"]).read_text())["decisions"] == said["answer"]["decisions"]
    assert "\x1b" not in done.stderr
    assert "Turn on eagle3" in " ".join(done.stderr.split())


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    return ended.value.code, capsys.readouterr()


def test_files_are_told_apart_and_checked(cells, tmp_path, capsys):
    config = tmp_path / "bench.yaml"
    config.write_text(
        yaml.safe_dump({"project": "p", "location": "l", "variants": [{"id": "baseline", "url": "http://a"}]})
    )
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({**cell("baseline", 2, BASELINE, prompts=60), "counts": {"requested": "many"}}))
    status, said = run(capsys, "validate", cells / "eagle3.json")
    assert (status, said.out) == (0, f"{cells / 'eagle3.json'}: a cell of eagle3 at concurrency 2\n")
    status, said = run(capsys, "validate", cells / "eagle3.json", config, broken)
    assert status == 2
    assert "`variants` has only the baseline" in said.err
    assert f"{broken}: `counts.requested`" in said.err


def test_a_schema_is_printed_for_validators_of_others(cells, capsys):
    status, said = run(capsys, "validate", "--schema", "cell")
    assert status == 0
    validator = jsonschema.Draft202012Validator(json.loads(said.out))
    assert not list(validator.iter_errors(json.loads((cells / "eagle3.json").read_text())))
    assert list(validator.iter_errors({"variant": 5}))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_script(shell, capsys):
    status, said = run(capsys, "completion", shell)
    assert status == 0
    assert "_EAGLE_BENCH_COMPLETE" in said.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["su"], "submit"), (["submit", "--dr"], "--dry-run"), (["validate", "--schema", "c"], "cell")],
)
def test_words_are_completed(words, expected):
    """As bash asks for it."""
    env = {**os.environ, "_EAGLE_BENCH_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["eagle-bench", *words])}
    code = "import sys; sys.argv[0] = 'eagle-bench'; from eagle_bench.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**env, "COMP_CWORD": str(len(words))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"plain,{expected}" in done.stdout.split(), (done.stdout, done.stderr)
