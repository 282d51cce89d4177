"""A gate for builds: is any cell worse than it was, by more than a limit?"""

from __future__ import annotations

from dataclasses import dataclass

from eagle_bench.comparison import Bounded, CellView, Comparison
from eagle_bench.report.tables import Table
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
    """
    now = {(view.variant, view.concurrency): view for view in new.views}
    found = []
    for before in old.views:
        if before.problem is None:
            found += _of_cell(before, now.get((before.variant, before.concurrency)), limit)
    return found


def _of_cell(before: CellView, now: CellView | None, limit: float) -> list[Regression]:
    place = before.variant, before.concurrency
    if now is None or now.problem is not None:
        said = now.problem if now and now.problem else "not measured"
        return [Regression(*place, "result", "valid", said, None)]
    found = []
    for name, attribute in _METRICS:
        old: Bounded | None = getattr(before, attribute)
        new: Bounded | None = getattr(now, attribute)
        if old is None or not old.value:
            continue
        if new is None or not new.value:
            found.append(Regression(*place, name, _shown(attribute, old), NOTHING, None))
            continue
        worse = old.value / new.value if attribute.endswith("_per_s") else new.value / old.value
        if worse > 1 + limit:
            found.append(Regression(*place, name, _shown(attribute, old), _shown(attribute, new), worse))
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
    return Table(f"Worse than before by more than {percent(limit)}", heads, rows, frozenset({1, 3, 4, 5}))


def _shown(attribute: str, bounded: Bounded) -> str:
    return rate(bounded.value, "tok/s") if attribute.endswith("_per_s") else milliseconds(bounded.value)
