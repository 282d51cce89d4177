"""From intervals to an answer: a verdict per level, a decision per variant.

A level is *faster* where the interval of its TPOT speed-up lies above 1, *slower* where it lies below,
*inconclusive* where it holds 1 (or where there is too little data for one), *invalid* where a cell can't be
used. The intervals are those that hold for all levels at once. A decision is read off the verdicts alone:
the highest level that is faster, never the first dip, and nothing beyond the levels that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eagle_bench.comparison import Decision, Interval, LevelComparison, Verdict
from eagle_bench.results import Acceptance
from eagle_bench.units import count, levels, significant, times, times_spread

NO_DIFFERENCE = 0.05
"""An interval inside 1 ± this share is an answer of its own: no difference worth having."""
PLAUSIBLE = 8.0
"""A speed-up above this one is no work of speculation, where nothing tells how many tokens a step yields."""
_MEASURING = 1.05
"""How far above the acceptance length a measured speed-up may still lie."""
_HOPELESS = 10
"""More times the prompts than this is no advice."""


def judge(tpot: Interval | None) -> Verdict:
    """The verdict that an interval of the TPOT speed-up gives."""
    if tpot is None or tpot.family_low is None or tpot.family_high is None:
        return "inconclusive"
    if tpot.family_low > 1:
        return "faster"
    return "slower" if tpot.family_high < 1 else "inconclusive"


def too_good(tpot: Interval | None, acceptance: Acceptance | None) -> str | None:
    """Why a speed-up can't come from speculation; None where it can.

    A step of the target yields `acceptance.length` tokens, and no step is quicker for it: decoding can't be sped up
    by more. Tokens per chunk are a proxy, too coarse to refute anything.
    """
    if tpot is None:
        return None
    if acceptance is None or acceptance.source == "chunks":
        if tpot.estimate <= PLAUSIBLE or (tpot.low is not None and tpot.low <= PLAUSIBLE):
            return None
        return f"a speed-up of {times(tpot.estimate)} is beyond what speculation can do ({times(PLAUSIBLE)} at most)"
    ceiling = acceptance.length
    if tpot.estimate <= ceiling * _MEASURING or (tpot.low is not None and tpot.low <= ceiling):
        return None
    return f"a speed-up of {times(tpot.estimate)} is more than the acceptance length of {significant(ceiling)} allows"


def is_flat(level: LevelComparison) -> bool:
    """Whether a level shows that there is no difference, rather than failing to show one."""
    tpot = level.tpot
    return level.verdict == "inconclusive" and not level.short and tpot is not None and within_noise(tpot)


def within_noise(tpot: Interval) -> bool:
    """Whether an interval holds no difference worth having."""
    if tpot.family_low is None or tpot.family_high is None:
        return False
    return tpot.family_low > 1 - NO_DIFFERENCE and tpot.family_high < 1 + NO_DIFFERENCE


def higher_throughput(level: LevelComparison) -> Interval | None:
    """The throughput's speed-up where it is above 1 by bounds that hold for all levels at once; else None."""
    rate = level.speedup.throughput if level.speedup is not None else None
    return rate if rate is not None and rate.family_low is not None and rate.family_low > 1 else None


def more_prompts(tpot: Interval | None, pairs: int) -> int | None:
    """About how many more prompts would settle an open level, were the estimate right; None if hopeless or settled.

    An interval shrinks with the root of the number of prompts: n' = n × (reach ÷ room)². It settles the level once
    it leaves 1 out, or once it lies within `NO_DIFFERENCE` of 1: the nearer of the two counts. Its width is known to
    1 ÷ √(2n) of itself, as a standard deviation is, so n' is known to √(2n): fewer than these are never told.
    """
    if tpot is None or tpot.family_low is None or tpot.family_high is None:
        return None
    centre, low, high = (math.log(value) for value in (tpot.estimate, tpot.family_low, tpot.family_high))
    to_one = (centre - low) / centre if centre > 0 else (high - centre) / -centre if centre < 0 else math.inf
    least, most = math.log(1 - NO_DIFFERENCE), math.log(1 + NO_DIFFERENCE)
    inside = (
        max((centre - low) / (centre - least), (high - centre) / (most - centre)) if least < centre < most else math.inf
    )
    times_wider = min(to_one, inside)
    if times_wider <= 1 or times_wider**2 > _HOPELESS:
        return None
    more = max(pairs * (times_wider**2 - 1), math.sqrt(2 * pairs))
    step = int(10 ** max(0, math.floor(math.log10(more)) - 1))
    return math.ceil(more / step) * step


@dataclass(frozen=True)
class _Split:
    """The levels of one variant by what they say, each group rising."""

    faster: list[LevelComparison]
    slower: list[LevelComparison]
    flat: list[LevelComparison]
    open: list[LevelComparison]
    invalid: list[LevelComparison]

    @classmethod
    def of(cls, ordered: list[LevelComparison]) -> _Split:
        def having(verdict: Verdict) -> list[LevelComparison]:
            return [level for level in ordered if level.verdict == verdict]

        unsettled = having("inconclusive")
        flat = [level for level in unsettled if is_flat(level)]
        return cls(
            having("faster"),
            having("slower"),
            flat,
            [level for level in unsettled if level not in flat],
            having("invalid"),
        )

    def where(self, keep: Callable[[int], bool]) -> list[str]:
        """Clauses on the levels that `keep` takes, but for the faster ones."""
        groups = (self.slower, self.flat, self.open, self.invalid)
        kept = ([level for level in group if keep(level.concurrency)] for group in groups)
        sayings = (_slower, _flat, _open, _invalid)
        return [say(group) for say, group in zip(sayings, kept, strict=True) if group]


def decide(variant: str, comparisons: Sequence[LevelComparison]) -> Decision:
    """The answer for one variant from its levels."""
    ordered = sorted(comparisons, key=lambda level: level.concurrency)
    split = _Split.of(ordered)
    if split.faster:
        return _gain(variant, ordered, split)
    clauses = "; ".join(split.where(lambda _: True))
    no_gain = [level.concurrency for level in (*split.slower, *split.flat)]
    first_slower = min((level.concurrency for level in split.slower), default=math.inf)
    could_gain = [level for level in split.open if level.concurrency < first_slower]
    could_gain += [level for level in split.invalid if level.concurrency < first_slower]
    if no_gain and not could_gain:
        text = f"Don't turn {variant} on: {clauses}."
        return Decision(variant=variant, turn_on=False, up_to_concurrency=None, text=text)
    yet = "" if len(split.invalid) == len(ordered) else " yet"
    text = f"Can't tell{yet} whether {variant} pays: {clauses}."
    return Decision(variant=variant, turn_on=None, up_to_concurrency=None, text=text)


def _gain(variant: str, ordered: list[LevelComparison], split: _Split) -> Decision:
    """The decision where at least one level is faster: the highest of them is the limit."""
    top = split.faster[-1].concurrency
    gain = f"output tokens come {_spread(split.faster)} as fast"
    if any(level.concurrency < top for level in split.slower):
        at = levels([level.concurrency for level in split.faster])
        mixed = "; ".join([f"{gain} at concurrency {at}", *split.where(lambda _: True)])
        text = f"It depends whether {variant} pays: {mixed}."
        return Decision(variant=variant, turn_on=None, up_to_concurrency=None, text=text)
    clauses = [gain, *split.where(lambda level: level < top)]
    higher = [level for level in ordered if level.concurrency > top]
    crossover = higher[0].concurrency if higher and higher[0].verdict != "invalid" else None
    if higher:
        clauses += split.where(lambda level: level > top)
    elif len(ordered) == 1:
        clauses.append("no other level was measured")
    else:
        clauses.append(f"no crossover found in {ordered[0].concurrency} to {top}")
    where = f"up to concurrency {top}" if len(ordered) > 1 else f"at concurrency {top}"
    text = f"Turn on {variant} {where}: {'; '.join(clauses)}."
    return Decision(variant=variant, turn_on=True, up_to_concurrency=top, text=text, crossover=crossover)


def _estimates(group: Sequence[LevelComparison]) -> list[float]:
    return [level.tpot.estimate for level in group if level.tpot]


def _at(group: Sequence[LevelComparison]) -> str:
    return f"concurrency {levels([level.concurrency for level in group])}"


def _spread(group: Sequence[LevelComparison]) -> str:
    """The range of the speed-ups, such as "1.21× to 1.52×"."""
    return times_spread(_estimates(group))


def _slower(group: list[LevelComparison]) -> str:
    said = f"slower at {_at(group)} ({_spread(group)})"
    more = {level.concurrency: rate.estimate for level in group if (rate := higher_throughput(level)) is not None}
    if not more:
        return said
    where = "" if len(more) == len(group) else f" at {levels(list(more))}"
    return f"{said}, though throughput is higher{where} ({times_spread(more.values())})"


def _flat(group: list[LevelComparison]) -> str:
    bounds = [level.tpot for level in group if level.tpot]
    low = min(bound.family_low for bound in bounds if bound.family_low is not None)
    high = max(bound.family_high for bound in bounds if bound.family_high is not None)
    return f"no measurable difference at {_at(group)} (between {times(low)} and {times(high)})"


def _open(group: list[LevelComparison]) -> str:
    bounded = [level for level in group if not _unbounded(level)]
    others = [level for level in group if level not in bounded]
    clauses = [f"inconclusive at {_at(bounded)} ({_spread(bounded)}), {_needs(bounded)}"] if bounded else []
    if others:
        why = "; ".join(sorted({level.reasons[0] for level in others}))
        clauses.append(f"inconclusive at {_at(others)} ({why})")
    return "; ".join(clauses)


def _needs(group: list[LevelComparison]) -> str:
    """What would settle open levels: the most that any of them needs."""
    needed = [level.more_prompts for level in group if level.more_prompts is not None]
    hopeless = [level for level in group if level.more_prompts is None]
    if not needed:
        return f"which would take {_beyond(hopeless)} to settle"
    each = " each" if len(needed) > 1 else ""
    about = "up to" if len(set(needed)) > 1 else "about"
    rounds = ", in more rounds," if any(level.drift for level in group) else ""
    more = f"{about} {count(max(needed), 'more prompt')}{each}{rounds} would settle"
    if not hopeless:
        return f"which {more}"
    there = [level for level in group if level not in hopeless]
    return f"{more} {_at(there)}; {_at(hopeless)} would take {_beyond(hopeless)}"


def _beyond(hopeless: list[LevelComparison]) -> str:
    """What nobody would measure; where the rounds differ, larger ones would not even help."""
    what = "rounds" if all(level.drift for level in hopeless) else "prompts"
    return f"more than {_HOPELESS} times the {what}"


def _unbounded(level: LevelComparison) -> bool:
    """Whether something else than its interval keeps a level open."""
    tpot = level.tpot
    return level.short or tpot is None or tpot.family_low is None or judge(tpot) != level.verdict


def _invalid(group: list[LevelComparison]) -> str:
    reasons = list(dict.fromkeys(level.reasons[0] for level in group))
    return f"no valid result at {_at(group)}: {'; '.join(reasons)}"
