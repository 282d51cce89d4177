"""The pages of docs/reference, made from the code. `make golden` writes them; a test fails when they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
MADE = "<!-- Made from the code by `make golden`: change it there. -->\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; bars and line breaks in cells are made harmless."""
    heads = list(heads)
    lines = [heads, [":--"] * len(heads), *([_cell(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    return f"`{text}`"


def sentence(text: str) -> str:
    """First letter large, a full stop at the end."""
    text = text.strip()
    first = text.partition(" ")[0]
    text = text if "/" in first or ":" in first else f"{text[:1].upper()}{text[1:]}"
    return f"{text}{'' if text.endswith(('.', '!', '?', ':')) else '.'}" if text else ""


def cheap_pages() -> dict[str, Callable[[], str]]:
    """Pages that need neither kfp nor a network, by file name."""
    from reference_pages import codes, command_line, config, results

    pages: dict[str, Callable[[], str]] = {
        "command-line.md": command_line.page,
        "config.md": config.page,
        "results.md": results.page,
        "codes.md": codes.page,
    }
    return pages | results.schemas() | results.examples()
