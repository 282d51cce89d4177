"""The tests that tests/README.md names are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAMED = re.findall(r"`(\w+/test_\w+\.py)::(test_\w+)`", (TESTS / "README.md").read_text(encoding="utf-8"))
INPUTS = 27


def test_every_test_that_is_named_is_there() -> None:
    assert NAMED
    for file, name in NAMED:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"


def test_every_input_has_one() -> None:
    table = (TESTS / "README.md").read_text(encoding="utf-8").partition("## Inputs that broke others")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == INPUTS
    assert all("::test_" in row for row in rows)
