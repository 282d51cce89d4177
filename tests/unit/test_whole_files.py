"""Results take the place of earlier ones whole, or those stay: a full disk is played by a limit on the size of files."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from eagle_bench.adapters.pipeline_template import COMPILED, compile_template
from eagle_bench.adapters.whole_files import replace_files, write_files
from eagle_bench.commands import cell_file
from eagle_bench.errors import EagleBenchError, InputError
from eagle_bench.results import CellResult
from simulated_cells import EAGLE, cell

ROOM = 4096  # bytes of a file that fit


@contextmanager
def full_disk():
    # Byte code of what is imported meanwhile would be cut, too, and stay so.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def standing(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def eagle_bench(*arguments, full=False):
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))) if full else None
    command = [sys.executable, "-B", "-m", "eagle_bench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


def test_all_take_their_places_or_none(tmp_path):
    short, long = tmp_path / "short", tmp_path / "long"
    write_files({short: "old", long: "old"})
    with full_disk(), pytest.raises(InputError, match=f"^{tmp_path}: can't be written: File too large"):
        write_files({short: "new", long: "n" * (ROOM + 1)})
    assert standing(tmp_path) == {"short": "old", "long": "old"}
    write_files({short: "new", long: "new"})
    assert standing(tmp_path) == {"short": "new", "long": "new"}


def test_folders_are_made_and_a_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_files({tmp_path / "link": "through it", tmp_path / "a" / "b": "deep"})
    assert (tmp_path / "link").is_symlink()
    assert standing(tmp_path) == {"link": "through it", "file": "through it", "a/b": "deep"}


def test_nothing_is_moved_away_before_all_is_written(tmp_path):
    moved = []
    with full_disk(), pytest.raises(OSError, match="File too large"):
        replace_files({tmp_path / "x": "n" * (ROOM + 1)}, before=lambda: moved.append(1))
    assert not moved and not standing(tmp_path)


@pytest.mark.parametrize("place", ["/dev/full", "/proc/x.yaml", "/dev/null/x.yaml"])
def test_places_that_take_nothing_are_the_users_input(place):
    with pytest.raises(InputError, match=f"^{place}: can't be written: "):
        write_files({Path(place): "x" * 100})


def test_a_config_that_can_not_be_written_is_one_sentence():
    urls = ("--url", "baseline=http://a/v1", "--url", "eagle3=http://b/v1")
    for place, more in (("/proc/x.yaml", ()), ("/dev/full", ("--force",))):
        done = eagle_bench("init", *urls, "-o", place, *more)
        assert done.returncode == 2
        assert done.stderr.startswith(f"eagle-bench: {place}: can't be written: ")


def test_a_full_disk_leaves_the_earlier_answer(tmp_path):
    out = tmp_path / "out"
    for one in (cell("baseline", 1), cell("eagle3", 1, EAGLE)):
        (tmp_path / f"{one['variant']}.json").write_text(json.dumps(one))
    arguments = ("compare", tmp_path, "--baseline", "baseline", "--out", out)
    assert eagle_bench(*arguments).returncode == 0
    before = standing(out)
    done = eagle_bench(*arguments, "--max-failure-rate", "50%", full=True)
    assert (done.returncode, done.stderr) == (2, f"eagle-bench: {out}: can't be written: File too large.\n")
    assert standing(out) == before and set(before) == {"comparison.json", "report.html", "summary.md"}


def test_a_full_disk_leaves_the_earlier_template(tmp_path):
    template = tmp_path / "pipeline.yaml"
    old = COMPILED.decode() + "old"
    template.write_text(old)
    with full_disk(), pytest.raises(InputError, match=f"^{template}: can't be written: File too large"):
        compile_template(template)
    assert standing(tmp_path) == {"pipeline.yaml": old}


def test_a_full_disk_leaves_the_earlier_cell_in_its_place(tmp_path):
    out = tmp_path / "cell.json"
    out.write_text("old")
    with full_disk(), pytest.raises(EagleBenchError, match="File too large"):
        cell_file.write(CellResult.model_validate(cell("baseline", 1)), out)
    assert standing(tmp_path) == {"cell.json": "old"}
