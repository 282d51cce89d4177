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
    """One after another: 30 s until a variant answers, 100 s a cell at concurrency 1, 50 s at 4: as is reckoned with."""
    sweep = Sweep({"baseline": (1, 4), "eagle3": (1, 4)})
    told(sweep, (3, "stage: 700 prompts"), (5, "baseline: deploying m"), (35, "baseline: answers"))
    assert sweep.left_s(35) is None
    (line,) = told(sweep, (135, "baseline: c=1 done: TPOT 5.0 ms, TTFT 9 ms"))
    assert line.endswith("(cell 1 of 4, about 4 min left in all)")
    assert sweep.left_s(135) == 50 + 30 + 100 + 50
    assert sweep.left_s(175) == 50 + 30 + 100 + 50 - 40
    assert sweep.left_s(9999) == 30 + 100 + 50  # late, and nobody knows how late
    told(sweep, (185, "baseline: c=4 done: TPOT 5.0 ms, TTFT 9 ms"), (215, "eagle3: answers"))
    assert sweep.left_s(215) == 100 + 50
    lines = told(
        sweep, (315, "eagle3: c=1 failed: no request succeeded"), (365, "eagle3: c=4 done: no TPOT, TTFT 9 ms")
    )
    assert lines[0].endswith("(cell 3 of 4, about 50 s left in all)")
    assert lines[1].endswith("(cell 4 of 4)")
    assert sweep.left_s(365) == 0


@pytest.mark.parametrize("gain", [0, 1], ids=["throughput stays the same", "throughput grows with concurrency"])
def test_the_first_estimate_is_near_whatever_concurrency_yields(gain: int) -> None:
    levels = (1, 2, 4, 6, 8, 10)
    sweep = Sweep({"baseline": levels})
    told(sweep, (0, "baseline: answers"), (100, "baseline: c=1 done: TPOT 5.0 ms, TTFT 9 ms"))
    left_s = sweep.left_s(100)
    assert left_s is not None
    assert 0.4 < left_s / sum(100 / level**gain for level in levels[1:]) < 2.1


def test_what_a_cell_says_of_itself_goes_before_the_pace() -> None:
    sweep = Sweep(PLANNED)
    told(sweep, (0, "baseline: answers"), (100, "baseline: c=1 done: TPOT 5.0 ms, TTFT 9 ms"))
    (line,) = told(sweep, (110, "baseline: c=2 round 1/3: 11/50 requests, 0 failed, about 600 s left"))
    assert line.endswith("about 600 s left (cell 2 of 4, about 13 min left in all)")  # and 100 s + 71 s of eagle3
    (line,) = told(sweep, (110, "baseline: c=2 warm-up: 1/4 requests, 0 failed, about 600 s left"))
    assert line.endswith("about 600 s left (cell 2 of 4, about 4 min left in all)")  # the warm-up's is not the cell's


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
    assert sweep.left_s(100) == pytest.approx(2 * 50 / 2**0.5)


@pytest.mark.parametrize("why", ["could not be deployed: no quota", "smoke test failed: no answer"])
def test_what_is_given_up_is_not_waited_for(why: str) -> None:
    sweep = Sweep(PLANNED)
    told(sweep, (0, "baseline: answers"), (60, "baseline: c=1 done: no TPOT, TTFT 9 ms"), (60, f"eagle3: {why}"))
    assert sweep.left_s(60) == pytest.approx(60 / 2**0.5)


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
