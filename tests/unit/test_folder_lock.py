"""One run at a time in a folder, and none left behind by a run that was refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagle_bench.errors import InputError
from eagle_bench.runs.folder_lock import alone_in, only_one


def test_a_second_run_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    with alone_in(tmp_path / "out"):
        with pytest.raises(InputError, match="another run uses this folder"), alone_in(tmp_path / "out"):
            pass
        with pytest.raises(InputError, match=r"--resume .*another run uses"), alone_in(tmp_path / "out", "--resume"):
            pass
        assert (tmp_path / "out").is_dir()
    with alone_in(tmp_path / "out"):
        pass


def test_a_second_run_on_the_machine_is_noticed_and_one_after_it_not(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with only_one() as first:
        with only_one() as second:
            assert (first, second) == (True, False)
        with only_one() as third:
            assert not third
    with only_one() as later:
        assert later
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with only_one() as unknown:
        assert unknown


def test_a_refused_run_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few"), alone_in(tmp_path / "out"):
        raise InputError("too few prompts")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "file/out"])
def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="can't be made"), alone_in(tmp_path / name):
        raise AssertionError("it was made")


def test_what_stood_there_stays(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("an answer")
    with pytest.raises(InputError), alone_in(tmp_path):
        raise InputError("too few prompts")
    assert (tmp_path / "report.html").read_text() == "an answer"
