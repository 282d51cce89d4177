"""What a mistyped word was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LEAST_PART = 3  # characters; fewer stand in many words by chance


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one; None where none is like it. Case is no difference.

    One that begins with it, or else holds it, goes first: a part of a name was given, and similarity counts letters.
    """
    by_fold = {name.casefold(): name for name in known}
    part = word.casefold()
    holding = [name for name in by_fold if part in name] if len(part) >= LEAST_PART else []
    if holding:
        return by_fold[min(holding, key=lambda name: (not name.startswith(part), len(name)))]
    found = difflib.get_close_matches(part, by_fold, n=1)
    return by_fold[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean …?` to follow a sentence, or nothing where no known word is near."""
    meant = nearest(word, known)
    return f" Did you mean `{meant}`?" if meant else ""
