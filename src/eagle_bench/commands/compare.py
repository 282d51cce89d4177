"""`eagle-bench compare`: a report from saved results."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eagle_bench.adapters import result_files
from eagle_bench.adapters.result_labels import Label
from eagle_bench.commands import json_output
from eagle_bench.comparison import Comparison, Plan
from eagle_bench.errors import GateFailed, InputError, NoUsableResult
from eagle_bench.fields import MOST_DOLLARS
from eagle_bench.nearest import did_you_mean
from eagle_bench.report.names import COMPARISON, REPORT, SUMMARY
from eagle_bench.results import CellResult
from eagle_bench.units import count, percent

if TYPE_CHECKING:
    from eagle_bench.outcomes import CompareOutcome
    from eagle_bench.regression import Regression


class Share(click.ParamType[float]):
    """A share, given as 5% or 0.05."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = -1.0
        if not 0 <= share < 1:
            self.fail(f"{text!r} is not a share from 0 to below 1, such as 5% or 0.05", param, ctx)
        return share


class Positive(click.FloatRange):
    """A finite number above 0, and up to `most` where there is a limit."""

    def __init__(self, most: float | None = None) -> None:
        super().__init__(min=0, min_open=True, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Folder(click.Path):
    """A folder to write to; an empty name is none, though it would pass for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value).strip():
            self.fail("is empty: name a folder, such as `.`", param, ctx)
        return super().convert(value, param, ctx)


_POSITIVE = Positive()


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--baseline", required=True, metavar="ID", help="The variant that the others are compared with.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="FILE=VARIANT[@CONCURRENCY]",
    help="What a file is of, where neither it nor its name tells.",
)
@click.option(
    "--baseline-again",
    metavar="ID",
    help="A second run of the baseline: tells how far its answers and its speed differ from themselves.",
)
@click.option(
    "--out",
    default="eagle-bench-report",
    show_default=True,
    type=Folder(file_okay=False),
    help="Folder for the report.",
)
@click.option(
    "--against",
    metavar="OLD.json",
    type=click.Path(path_type=Path),
    help="An earlier comparison.json: fail if a metric got worse.",
)
@click.option(
    "--max-regression", type=Share(), default="5%", show_default=True, help="How much worse is still no failure."
)
@click.option(
    "--max-failure-rate", type=Share(), default="2%", show_default=True, help="Above it a cell is out of the verdict."
)
@click.option(
    "--allow-difference",
    is_flag=True,
    help="Judge cells all the same that were asked for different work: token limit, temperature, request body.",
)
@click.option(
    "--price-per-hour",
    type=Positive(MOST_DOLLARS),
    metavar="DOLLARS",
    help="Of one endpoint, for cost per million tokens.",
)
@click.option("--slo-ttft-ms", type=_POSITIVE, metavar="MS", help="Objective for the time to first token.")
@click.option("--slo-tpot-ms", type=_POSITIVE, metavar="MS", help="Objective for the time per output token.")
@json_output.option
def command(
    *,
    files: tuple[Path, ...],
    baseline: str,
    baseline_again: str | None,
    labels: tuple[str, ...],
    out: str,
    against: Path | None,
    max_regression: float,
    max_failure_rate: float,
    allow_difference: bool,
    price_per_hour: float | None,
    slo_ttft_ms: float | None,
    slo_tpot_ms: float | None,
    as_json: bool,
) -> None:
    """Compare saved results and write comparison.json, summary.md and report.html.

    FILE is a cell.json, a JSON file that `vllm bench serve --save-result` wrote (with --save-detailed for
    intervals), or a folder of them.
    """
    from rich.console import Console

    from eagle_bench import regression
    from eagle_bench.adapters.whole_files import write_files
    from eagle_bench.analysis import compare
    from eagle_bench.commands.shown import show_files
    from eagle_bench.report.answer_files import answer_files
    from eagle_bench.report.terminal import print_comparison
    from eagle_bench.runs.gathering import order_of

    if against is not None:
        _keep_reference(against, Path(out))
    cells = result_files.read_cells(files, [Label.parse(label) for label in labels])
    old = result_files.read_comparison(against) if against else None
    plan = plan_of(cells, baseline, baseline_again, order_of(files)).model_copy(
        update={
            "max_failure_rate": max_failure_rate,
            "allow_difference": allow_difference,
            "price_per_hour": price_per_hour,
            "slo_ttft_ms": slo_ttft_ms,
            "slo_tpot_ms": slo_tpot_ms,
        }
    )
    comparison = compare(plan, cells)
    write_files(answer_files(comparison, Path(out)))
    worse = regression.regressions(old, comparison, max_regression) if old else None
    with json_output.json_only(as_json) as tell:
        tell(_outcome(comparison, out, worse))
        print_comparison(comparison, Console())
        show_files(_spelt(out, REPORT), _spelt(out, COMPARISON))
        if all(level.verdict == "invalid" for level in comparison.comparisons):
            raise NoUsableResult(
                "no level has a valid comparison.", hint=f"{_spelt(out, REPORT)} says why, level by level."
            )
        if worse:
            _gate(worse, max_regression)


def _keep_reference(against: Path, out: Path) -> None:
    """Refuse to write over what this answer is to be held against.

    Raises:
        InputError: `against` is a file that `out` gets.
    """
    for written in (out / name for name in (COMPARISON, SUMMARY, REPORT)):
        if against.resolve() == written.resolve() or (
            against.exists() and written.exists() and against.samefile(written)
        ):
            raise InputError(
                f"--against {against}: --out {out} would write over it, and the next run had nothing to be held against.",
                hint="Give another --out.",
            )


def plan_of(cells: list[CellResult], baseline: str, again: str | None = None, order: Sequence[str] = ()) -> Plan:
    """The plan that a set of results stands for: all variants at all levels that any of them has.

    Args:
        order: of variants, as far as it is known; behind them come the others, by name.

    Raises:
        InputError: the baseline or its second run is not among them, or nothing else is.
    """
    variants = tuple(dict.fromkeys(cell.variant for cell in cells))
    if baseline not in variants:
        raise InputError(
            f"--baseline {baseline!r}: the results are of {', '.join(sorted(variants))}.{did_you_mean(baseline, variants)}"
        )
    places = {variant: place for place, variant in enumerate(order)}
    others = tuple(
        sorted(
            (variant for variant in variants if variant != baseline),
            key=lambda variant: (places.get(variant, len(places)), variant),
        )
    )
    if not others:
        raise InputError(f"all results are of {baseline!r}: there is nothing to compare it with.")
    if again is not None and again not in others:
        raise InputError(
            f"--baseline-again {again!r}: no variant beside the baseline; the others are {', '.join(others)}."
            f"{did_you_mean(again, others)}"
        )
    levels = tuple(sorted({cell.concurrency for cell in cells}))
    return Plan(baseline=baseline, variants=(baseline, *others), levels=levels, baseline_again=again)


def _spelt(out: str, name: str) -> str:
    """A file of the answer as the user spelt its folder: a Path would drop a leading "./"."""
    return os.path.join(out, name)  # noqa: PTH118


def _outcome(comparison: Comparison, out: str, worse: list[Regression] | None) -> CompareOutcome:
    from eagle_bench.outcomes import Answer, CompareOutcome, Worse

    return CompareOutcome(
        report=_spelt(out, REPORT),
        summary=_spelt(out, SUMMARY),
        comparison=_spelt(out, COMPARISON),
        answer=Answer.of(comparison),
        worse=None if worse is None else tuple(map(Worse.of, worse)),
    )


def _gate(found: list[Regression], limit: float) -> None:
    """Fail because of what got worse.

    Raises:
        GateFailed: always, with the first of it.
    """
    from rich.console import Console

    from eagle_bench import regression
    from eagle_bench.report.terminal import print_table

    print_table(regression.table(found, limit), Console())
    first = found[0]
    raise GateFailed(
        f"{count(len(found), 'metric')} worse than before by more than {percent(limit)}, "
        f"first {first.metric} of {first.variant} at concurrency {first.concurrency}: "
        f"{first.before} before, {first.now} now."
    )
