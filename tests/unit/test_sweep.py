"""How far a run is, by the lines that its tasks tell."""

from __future__ import annotations

import pytest

from eagle_bench.sweep import Sweep
from eagle_bench.units import duration

PLANNED = {"baseline": (1, 2), "eagle3": (1, 2)}


def told(sweep: Sweep, *lines: tuple[float, str]) -> list[str]:
    return [sweep.told(line, now_s) for now_s, line in lines]


def test_a_line_about_a_cell_says_which_of_how_many_it_is() -> None:
    sweep = Sweep(PLANNED)
    lines = told(
        sweep,
        (0, "baseline: c=1 warm-up: 1/2 requests, 0 failed"),
        (5, "eagle3: c=1 warm-up: 1/2 requests, 0 failed"),
        (9, "baseline: c=1 round 2/5: 16/50 requests, 0 failed, about 43 s left"),
        (9, "eagle3: deployed after 26 s"),
    )
    assert lines == [
        "baseline: c=1 warm-up: 1/2 requests, 0 failed (cell 1 of 4)",
        "eagle3: c=1 warm-up: 1/2 requests, 0 failed (cell 2 of 4)",
        "baseline: c=1 round 2/5: 16/50 requests, 0 failed, about 43 s left (cell 1 of 4)",
        "eagle3: deployed after 26 s",
    ]


def test_no_time_is_left_unmeasured() -> None:
    """One after another: 30 s until a variant answers, 100 s a cell."""
    sweep = Sweep(PLANNED)
    told(sweep, (3, "stage: 700 prompts"), (5, "baseline: deploying m"), (35, "baseline: answers"))
    assert sweep.left_s(35) is None
    (line,) = told(sweep, (135, "baseline: c=1 done: TPOT 5.0 ms, TTFT 9 ms"))
    assert line.endswith("(cell 1 of 4, about 6 min left in all)")
    assert sweep.left_s(135) == 3 * 100 + 30
    assert sweep.left_s(175) == 3 * 100 + 30 - 40
    assert sweep.left_s(9999) == 2 * 100 + 30  # late, and nobody knows how late
    told(sweep, (235, "baseline: c=2 done: TPOT 5.0 ms, TTFT 9 ms"), (265, "eagle3: answers"))
    assert sweep.left_s(265) == 2 * 100
    lines = told(
        sweep, (365, "eagle3: c=1 failed: no request succeeded"), (465, "eagle3: c=2 done: no TPOT, TTFT 9 ms")
    )
    assert lines[0].endswith("(cell 3 of 4, about 100 s left in all)") or lines[0].endswith("about 2 min left in all)")
    assert lines[1].endswith("(cell 4 of 4)")
    assert sweep.left_s(465) == 0


def test_what_a_cell_says_of_itself_goes_before_the_pace() -> None:
    sweep = Sweep(PLANNED)
    told(sweep, (0, "baseline: answers"), (100, "baseline: c=1 done: TPOT 5.0 ms, TTFT 9 ms"))
    (line,) = told(sweep, (110, "baseline: c=2 round 1/3: 11/50 requests, 0 failed, about 600 s left"))
    assert line.endswith("about 600 s left (cell 2 of 4, about 13 min left in all)")


def test_variants_that_are_measured_side_by_side_end_twice_as_soon() -> None:
    sweep = Sweep(PLANNED)
    told(
        sweep,
        (0, "baseline: runs at http://a/v1"),
        (0, "baseline: answers"),
        (0, "eagle3: answers"),
        (100, "baseline: c=1 done: no TPOT, TTFT 9 ms"),
        (100, "eagle3: c=1 done: no TPOT, TTFT 9 ms"),
    )
    assert sweep.left_s(100) == 100


@pytest.mark.parametrize("why", ["could not be deployed: no quota", "smoke test failed: no answer"])
def test_what_is_given_up_is_not_waited_for(why: str) -> None:
    sweep = Sweep(PLANNED)
    told(sweep, (0, "baseline: answers"), (60, "baseline: c=1 done: no TPOT, TTFT 9 ms"), (60, f"eagle3: {why}"))
    assert sweep.left_s(60) == 60


def test_what_an_earlier_run_measured_is_not_counted() -> None:
    sweep = Sweep({"baseline": (), "eagle3": (2,)})
    told(sweep, (0, "eagle3: answers"))
    assert told(sweep, (9, "eagle3: c=2 warm-up: 1/2 requests, 0 failed"))[0].endswith("(cell 1 of 1)")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (600, "10 min"), (7199, "2 h 0 min"), (8000, "2 h 13 min")],
)
def test_a_time_to_wait_is_as_rough_as_it_is_known(seconds: float, text: str) -> None:
    assert duration(seconds) == text
