"""Whether the client bent what it measured, from a cell's own numbers. Pure.

A busy event loop stamps late, by `loop_lag_ms_mean` on average. The first stamp of a request is taken where its first
byte is written, so the lag falls in full on TTFT and on E2E, and a stream sends its next request that much later. TPOT
is a difference of two late stamps: what is left of the lag is spread over all tokens. So what matters is the mean
lag as a share of what it falls on, never single late timers (their p99 is 10 ms on any small machine that also
runs the server).
"""

from __future__ import annotations

from eagle_bench.results import CellMetrics, ClientHealth
from eagle_bench.units import milliseconds, percent

LATE_FIRST_TOKEN = 0.05
"""Mean lag ÷ median TTFT from which TTFT reads too long by more than a difference worth having."""
LATE_ANSWER = 0.02
"""Mean lag ÷ (median E2E − median TTFT) from which TPOT and throughput, which verdicts rest on, may be bent."""
BUSY = 0.9
"""CPU time ÷ (wall time × processes) from which streams wait for the client."""


def signs(client: ClientHealth | None, metrics: CellMetrics | None) -> tuple[str, ...]:
    """What shows that the client was the bottleneck, in words; none where it was not, or where nothing was measured."""
    if client is None or metrics is None:
        return ()
    found = []
    late, first = client.loop_lag_ms_mean, metrics.ttft_ms.p50
    if late is not None:
        rest = metrics.e2e_ms.p50 - first if metrics.e2e_ms else 0.0
        shares = [f"{percent(late / first)} of the median TTFT"] if 0 < LATE_FIRST_TOKEN * first < late else []
        if 0 < LATE_ANSWER * rest < late:
            shares.append(f"{percent(late / rest)} of the time from the first token to the last")
        if shares:
            found.append(f"it read the clock {milliseconds(late)} late on average ({' and '.join(shares)})")
    if client.cpu_fraction is not None and client.cpu_fraction > BUSY:
        found.append(f"it used {percent(client.cpu_fraction)} of its processor")
    return tuple(found)
