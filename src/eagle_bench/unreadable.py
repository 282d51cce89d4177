"""Why what was written can't be read, in the middle of a sentence."""

from __future__ import annotations

import json

from pydantic import ValidationError

from eagle_bench.config_problems import TYPES

_OF_A_VALIDATOR = "Value error, "
_WORDS = {**TYPES, "extra_forbidden": "it is not a known key"}


def reason(error: Exception) -> str:
    """The first thing that is wrong, with its field or line; it has no full stop."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        words = _WORDS.get(first["type"], first["msg"].removeprefix(_OF_A_VALIDATOR))
        where = ".".join(str(part) for part in first["loc"])
        return f"`{where}`: {words[0].lower()}{words[1:]}" if where else f"{words[0].lower()}{words[1:]}"
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno} is not JSON: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError):
        return f"`{error.args[0]}` is missing"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
