"""What other programs used while a cell was measured, from a /proc of the test's own."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eagle_bench.report.findings import grouped
from eagle_bench.runs.strangers import EVERY_S, Strangers, warned
from reports import one_level

TICKS = os.sysconf("SC_CLK_TCK")
OURS, ENGINE, EDITOR, KERNEL, LATE = os.getpid(), 900_001, 900_002, 900_003, 900_004
T0 = 1_000_000.0


def proc(folder: Path, spent_s: dict[int, float], parents: dict[int, int]) -> None:
    for pid, seconds in spent_s.items():
        (folder / str(pid)).mkdir(exist_ok=True)
        user, system = int(seconds * TICKS * 0.75), int(seconds * TICKS * 0.25)
        fields = ["S", parents[pid], *range(5, 14), user, system, *range(16, 22), 5_000 + pid, 23]
        (folder / str(pid) / "stat").write_text(f"{pid} (a ) name) {' '.join(map(str, fields))}\n")


@pytest.fixture
def looked(tmp_path: Path) -> Strangers:
    """Looks 10 s apart; an editor uses no core, then 1.5 of them, then none; ours, its engine and the kernel always one."""
    found = Strangers(tmp_path)
    parents = {OURS: 1, ENGINE: OURS, EDITOR: 1, KERNEL: 2, LATE: 1}
    for number, editor_s in enumerate((0.0, 0.0, 15.0, 30.0, 30.0, 30.0)):
        busy = number * 10.0
        spent = {OURS: busy, ENGINE: busy, EDITOR: editor_s, KERNEL: busy}
        # One that was there before, with much behind it, is counted from its second look on.
        proc(tmp_path, spent | ({LATE: 500.0} if number > 3 else {}), parents)
        found.look(T0 + number * 10)
        found.look(T0 + number * 10 + EVERY_S / 2)  # too soon
    return found


def test_only_the_time_of_others_counts_and_only_while_it_was_used(looked: Strangers) -> None:
    assert looked.cores(T0, T0 + 10) == 0
    assert looked.cores(T0 + 10, T0 + 30) == pytest.approx(1.5)
    assert looked.cores(T0 + 5, T0 + 15) == pytest.approx(0.75)
    assert looked.cores(T0 + 30, T0 + 50) == 0
    assert looked.cores(T0 + 60, T0 + 90) is None


def test_a_disturbed_cell_is_named_and_no_other(looked: Strangers) -> None:
    answer = one_level()
    baseline, eagle = answer.cells
    began = {"duration_s": 20.0}
    cells = (
        baseline.model_copy(update={"started_at": iso(T0 + 30), **began}),
        eagle.model_copy(update={"started_at": iso(T0 + 10), **began}),
    )
    told = warned(answer.model_copy(update={"cells": cells}), looked)
    new = told.warnings[: len(told.warnings) - len(answer.warnings)]
    assert [(one.code, one.variant) for one in new] == [("busy_machine", eagle.variant)]
    assert "other programs used 1.5 of this machine's" in new[0].text
    assert any("Measure again when it is quiet" in text for _, text in grouped(told))


def test_an_answer_of_a_quiet_machine_or_of_another_time_is_left_as_it_is(looked: Strangers) -> None:
    answer = one_level()
    assert warned(answer, looked) is answer
    assert warned(answer, Strangers()) is answer


def test_the_real_proc_can_be_read() -> None:
    found = Strangers()
    found.look(T0)
    found.look(T0 + 2 * EVERY_S)
    cores = found.cores(T0, T0 + 2 * EVERY_S)
    assert cores is not None
    assert cores >= 0


def iso(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).isoformat()
