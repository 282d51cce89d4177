"""The three files of an answer: for machines, in short, and for a browser."""

from __future__ import annotations

from pathlib import Path

from eagle_bench.comparison import Comparison
from eagle_bench.report import html, markdown
from eagle_bench.report.names import COMPARISON, REPORT, SUMMARY


def answer_files(answer: Comparison, folder: Path) -> dict[Path, str]:
    """What each of them holds, by where it is to stand."""
    return {
        folder / COMPARISON: answer.model_dump_json(indent=1) + "\n",
        folder / SUMMARY: markdown.render(answer),
        folder / REPORT: html.render(answer),
    }
