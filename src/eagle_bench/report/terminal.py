"""The answer for people who live in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from eagle_bench.comparison import Comparison
from eagle_bench.plain_text import plain_line
from eagle_bench.report import tables
from eagle_bench.report.markdown import grouped

_WIDE = 125
_STYLES = {"faster": "green", "slower": "red", "inconclusive": "yellow", "invalid": "magenta"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print what was measured, the verdicts, the warnings, and the decisions last, where the eye rests."""
    measured, verdicts = tables.measured(comparison), tables.verdicts(comparison)
    if console.width < _WIDE:
        measured = measured.only("Variant", "Concurrency", "TPOT", "TTFT", "Output", "Acceptance", "Failed")
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
    for decision in comparison.decisions:
        style = {True: "bold green", False: "bold red", None: "bold yellow"}[decision.turn_on]
        console.print(Text(plain_line(decision.text), style=style))


def print_table(table: tables.Table, console: Console) -> None:
    rich = RichTable(
        title=Text(plain_line(table.caption), style="bold"), title_justify="left", header_style="bold", show_edge=False
    )
    for column, head in enumerate(table.heads):
        rich.add_column(Text(plain_line(head)), justify="right" if column in table.numeric else "left")
    last = None
    for row in table.rows:
        if last is not None and row[0] != last:
            rich.add_section()
        last = row[0]
        rich.add_row(*(Text(plain_line(cell), style=_STYLES.get(cell, "")) for cell in row))
    console.print(rich)
    console.print()
