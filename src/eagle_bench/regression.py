"""A gate for builds: is any cell worse than it was, by more than a limit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from eagle_bench.comparison import CellView, Comparison, LevelComparison
from eagle_bench.errors import InputError
from eagle_bench.pairing import different_prompts
from eagle_bench.report.table import Table
from eagle_bench.results import CellResult
from eagle_bench.settings_checks import changed_work
from eagle_bench.units import NOTHING, change, milliseconds, percent, rate

_METRICS = (("TPOT", "tpot_ms"), ("TTFT", "ttft_ms"), ("E2E", "e2e_ms"), ("Output", "output_tokens_per_s"))


@dataclass(frozen=True)
class Regression:
    """One metric of one cell that got worse by more than the limit, or that is there no more.

    Attributes:
        worse: before ÷ now for rates, now ÷ before for times: above 1 is worse. None where it is lost.
    """

    variant: str
    concurrency: int
    metric: str
    before: str
    now: str
    worse: float | None


def regressions(old: Comparison, new: Comparison, limit: float) -> list[Regression]:
    """What got worse by more than `limit` (0.05: five per cent), cell by cell; cells of one side only are lost.

    The medians and rates themselves are held against each other: a gate has to say the same for the same files.

    Raises:
        InputError: the old one holds nothing that could be worse now, or is of other prompts or other work.
    """
    before_and_now = [(view, _cell(new.views, view)) for view in old.views if view.problem is None]
    if not any(_values(before) for before, _ in before_and_now):
        raise InputError("the comparison that is to be held against has no valid cell with a TPOT, TTFT, E2E or rate.")
    if differing := _other_work(old, new):
        raise InputError(
            f"the comparison that is to be held against is of other work: {'; '.join(differing)}.",
            hint="Keep the comparison.json of a run with today's prompts and limits, and hold later ones against that.",
        )
    found = [worse for before, now in before_and_now for worse in _of_cell(before, now, limit)]
    lost = {(one.variant, one.concurrency) for one in found if one.metric == "result"}
    for level in old.comparisons:
        now = _cell(new.comparisons, level)
        place = level.variant, level.concurrency
        if level.verdict != "invalid" and now and now.verdict == "invalid" and place not in lost:
            found.append(Regression(*place, "verdict", level.verdict, f"invalid: {now.reasons[0]}", None))
    return found


_Placed = TypeVar("_Placed", CellView, CellResult, LevelComparison)


def _cell(among: Sequence[_Placed], like: _Placed) -> _Placed | None:
    """The one of the same variant at the same concurrency."""
    place = like.variant, like.concurrency
    return next((one for one in among if (one.variant, one.concurrency) == place), None)


def _values(view: CellView) -> dict[str, float]:
    known = {attribute: getattr(view, attribute) for _, attribute in _METRICS}
    return {attribute: bounded.value for attribute, bounded in known.items() if bounded and bounded.value > 0}


def _other_work(old: Comparison, new: Comparison) -> list[str]:
    """Cells that got other prompts then, or were asked for something else."""
    differing = []
    for before in old.cells:
        now = _cell(new.cells, before)
        if now is None:
            continue
        said = [f"{name} was {mine} and is {theirs}" for name, mine, theirs in changed_work(before, now)]
        said += ["other prompts"] if different_prompts(before, now) else []
        differing += [f"{before.variant} at concurrency {before.concurrency}: {', '.join(said)}"] if said else []
    return differing


def _of_cell(before: CellView, now: CellView | None, limit: float) -> list[Regression]:
    place = before.variant, before.concurrency
    if now is None or now.problem is not None:
        said = now.problem if now and now.problem else "not measured"
        return [Regression(*place, "result", "valid", said, None)]
    found, then, today = [], _values(before), _values(now)
    for name, attribute in _METRICS:
        if attribute not in then:
            continue
        old, new = then[attribute], today.get(attribute)
        if new is None:
            found.append(Regression(*place, name, _shown(attribute, old), NOTHING, None))
            continue
        worse = old / new if attribute.endswith("_per_s") else new / old
        if worse > 1 + limit:
            shown = worse if math.isfinite(worse) else None
            found.append(Regression(*place, name, _shown(attribute, old), _shown(attribute, new), shown))
    return found


def table(found: list[Regression], limit: float) -> Table:
    """The regressions as a table."""
    rows = tuple(
        (
            one.variant,
            str(one.concurrency),
            one.metric,
            one.before,
            one.now,
            NOTHING if one.worse is None else change(one.worse),
        )
        for one in found
    )
    heads = ("Variant", "Concurrency", "Metric", "Before", "Now", "Worse by")
    return Table(f"Worse than before by more than {percent(limit)}", heads, rows, frozenset({1, 3, 4, 5}), keys=3)


def _shown(attribute: str, value: float) -> str:
    return rate(value, "tok/s") if attribute.endswith("_per_s") else milliseconds(value)
