"""The answer for people who live in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from eagle_bench.comparison import Comparison
from eagle_bench.plain_text import plain_line
from eagle_bench.report import tables
from eagle_bench.report.findings import grouped
from eagle_bench.report.plan_tables import conclusion
from eagle_bench.report.table import Table
from eagle_bench.run_plan import Check

_WIDE = 125
_GAP = 2  # between columns
_WORDS, _LONGEST = (
    12,
    40,
)  # what a column of words can be narrowed to; what any column can, whatever a variant's name is
_STYLES = {"faster": "green", "slower": "red", "inconclusive": "yellow", "invalid": "magenta"}
_CHECKED = {
    "ok": "green",
    "warning": "bold yellow",
    "refused": "bold red",
    "not checked": "yellow",
    "not needed": "dim",
}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print what was measured, the verdicts, the warnings, and the decisions last, where the eye rests."""
    measured, verdicts = tables.measured(comparison), tables.verdicts(comparison)
    if console.width < _WIDE:
        measured = measured.only("Variant", "Concurrency", "TPOT", "TTFT", "Output", "Acceptance", "Failed")
        measured = replace(measured, caption=measured.caption.replace(tables.PERCENTILES, ""))
        verdicts = verdicts.only("Variant", "Concurrency", "Verdict", "TPOT", "Throughput")
    found = [measured, tables.costs(comparison), tables.objectives(comparison)]
    if comparison.comparisons:
        found.append(verdicts)
    found.append(tables.failures(comparison))
    for table in found:
        if table is not None:
            print_table(table, console)
    for where, text in grouped(comparison):
        console.print(
            Text.assemble(("! ", "yellow"), (plain_line(f"{where}: ") if where else "", "bold"), plain_line(text))
        )
    if comparison.warnings:
        console.print()
    print_decisions(comparison, console)


def print_decisions(comparison: Comparison, console: Console) -> None:
    """Print the answer in words, a sentence for each variant."""
    for decision in comparison.decisions:
        style = {True: "bold green", False: "bold red", None: "bold yellow"}[decision.turn_on]
        console.print(Text(plain_line(decision.text), style=style))


def print_table(table: Table, console: Console) -> None:
    """Print a table; columns that have no room beside the others stand below them, each row with its keys again."""
    console.print(Text(plain_line(table.caption), style="bold"))
    for part in _parts(table, console.width):
        console.print(_drawn(part))
        console.print()


def _parts(table: Table, width: int) -> Iterator[Table]:
    widths = [_width(table, column) + _GAP for column in range(len(table.heads))]
    keys = list(range(table.keys))
    room = width + _GAP - sum(widths[: table.keys])
    places: list[int] = []
    for column in range(table.keys, len(table.heads)):
        if places and sum(widths[place] for place in (*places, column)) > room:
            yield table.columns([*keys, *places])
            places = []
        places.append(column)
    yield table.columns([*keys, *places])


def _width(table: Table, column: int) -> int:
    """What a column takes: numbers all of it, and words at least some, as they can go on in the next line."""
    head = cell_len(plain_line(table.heads[column]))
    widest = max(head, *(cell_len(plain_line(row[column])) for row in table.rows))
    return min(widest, _LONGEST if column in table.numeric else max(_WORDS, min(head, _LONGEST)))


def _drawn(table: Table) -> RichTable:
    rich = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column, head in enumerate(table.heads):
        rich.add_column(
            Text(plain_line(head)),
            justify="right" if column in table.numeric else "left",
            overflow="fold",
            no_wrap=column in table.numeric and _width(table, column) < _LONGEST,
            min_width=_width(table, column),
        )
    grouped = len({row[0] for row in table.rows}) < len(table.rows)
    last = None
    for row in table.rows:
        if grouped and last is not None and row[0] != last:
            rich.add_section()
        last = row[0]
        rich.add_row(*(Text(plain_line(cell), style=_STYLES.get(cell, "")) for cell in row))
    return rich


def print_checks(checks: Sequence[Check], console: Console) -> None:
    """What was checked before a run, one line or more each, and what all of it means."""
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    for overflow in ("ignore", "ignore", "fold"):
        grid.add_column(overflow=overflow, no_wrap=overflow == "ignore")
    for check in checks:
        hint = f" {check.hint}" if check.hint and check.status != "ok" else ""
        status = Text(check.status, style=_CHECKED[check.status])
        grid.add_row(status, Text(check.name, style="bold"), Text(plain_line(check.text + hint)))
    console.print(grid)
    console.print()
    found = {check.status for check in checks}
    style = next((_CHECKED[status] for status in ("refused", "warning", "not checked") if status in found), "green")
    console.print(Text(plain_line(conclusion(checks)), style=style))
