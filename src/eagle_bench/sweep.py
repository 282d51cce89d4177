"""How far a run is: which of its cells a line of progress is about, and how long the others take at the pace so far."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from eagle_bench.grid import Key
from eagle_bench.units import duration

_VARIANT = re.compile(r"(?P<variant>[^\s:]+): ")
_CELL = re.compile(r"(?P<variant>[^\s:]+): c=(?P<level>\d+) (?P<ended>(?:done|failed):)?")
_OWN_LEFT = re.compile(r" round .*, about (?P<seconds>\d+) s left$")  # a warm-up's is not the cell's
_READY = re.compile(r"(?P<variant>[^\s:]+): answers$")
_GIVEN_UP = re.compile(r"(?P<variant>[^\s:]+): (?:could not be deployed|smoke test failed): ")


class Sweep:
    """Follows a run by the lines that its tasks tell.

    From the first word of a variant on, the time that passes is shared out among what comes of it: variants that answer,
    and cells that end. So the pace holds whether variants are measured one after another or side by side.

    Cells of one number of requests take a time ÷ concurrency where throughput grows with it, and the same time where the
    server has no more to give: they are reckoned with the middle of both, ÷ its square root.

    Args:
        planned: the levels that are measured of each variant.
    """

    def __init__(self, planned: Mapping[str, Collection[int]]) -> None:
        self._total = sum(map(len, planned.values()))
        self._left: dict[Key, float] = {
            (variant, level): level**-0.5 for variant, levels in planned.items() for level in levels
        }
        self._not_ready = {variant for variant, levels in planned.items() if levels}
        self._numbers: dict[Key, int] = {}
        self._last_s: float | None = None
        self._ready_s: list[float] = []
        self._cells_s = self._done = 0.0

    def told(self, line: str, now_s: float) -> str:
        """The line; one about a cell says which of how many it is and, once a cell is done, what is left in all.

        Args:
            now_s: of a clock that goes on evenly.
        """
        if self._last_s is None and (spoken := _VARIANT.match(line)) and spoken["variant"] in self._not_ready:
            self._last_s = now_s
        if (found := _READY.match(line)) or (found := _GIVEN_UP.match(line)):
            self._ready(found["variant"], now_s, given_up=found.re is _GIVEN_UP)
            return line
        found = _CELL.match(line)
        if not found:
            return line
        key = found["variant"], int(found["level"])
        number = self._numbers.setdefault(key, len(self._numbers) + 1)
        if found["ended"] and key in self._left:
            self._done += self._left.pop(key)
            self._cells_s += self._passed_s(now_s)
        own = _OWN_LEFT.search(line)
        left_s = self.left_s(now_s, (key, float(own["seconds"])) if own else None)
        left = f", about {duration(left_s)} left in all" if left_s else ""
        return f"{line} (cell {number} of {self._total}{left})"

    def left_s(self, now_s: float, own: tuple[Key, float] | None = None) -> float | None:
        """Seconds to the end at the pace so far; None before a cell has ended, 0 where none is left.

        Args:
            own: a cell that is under way, and the seconds that it needs by its own word, which knows better.
        """
        if not self._done or self._last_s is None:
            return None
        if not self._left:
            return 0.0
        cells_s = {key: self._cells_s / self._done * share for key, share in self._left.items()}
        key = own[0] if own and own[0] in cells_s else next(iter(cells_s))
        under_way_s = own[1] if own else max(0.0, cells_s[key] - (now_s - self._last_s))
        del cells_s[key]
        return under_way_s + sum(cells_s.values()) + _mean(self._ready_s) * len(self._not_ready)

    def _ready(self, variant: str, now_s: float, *, given_up: bool) -> None:
        if variant in self._not_ready:
            self._not_ready.remove(variant)
            self._ready_s.append(self._passed_s(now_s))
        if given_up:
            self._left = {key: share for key, share in self._left.items() if key[0] != variant}

    def _passed_s(self, now_s: float) -> float:
        passed_s = now_s - (self._last_s if self._last_s is not None else now_s)
        self._last_s = now_s
        return passed_s


def _mean(values_s: list[float]) -> float:
    return sum(values_s) / len(values_s) if values_s else 0.0
