"""What else a machine does while a run measures on it: CPU time of programs that are no part of the run.

Engines on a CPU are slowed by every other program, and one that ran during one variant alone would pass for a
difference between the two: the rounds of a cell agree with each other then, and no interval shows it.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from eagle_bench.comparison import Comparison, Warning
from eagle_bench.results import CellResult
from eagle_bench.units import count, significant

EVERY_S = 5.0
# On average over a cell. The engine of the built-in example has a core, and its client a fifth of one.
BUSY_CORES = 0.25
_KERNEL = 2  # parent of the kernel's threads, which work for everybody


class Strangers:
    """The CPU time of all programs but this one and what it started, over time.

    Args:
        proc: where Linux shows its processes.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._seen: dict[tuple[int, str], float] = {}
        self._used: list[tuple[float, float]] = []  # when, and the CPU seconds since the look before

    def look(self, now_s: float) -> None:
        """Take stock, if the last time is `EVERY_S` ago.

        Args:
            now_s: seconds since the epoch.
        """
        if self._used and now_s - self._used[-1][0] < EVERY_S:
            return
        parents, spent = self._processes()
        ours = _descendants(os.getpid(), parents)
        seen = {key: cpu_s for key, cpu_s in spent.items() if key[0] not in ours and parents[key[0]] != _KERNEL}
        # What began and ended between two looks is not seen; what began is counted from its second look on.
        used_s = sum(cpu_s - self._seen[key] for key, cpu_s in seen.items() if key in self._seen)
        self._seen = seen
        self._used.append((now_s, used_s))

    def cores(self, begin_s: float, end_s: float) -> float | None:
        """Cores that they used on average between two moments; None where nobody looked."""
        looks = [
            (before, now, used_s)
            for (before, _), (now, used_s) in zip(self._used, self._used[1:], strict=False)
            if before < end_s and now > begin_s
        ]
        seen_s = sum(now - before for before, now, _ in looks)
        return sum(used_s for *_, used_s in looks) / seen_s if seen_s else None

    def _processes(self) -> tuple[dict[int, int], dict[tuple[int, str], float]]:
        """The parent of each process, and the CPU seconds of each by its id and start (proc_pid_stat(5))."""
        parents, spent = {}, {}
        for path in self._proc.glob("[0-9]*/stat"):
            try:
                fields = path.read_text(errors="replace").rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            pid = int(path.parent.name)
            parents[pid] = int(fields[1])
            spent[pid, fields[19]] = (int(fields[11]) + int(fields[12])) * self._tick_s
        return parents, spent


def warned(answer: Comparison, strangers: Strangers) -> Comparison:
    """The answer, with a warning for each cell that other programs disturbed."""
    found = [
        Warning(
            code="busy_machine",
            variant=cell.variant,
            concurrency=cell.concurrency,
            text=f"other programs used {significant(cores, 2)} of this machine's {count(os.cpu_count() or 1, 'core')} meanwhile: "
            "what was measured may be of that. Measure again when it is quiet.",
        )
        for cell in answer.cells
        if (cores := _during(cell, strangers)) is not None and cores >= BUSY_CORES
    ]
    return answer.model_copy(update={"warnings": (*found, *answer.warnings)}) if found else answer


def _during(cell: CellResult, strangers: Strangers) -> float | None:
    if cell.started_at is None or cell.duration_s is None:
        return None
    begin_s = datetime.fromisoformat(cell.started_at).timestamp()
    return strangers.cores(begin_s, begin_s + cell.duration_s)


def _descendants(root: int, parents: dict[int, int]) -> set[int]:
    """A process and all that came of it."""
    found = {root}
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    left = [root]
    while left:
        new = children.get(left.pop(), [])
        found.update(new)
        left += new
    return found
