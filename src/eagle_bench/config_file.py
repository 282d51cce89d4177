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

MOST_VALUES = 10_000
LONGEST_SHOWN = 60
LONGEST_KEY = 30
HIDDEN = {"env", "args", "command", "hf_token_secret", "api_key_secret"}
SAID_ELSEWHERE = {"max_tokens": "max_output_tokens", "num_prompts": "prompts_per_level"}  # by `bench` and vLLM
TYPES = {
    "tuple_type": "it must be a list",
    "dict_type": "it must be a mapping",
    "model_type": "it must be a mapping of fields",
    "int_type": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "string_type": "it must be a string",
}


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
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader, made stricter)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        at = f", line {where.line + 1}" if where else ""
        problem = getattr(error, "problem", None) or "it can't be parsed"
        raise InputError(f"{source}{at}: not YAML: {problem}.") from None
    except (ValueError, OverflowError, RecursionError) as error:  # dates, numbers and depths that YAML can't mean
        words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]
        raise InputError(f"{source}: not YAML: {words}.") from None
    if not isinstance(data, dict):
        raise InputError(f"{source}: not a config: it must be a mapping of fields, such as `variants:`.")
    if _values_in(data) > MOST_VALUES:
        raise InputError(f"{source}: not a config: it holds more than {MOST_VALUES:,} values.")
    return validate(data, source=source)


class _Loader(yaml.SafeLoader):
    """Plain values only, and no key twice: YAML itself would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "a key stands there twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _values_in(data: Any) -> int:
    """Values in a document, aliases counted each time; counting ends above the limit."""
    waiting, found = [data], 0
    while waiting and found <= MOST_VALUES:
        value = waiting.pop()
        found += 1
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def validate(data: dict[str, Any], *, source: str = "config") -> Config:
    """Check a config given as plain values.

    Raises:
        InputError: a field can't be used.
    """
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        items = error.errors()
        # A bad item makes its list look empty too: say the first only.
        lists = {item["loc"][:depth] for item in items for depth in range(len(item["loc"]))}
        problems = [_sentence(item) for item in items if not (item["type"] == "too_short" and item["loc"] in lists)]
        raise InputError("\n".join(f"{source}: {problem}" for problem in problems)) from None


def _sentence(item: Any) -> str:
    """One pydantic error as: field, what is wrong, what was given, what is allowed."""
    field = _field(item["loc"])
    kind, context = item["type"], item.get("ctx", {})
    given = _shown(item["loc"], item["input"])
    if kind == "extra_forbidden":
        section, known = _known_keys(item["loc"][:-1])
        key = str(item["loc"][-1])
        near = difflib.get_close_matches(SAID_ELSEWHERE.get(key, key), known, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return f"`{field}` is not a known key.{hint} {section} takes: {', '.join(known)}."
    if kind == "missing":
        return f"`{field}` is missing."
    if kind == "value_error":
        subject = f"`{field}` " if field else ""
        return f"{subject}{context['error']}{f': {given} was given' if given else ''}."
    if kind == "too_short":
        return f"`{field}` is empty: it needs at least {context['min_length']}."
    if kind == "string_pattern_mismatch" and context["pattern"] == SECRET_NAME:
        return f"`{field}` must be a Secret Manager resource name, projects/…/secrets/…/versions/…, not the secret."
    what = _description(item["loc"]) if kind == "string_pattern_mismatch" else TYPES.get(kind)
    words = what or f"{item['msg'][0].lower()}{item['msg'][1:]}"
    return f"`{field}`: {given} can't be used: {words}." if given else f"`{field}` can't be used: {words}."


def _shown(loc: tuple[int | str, ...], given: object) -> str:
    """A value as an error repeats it: short, and never one that may hold a secret."""
    if HIDDEN & {part for part in loc if isinstance(part, str)}:
        return ""
    if isinstance(given, (dict, list, tuple, BaseModel)):
        return "a list" if isinstance(given, (list, tuple)) else ""
    if "@" in str(given) or (loc[-1:] == ("url",) and "://" not in str(given)):
        return ""  # a password in an address, or a key in the place of one
    text = repr(given)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _field(loc: tuple[int | str, ...]) -> str:
    """A location as people write it. A key too long to be one is cut: it may be a secret in the wrong place."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        key = part if len(part) <= LONGEST_KEY else f"{part[:4]}…"
        text += f".{key}" if text else key
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
