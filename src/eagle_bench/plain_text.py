"""Foreign text made harmless: what a terminal or a browser would act on is shown instead of sent."""

from __future__ import annotations

import re
from typing import Any

# C0 but tab and newline, DEL, C1; marks that turn the direction of text around; halves of a surrogate pair.
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    r"""Text with each control character as its escape: ESC becomes the four characters `\x1b`."""
    return _ACTING.sub(_escape, text)


def plain_line(text: str) -> str:
    """`plain`, and no line of its own for what stands behind a line break."""
    return plain(text).replace("\n", r"\n").replace("\t", r"\t")


def plain_if_text(value: Any) -> Any:
    """`plain` for a value that a template prints; markup that the program made itself stays as it is."""
    return plain(value) if type(value) is str else value


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
