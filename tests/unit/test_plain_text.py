"""Foreign text: what acts is shown, all else stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench.plain_text import plain, plain_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;pwn\x07\x1b[31m", r"\x1b]0;pwn\x07\x1b[31m"),
        ("a\rb", r"a\x0db"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        ("two\nlines\tand 模型 ✓", "two\nlines\tand 模型 ✓"),
    ],
)
def test_controls_are_shown(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text(st.characters()))
def test_nothing_left_acts(text: str) -> None:
    shown = plain(text)
    shown.encode()
    assert all(letter in "\t\n" or not (ord(letter) < 32 or 127 <= ord(letter) < 160) for letter in shown)
    assert plain(shown) == shown


def test_a_line_stays_one() -> None:
    assert plain_line("eagle\nTurn on\tit\x1b") == r"eagle\nTurn on\tit\x1b"
