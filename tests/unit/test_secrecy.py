"""A secret is hidden in whatever spelling a server repeats it."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eagle_bench.secrecy import hide

SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda secret: secret,
    lambda secret: json.dumps(secret)[1:-1],
    lambda secret: json.dumps(json.dumps(secret)[1:-1])[1:-1],
    lambda secret: json.dumps(secret)[1:-1].replace("/", r"\/"),
    lambda secret: "".join(s if s.isalnum() or s in "-._" else f"\\u00{ord(s):02X}" for s in secret),
    lambda secret: repr(secret.encode())[2:-1],
    lambda secret: quote(secret, safe=""),
    lambda secret: quote(quote(secret, safe=""), safe=""),
)
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60)


@given(KEYS, st.sampled_from(SPELLINGS))
@example("0000000%", SPELLINGS[-2])
@example("0000000%", SPELLINGS[-1])
def test_every_spelling_is_hidden_whole(secret: str, spelled: Callable[[str], str]) -> None:
    assert hide(f"a {spelled(secret)} b", secret) == "a [token] b"


@pytest.mark.parametrize(("text", "left"), [("key sk-12345678", "key [token]"), ("key sk-1", "key sk-1")])
def test_a_beginning_at_the_end_is_hidden_where_it_says_something(text: str, left: str) -> None:
    assert hide(text, "sk-123456789abc") == left


def test_other_text_stays() -> None:
    assert hide("nothing \\/ here %2F", "sk-abc/def") == "nothing \\/ here %2F"
    assert hide("anything", None) == "anything"
