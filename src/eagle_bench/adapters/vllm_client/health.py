"""How late the client's event loop ran and how much CPU it took; `saturation` says what that means."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import numpy as np

from eagle_bench.results import ClientHealth

_PERIOD_S = 0.02


@dataclass
class Watch:
    """While it is open: how late the event loop runs its timers, and the CPU time of this process."""

    lags_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    _since: tuple[float, float] | None = None
    _timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._since = time.process_time(), time.perf_counter()
        self._plan(asyncio.get_running_loop())

    def close(self) -> None:
        if self._since is None or self._timer is None:
            return
        cpu, wall = self._since
        self.cpu_s += time.process_time() - cpu
        self.wall_s += time.perf_counter() - wall
        self._timer.cancel()
        self._since = self._timer = None

    def add(self, other: Watch) -> None:
        """Take in what another watch over the same process saw at another time."""
        self.lags_s += other.lags_s
        self.cpu_s += other.cpu_s
        self.wall_s += other.wall_s

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + _PERIOD_S

        def late() -> None:
            self.lags_s.append(max(0.0, loop.time() - due))
            self._plan(loop)

        self._timer = loop.call_at(due, late)


def health(watches: list[Watch]) -> ClientHealth:
    """The health of one process, or of several: the lag of the worst, the CPU of all."""
    lags = [np.array(watch.lags_s) for watch in watches if watch.lags_s]
    wall = sum(watch.wall_s for watch in watches)
    return ClientHealth(
        loop_lag_ms_p99=max(float(np.percentile(lag, 99)) for lag in lags) * 1000 if lags else None,
        loop_lag_ms_mean=max(float(np.mean(lag)) for lag in lags) * 1000 if lags else None,
        processes=len(watches),
        cpu_fraction=sum(watch.cpu_s for watch in watches) / wall if wall else None,
    )
