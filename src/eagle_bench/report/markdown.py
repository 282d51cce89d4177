"""`summary.md`: the answer where Markdown is shown, such as the console of Vertex AI Pipelines."""

from __future__ import annotations

import re

from eagle_bench.comparison import Comparison
from eagle_bench.plain_text import plain
from eagle_bench.report import tables
from eagle_bench.report.findings import CODE, grouped
from eagle_bench.report.table import Table

# Also where a reader of Markdown takes code less strictly than CommonMark.
_CODE = re.compile(r"[\w./=,:-][\w ./=,:-]*")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!])")


def render(comparison: Comparison) -> str:
    """The decisions, the verdicts, what was measured, and what makes it suspect."""
    parts = [f"# Does speculative decoding pay? {escape(' · '.join(comparison.variants))}"]
    parts += [f"**{sentence(decision.text)}**" for decision in comparison.decisions]
    if comparison.decisions:
        parts.append(_table(tables.verdicts(comparison)))
    for table in (
        tables.measured(comparison),
        tables.costs(comparison),
        tables.objectives(comparison),
        tables.answers(comparison),
        tables.failures(comparison),
    ):
        if table is not None:
            parts += [f"## {escape(table.caption)}", _table(table)]
    if comparison.warnings:
        parts += ["## What to check", "\n".join(f"- {_warning(w)}" for w in grouped(comparison))]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text as Markdown shows it, with nothing in it that Markdown or HTML would act on."""
    return _SPECIAL.sub(r"\\\1", plain(text)).replace("\\<", "&lt;").replace("\\&", "&amp;").replace("\n", " ")


def sentence(text: str) -> str:
    """Text outside a table: a bar is no column there, and what stands in backticks is code, where that is safe."""
    parts = CODE.split(text)
    return "".join(_code(part) if place % 2 else escape(part).replace(r"\|", "|") for place, part in enumerate(parts))


def _code(text: str) -> str:
    return f"`{text}`" if _CODE.fullmatch(text) else escape(f"`{text}`")


def _warning(warning: tuple[str, str]) -> str:
    where, text = warning
    return f"{escape(where)}: {sentence(text)}" if where else sentence(text)


def _table(table: Table) -> str:
    rule = ["--:" if column in table.numeric else ":--" for column in range(len(table.heads))]
    lines = [list(map(escape, table.heads)), rule, *(list(map(escape, row)) for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
