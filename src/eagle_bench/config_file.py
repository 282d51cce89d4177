"""Reading a config file, and saying what is wrong with one.

What a run could not use is refused before anything is made: with the field's name, what was given and what
is allowed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from eagle_bench.config import SECRET_NAME, Config, Section
from eagle_bench.errors import InputError


def load(path: Path) -> Config:
    """Read and check a config file.

    Raises:
        InputError: the file is missing, is not YAML, or a field can't be used.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read: {error}.") from None
    return parse(text, source=str(path))


def parse(text: str, *, source: str = "config") -> Config:
    """Check a config given as YAML text; `source` names it in errors.

    Raises:
        InputError: the text is not YAML, or a field can't be used.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        at = f", line {where.line + 1}" if where else ""
        problem = getattr(error, "problem", None) or "it can't be parsed"
        raise InputError(f"{source}{at}: not YAML: {problem}.") from None
    if not isinstance(data, dict):
        raise InputError(f"{source}: not a config: it must be a mapping of fields, such as `variants:`.")
    return validate(data, source=source)


def validate(data: dict[str, Any], *, source: str = "config") -> Config:
    """Check a config given as plain values.

    Raises:
        InputError: a field can't be used.
    """
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        items = error.errors()
        deeper = {item["loc"][:-1] for item in items}
        # A bad item makes its list look empty too: say the first only.
        problems = [_sentence(item) for item in items if not (item["type"] == "too_short" and item["loc"] in deeper)]
        raise InputError("\n".join(f"{source}: {problem}" for problem in problems)) from None


def _sentence(item: Any) -> str:
    """One pydantic error as: field, what is wrong, what was given, what is allowed."""
    field = _field(item["loc"])
    kind, context, given = item["type"], item.get("ctx", {}), item["input"]
    if kind == "extra_forbidden":
        section, known = _known_keys(item["loc"][:-1])
        key = str(item["loc"][-1])
        near = difflib.get_close_matches(key, known, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else f" {section} takes: {', '.join(known)}."
        return f"`{field}` is not a known key.{hint}"
    if kind == "missing":
        return f"`{field}` is missing."
    if kind == "value_error":
        subject = f"`{field}` " if field else ""
        message = str(context["error"])
        shown = f": {given!r} was given" if not isinstance(given, (dict, list, tuple, BaseModel)) else ""
        return f"{subject}{message}{shown}."
    if kind == "too_short":
        return f"`{field}` is empty: it needs at least {context['min_length']}."
    if kind == "string_pattern_mismatch":
        what = _description(item["loc"])
        if context["pattern"] == SECRET_NAME:  # what was given may be the secret itself: never repeat it
            return f"`{field}` must be a Secret Manager resource name, projects/…/secrets/…/versions/…, not the secret."
        return f"`{field}`: {given!r} can't be used: {what or 'it must match ' + context['pattern']}."
    return f"`{field}`: {given!r} can't be used: {item['msg'][0].lower()}{item['msg'][1:]}."


def _field(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _sections(loc: tuple[int | str, ...]) -> Iterator[tuple[type[Section], str]]:
    """The models along a location, each with the field that leads on from it."""
    model: type[Section] | None = Config
    for part in loc:
        if isinstance(part, int):
            continue
        if model is None or part not in model.model_fields:
            return
        yield model, part
        model = _model_in(model.model_fields[part].annotation)


def _model_in(annotation: Any) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found:
            return found
    return None


def _known_keys(loc: tuple[int | str, ...]) -> tuple[str, list[str]]:
    steps = list(_sections(loc))
    model: type[Section] | None = Config
    if steps:
        parent, name = steps[-1]
        model = _model_in(parent.model_fields[name].annotation)
    assert model is not None
    return (f"`{_field(loc)}`" if loc else "a config"), list(model.model_fields)


def _description(loc: tuple[int | str, ...]) -> str | None:
    steps = list(_sections(loc))
    if not steps:
        return None
    model, name = steps[-1]
    return model.model_fields[name].description
