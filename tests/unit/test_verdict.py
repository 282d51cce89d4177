"""Verdicts from intervals, and decisions from verdicts, in the cases that are easy to get wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench.comparison import Decision, Interval, LevelComparison, Speedup
from eagle_bench.verdict import decide, judge, more_prompts


def interval(estimate: float, low: float, high: float) -> Interval:
    return Interval(estimate=estimate, low=low, high=high, family_low=low, family_high=high)


INTERVALS = {
    "faster": interval(1.4, 1.3, 1.5),
    "slower": interval(0.8, 0.75, 0.85),
    "flat": interval(1.0, 0.98, 1.02),
    "open": interval(1.1, 0.9, 1.3),
}


def level(concurrency: int, kind: str) -> LevelComparison:
    if kind == "invalid":
        return LevelComparison(
            variant="eagle3", concurrency=concurrency, verdict="invalid", reasons=("eagle3 crashed",), speedup=None
        )
    tpot = INTERVALS[kind]
    return LevelComparison(
        variant="eagle3", concurrency=concurrency, verdict=judge(tpot), reasons=("because",), paired_prompts=200,
        speedup=Speedup(tpot=tpot, e2e=None, throughput=None, ttft=None),
        more_prompts=more_prompts(tpot, 200) if kind == "open" else None,
    )  # fmt: skip


def decision(**kinds: str) -> Decision:
    return decide("eagle3", [level(int(name[1:]), kind) for name, kind in kinds.items()])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(1.001, 1.2, "faster"), (1.0, 1.2, "inconclusive"), (0.9, 1.1, "inconclusive"), (0.8, 0.999, "slower")],
)
def test_a_verdict_is_where_the_interval_lies(low: float, high: float, expected: str) -> None:
    assert judge(interval((low * high) ** 0.5, low, high)) == expected


def test_without_an_interval_nothing_is_concluded() -> None:
    assert judge(None) == "inconclusive"
    assert judge(Interval(estimate=2.0, low=None, high=None)) == "inconclusive"


def test_the_bounds_of_all_levels_decide() -> None:
    found = Interval(estimate=1.1, low=1.01, high=1.2, family_low=0.99, family_high=1.22)
    assert judge(found) == "inconclusive"


def test_faster_at_all_levels() -> None:
    found = decision(c1="faster", c4="faster", c10="faster")
    assert (found.turn_on, found.up_to_concurrency, found.crossover) == (True, 10, None)
    assert found.text.startswith("Turn on eagle3 up to concurrency 10: ")
    assert "no crossover found in 1 to 10" in found.text


def test_faster_at_low_levels_and_slower_at_high_ones() -> None:
    found = decision(c1="faster", c2="faster", c4="slower", c8="slower")
    assert (found.turn_on, found.up_to_concurrency, found.crossover) == (True, 2, 4)
    assert "slower at concurrency 4 and 8" in found.text


def test_a_noisy_dip_is_no_crossover() -> None:
    found = decision(c1="faster", c2="open", c4="faster", c8="slower")
    assert (found.turn_on, found.up_to_concurrency, found.crossover) == (True, 4, 8)
    assert "inconclusive at concurrency 2" in found.text


def test_slower_below_and_faster_above_depends() -> None:
    found = decision(c1="slower", c2="open", c4="faster")
    assert (found.turn_on, found.up_to_concurrency) == (None, None)
    assert found.text.startswith("It depends")
    assert "faster" not in found.text.split(":")[0]
    assert "concurrency 4" in found.text and "slower at concurrency 1" in found.text


def test_slower_everywhere() -> None:
    found = decision(c1="slower", c4="slower")
    assert (found.turn_on, found.up_to_concurrency) == (False, None)
    assert found.text.startswith("Don't turn eagle3 on: slower at concurrency 1 and 4 (0.80×)")


def test_no_difference_is_an_answer() -> None:
    found = decision(c1="flat", c4="flat")
    assert found.turn_on is False
    assert "no measurable difference at concurrency 1 and 4 (between 0.98× and 1.02×)" in found.text


def test_flat_and_then_slower() -> None:
    assert decision(c1="flat", c4="slower").turn_on is False


def test_open_levels_keep_it_open() -> None:
    found = decision(c1="open", c4="open")
    assert found.turn_on is None
    assert found.text.startswith("Can't tell yet")
    assert "more prompts each would settle" in found.text


def test_open_levels_say_what_each_kind_of_them_needs() -> None:
    hopeless = level(8, "open").model_copy(update={"more_prompts": None})
    short = level(16, "faster").model_copy(update={"verdict": "inconclusive", "reasons": ("too few requests",)})
    needed = level(4, "open").more_prompts
    text = decide("eagle3", [level(4, "open"), hopeless, short]).text
    assert (
        f"about {needed} more prompts would settle concurrency 4; concurrency 8 would take more than 10 times" in text
    )
    assert "inconclusive at concurrency 16 (too few requests)" in text
    drifting = level(4, "open").model_copy(update={"drift": True})
    assert "more prompts, in more rounds, would settle" in decide("eagle3", [drifting]).text


def test_open_at_low_levels_and_slower_at_high_ones_stays_open() -> None:
    assert decision(c1="open", c4="slower").turn_on is None


def test_slower_at_low_levels_and_open_at_high_ones_is_no() -> None:
    assert decision(c1="slower", c4="open").turn_on is False


def test_flat_here_and_open_there_stays_open() -> None:
    assert decision(c1="flat", c4="open").turn_on is None


def test_nothing_valid() -> None:
    found = decision(c1="invalid", c4="invalid")
    assert found.turn_on is None
    assert found.text == "Can't tell whether eagle3 pays: no valid result at concurrency 1 and 4: eagle3 crashed."


def test_an_invalid_level_above_the_limit_is_said_and_is_no_crossover() -> None:
    found = decision(c1="faster", c4="faster", c8="invalid")
    assert (found.turn_on, found.up_to_concurrency, found.crossover) == (True, 4, None)
    assert "no valid result at concurrency 8: eagle3 crashed" in found.text
    assert "no crossover" not in found.text


def test_one_level() -> None:
    found = decision(c4="faster")
    assert (found.turn_on, found.up_to_concurrency) == (True, 4)
    assert "no other level was measured" in found.text


def test_more_prompts_shrinks_the_interval_to_the_distance_from_one() -> None:
    """The low end reaches twice as far as 1 lies away, in logarithms: four times the prompts."""
    found = more_prompts(interval(1.1, 1 / 1.1, 1.1**3), 100)
    assert found is not None
    assert 300 <= found <= 310


def test_more_prompts_are_never_fewer_than_an_intervals_width_is_known_to() -> None:
    nearly = interval(0.84, 0.70, 1.0005)
    assert (more_prompts(nearly, 50), more_prompts(nearly, 800)) == (10, 40)


def test_more_prompts_gives_no_hopeless_advice() -> None:
    assert more_prompts(interval(1.001, 0.8, 1.2), 100) is None
    assert more_prompts(interval(1.2, 1.1, 1.3), 100) is None
    assert more_prompts(None, 100) is None


def test_a_level_without_a_difference_is_settled_by_an_interval_within_five_per_cent_of_one() -> None:
    """Twice as wide as ± 5 %: four times the prompts, though no number of them would take 1 out."""
    found = more_prompts(interval(1.0, 0.95**2, 1.05**2), 100)
    assert found is not None
    assert 300 <= found <= 310


@given(st.lists(st.sampled_from(["faster", "slower", "flat", "open", "invalid"]), min_size=1, max_size=6))
def test_laws_of_decisions(kinds: list[str]) -> None:
    found = decide("eagle3", [level(2**i, kind) for i, kind in enumerate(kinds)])
    faster = [2**i for i, kind in enumerate(kinds) if kind == "faster"]
    if found.turn_on:
        assert found.up_to_concurrency == max(faster)
        assert "slower" not in kinds[: kinds.index("faster")]
        assert found.crossover is None or found.crossover > found.up_to_concurrency
    else:
        assert found.up_to_concurrency is None
    if found.turn_on is False:
        assert not faster
    assert found.text.endswith(".") and "None" not in found.text
    assert found == decide("eagle3", [level(2**i, kind) for i, kind in reversed(list(enumerate(kinds)))])


def test_a_level_that_something_else_keeps_open_says_what() -> None:
    short = level(4, "faster").model_copy(update={"verdict": "inconclusive", "reasons": ("too few requests",)})
    text = decide("eagle3", [short]).text
    assert "too few requests" in text and "too close to 1" not in text
