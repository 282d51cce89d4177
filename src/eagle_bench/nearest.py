"""What a mistyped word was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one; None where none is like it. Case is no difference."""
    by_fold = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), by_fold, n=1)
    return by_fold[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean …?` to follow a sentence, or nothing where no known word is near."""
    meant = nearest(word, known)
    return f" Did you mean `{meant}`?" if meant else ""
