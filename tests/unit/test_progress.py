"""Progress: all of it on a terminal, some of it in a log."""

from __future__ import annotations

import sys

import pytest

from eagle_bench.adapters.vllm_client import Progress
from eagle_bench.commands.bench_progress import telling


@pytest.mark.parametrize(("terminal", "told"), [(True, 33), (False, 6)])
def test_a_log_gets_a_line_where_a_round_begins_and_at_the_end(terminal, told, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    tell = telling()
    for done in range(3):
        tell(Progress(4, -1, 3, done, 2, 0))
    for done in range(1, 31):
        tell(Progress(4, (done - 1) // 10, 3, done, 30, 0))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == told
    assert lines[-1] == "c=4 round 3/3: 30/30 requests, 0 failed"
