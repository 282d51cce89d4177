"""How packages are installed: where PyTorch is looked for, and what a person sees of pip."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eagle_bench.builtin import installing
from eagle_bench.builtin.installing import VERSION, install, torch

# Has no wheel for the CPU, writes down what it is asked for, and says as much as pip does.
PIP = """#!{python}
import sys, time
open({asked!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
for number in range(200):
    print(f"Collecting package{{number}}>=1.0 (from -r list)\\n  Downloading it")
print("Installing collected packages: all", flush=True)
time.sleep({sleep})
sys.exit("no such wheel" if any({refused!r} in word for word in sys.argv) else 0)
"""


@pytest.fixture
def python(tmp_path: Path):
    def write(sleep: float = 0.0, refused: str = "+cpu") -> Path:
        path = tmp_path / "python"
        path.write_text(PIP.format(python=sys.executable, asked=str(tmp_path / "asked"), sleep=sleep, refused=refused))
        path.chmod(0o755)
        return path

    return write


def asked(python: Path) -> list[str]:
    return (python.parent / "asked").read_text().splitlines()


def test_pytorch_is_the_cpu_build_where_there_is_one(python, monkeypatch, capfd):
    monkeypatch.delenv("TORCH_INDEX_URL", raising=False)
    said: list[str] = []
    torch(python(), said.append)
    assert [line.split()[-1] for line in asked(python())] == [f"torch=={VERSION}+cpu", f"torch=={VERSION}"]
    assert (said, *capfd.readouterr()) == ([], "", "")


def test_nothing_found_is_said_in_pips_last_words(python, monkeypatch):
    monkeypatch.setenv("TORCH_INDEX_URL", "https://wheels.invalid")
    refusing = python(refused="torch")
    with pytest.raises(RuntimeError, match=rf"(?s)PyTorch {VERSION} can't be installed: .*no such wheel") as caught:
        torch(refusing, lambda text: None)
    assert len(str(caught.value)) < 900
    assert sum("--index-url https://wheels.invalid" in line for line in asked(refusing)) == 1
    assert len(asked(refusing)) == 3


def test_of_a_long_wait_there_is_a_sign_now_and_then(python):
    said: list[str] = []
    install(python(sleep=1.0), ["-r", "list"], said.append, every_s=0.35)
    assert 1 <= len(said) <= 4
    assert said[-1].startswith("all fetched, installing (")


def test_a_log_has_no_line_of_pips_own_and_a_terminal_one_that_changes(python):
    script = [sys.executable, installing.__file__, str(python(sleep=1.5)), "-r", "list"]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    ours, theirs = pty.openpty()
    with subprocess.Popen(script, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        assert process.wait() == 0
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "all fetched, installing (1 s so far)" in shown
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[K")
    failed = subprocess.run([*script, "+cpu"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.rstrip().endswith("no such wheel")


def test_a_script_in_which_pip_builds_shows_as_little(tmp_path):
    """As `pip wheel` says it, which is what makes vLLM's client."""
    build = tmp_path / "build.sh"
    build.write_text("echo '  Building wheel for vllm (pyproject.toml): started'; sleep 1.5; echo; exit $1\n")
    script = [sys.executable, installing.__file__, "--", "sh", str(build)]
    ours, theirs = pty.openpty()
    with subprocess.Popen([*script, "0"], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        assert process.wait() == 0
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "building vllm (1 s so far)" in shown
    assert "\n" not in shown
    failed = subprocess.run([*script, "3"], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "Building wheel for vllm" in failed.stderr


def test_who_ends_the_wait_ends_pip(python):
    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        install(python(sleep=60), [], interrupt, every_s=0.1)
    assert time.monotonic() - began < 30
