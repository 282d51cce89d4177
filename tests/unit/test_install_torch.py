"""How PyTorch is installed: where it is looked for, and what a person sees of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eagle_bench.builtin.install_torch import VERSION, install


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python whose pip has no wheel for the CPU, and writes down what it is asked for."""
    path = tmp_path / "python"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'asked')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "print('Downloading')\nsys.exit('no such wheel' if any('+cpu' in word for word in sys.argv) else 0)\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("show", [True, False])
def test_pip_shows_how_far_it_is_where_somebody_looks(python, show, monkeypatch, capfd):
    monkeypatch.delenv("TORCH_INDEX_URL", raising=False)
    install(python, show=show)
    asked = (python.parent / "asked").read_text().splitlines()
    assert [line.split()[-1] for line in asked] == [f"torch=={VERSION}+cpu", f"torch=={VERSION}"]
    assert all(("--quiet" in line) is not show for line in asked)
    shown = capfd.readouterr()
    assert ("Downloading" in shown.out) is show
    assert "no such wheel" not in shown.out + shown.err


def test_nothing_found_is_said_in_pips_words(python, monkeypatch):
    monkeypatch.setenv("TORCH_INDEX_URL", "https://wheels.invalid")
    python.write_text(python.read_text().replace("'+cpu'", "'torch'"))
    with pytest.raises(RuntimeError, match=f"PyTorch {VERSION} can't be installed: no such wheel"):
        install(python)
    asked = (python.parent / "asked").read_text()
    assert asked.count("--index-url https://wheels.invalid") == 1
    assert len(asked.splitlines()) == 3
