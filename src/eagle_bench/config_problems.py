"""Everything that is wrong with a config, in sentences, all at once.

A wrong value hides what else is wrong: fields that contradict each other are looked at only when each can be used
by itself. So each wrong value gets a stand-in and the config is checked again, until nothing new is found. Nothing
is said that follows from a stand-in.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from eagle_bench.config import Config
from eagle_bench.fields import CONTRADICTION, Section, section_in
from eagle_bench.nearest import nearest
from eagle_bench.secrecy import SECRET_NAME

Place = tuple[int | str, ...]

MOST_PASSES = 10
LONGEST_SHOWN = 60
LONGEST_KEY = 30
HIDDEN = {"env", "args", "command", "hf_token_secret", "api_key_secret"}
SAID_ELSEWHERE = {  # by `bench`, vLLM and OpenAI's clients
    "max_tokens": "max_output_tokens",
    "num_prompts": "prompts_per_level",
    "base_url": "url",
    "endpoint_url": "url",
}
TYPES = {
    "tuple_type": "it must be a list",
    "dict_type": "it must be a mapping",
    "model_type": "it must be a mapping of fields",
    "int_type": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "string_type": "it must be a string",
}
_GONE = object()


def examine(data: dict[str, Any]) -> tuple[Config | None, list[str]]:
    """The config that plain values mean, or else a sentence for each thing that is wrong with them."""
    sentences: dict[str, None] = {}
    doubts: set[Place] = set()
    for _ in range(MOST_PASSES):
        try:
            config = Config.model_validate(data)
        except ValidationError as error:
            found = error.errors()
        else:
            return (None if sentences else config), list(sentences)
        meant = {place for item in found if (place := _meant(item))}
        # What contradicts itself was right by itself, so it is doubtful from the next pass on only.
        doubts |= meant | {item["loc"] for item in found if item["type"] not in {CONTRADICTION, "extra_forbidden"}}
        sentences |= dict.fromkeys(_sentence(item) for item in found if not _follows(item, meant, doubts))
        mended = _mended(data, found)
        if mended == data:
            break
        data = mended
        doubts |= {place for item in found if item["type"] == CONTRADICTION for place in _looked_at(item)}
    return None, list(sentences)


def _meant(item: ErrorDetails) -> Place | None:
    """The field that an unknown key was probably meant to be."""
    if item["type"] != "extra_forbidden":
        return None
    *section, key = item["loc"]
    name = _nearest_key(str(key), _known_keys(tuple(section))[1])
    return (*section, name) if name else None


def _looked_at(item: ErrorDetails) -> list[Place]:
    return [(*item["loc"], *field.split(".")) for field in item["ctx"]["fields"]]


def _follows(item: ErrorDetails, meant: set[Place], doubts: set[Place]) -> bool:
    """Whether a finding is, or may be, only the consequence of another one."""
    place, kind = item["loc"], item["type"]
    if kind == "missing":
        return place in meant
    inside = [doubt[len(place) :] for doubt in doubts if doubt[: len(place)] == place]
    if kind == "too_short":
        return any(inside)  # a bad item makes its list look empty, too
    if kind != CONTRADICTION:
        return False
    names = [tuple(part for part in doubt if isinstance(part, str)) for doubt in inside]
    return any(_overlap(tuple(field.split(".")), name) for field in item["ctx"]["fields"] for name in names)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one of two dotted names leads to the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _mended(data: dict[str, Any], found: Iterable[ErrorDetails]) -> dict[str, Any]:
    """The values with a stand-in for each that is wrong; unchanged where none can be given."""
    mended = copy.deepcopy(data)
    for item in found:
        place, kind = item["loc"], item["type"]
        if kind == "extra_forbidden":
            _put(mended, place, _GONE)
        elif kind != CONTRADICTION:
            _put(mended, place, _stand_in(place))
        elif place:
            for field in _looked_at(item):
                _put(mended, field, _stand_in(field))
    whole: dict[str, Any] = _without_gone(mended)
    return whole


def _put(data: Any, place: Place, value: object) -> None:
    try:
        for part in place[:-1]:
            data = data[part]
        data[place[-1]] = value
    except (KeyError, IndexError, TypeError):
        return


def _without_gone(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_gone(value) for key, value in data.items() if value is not _GONE}
    if isinstance(data, list):
        return [_without_gone(value) for value in data if value is not _GONE]
    return data


def _stand_in(place: Place) -> Any:
    """A value that is right by itself: the default, or else the field's own example."""
    steps = list(_sections(place))
    if not steps or (isinstance(place[-1], str) and place[-1] != steps[-1][1]):
        return _GONE  # a value in a mapping of the person's own
    model, name = steps[-1]
    field = model.model_fields[name]
    inner = section_in(field.annotation)
    if isinstance(place[-1], int):
        return _example(inner) if inner else _GONE
    if not field.is_required():
        return _GONE
    if inner:
        return [_example(inner)]
    return (field.examples or [None])[0]


def _example(model: type[Section]) -> dict[str, Any]:
    return {name: (field.examples or [None])[0] for name, field in model.model_fields.items() if field.is_required()}


def _sentence(item: ErrorDetails) -> str:
    """One pydantic error as: field, what is wrong, what was given, what is allowed."""
    field = field_shown(item["loc"])
    kind, context = item["type"], item.get("ctx", {})
    given = _shown(item["loc"], item["input"])
    if kind == CONTRADICTION:
        joined = ": " if str(context["text"]).startswith("`") else " "
        return f"`{field}`{joined}{context['text']}" if field else str(context["text"])
    if kind == "extra_forbidden":
        section, known = _known_keys(item["loc"][:-1])
        near = _nearest_key(str(item["loc"][-1]), known)
        hint = f" Did you mean `{near}`?" if near else ""
        return f"`{field}` is not a known key.{hint} {section} takes: {', '.join(known)}."
    if kind == "missing":
        return f"`{field}` is missing."
    if kind == "value_error":
        subject = f"`{field}` " if field else ""
        # What is wrong in a list was said of its item.
        return f"{subject}{context['error']}{f': {given} was given' if given and given != 'a list' else ''}."
    if kind == "too_short":
        return f"`{field}` is empty: it needs at least {context['min_length']}."
    if kind == "string_pattern_mismatch" and context["pattern"] == SECRET_NAME:
        return f"`{field}` must be a Secret Manager resource name, projects/…/secrets/…/versions/…, not the secret."
    what = _description(item["loc"]) if kind == "string_pattern_mismatch" else TYPES.get(kind)
    words = what or f"{item['msg'][0].lower()}{item['msg'][1:]}"
    return f"`{field}`: {given} can't be used: {words}." if given else f"`{field}` can't be used: {words}."


def _nearest_key(key: str, known: Iterable[str]) -> str | None:
    return nearest(SAID_ELSEWHERE.get(key, key), known)


def _shown(loc: Place, given: object) -> str:
    """A value as an error repeats it: short, and never one that may hold a secret."""
    if HIDDEN & {part for part in loc if isinstance(part, str)}:
        return ""
    if isinstance(given, (dict, list, tuple, BaseModel)):
        return "a list" if isinstance(given, (list, tuple)) else ""
    text = str(given)
    if "@" in text or ("?" in text or "#" in text if "://" in text else loc[-1:] == ("url",)):
        return ""  # a password or a key in an address, or a key in the place of one
    text = repr(given)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def field_shown(loc: Place) -> str:
    """A location as people write it."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        text += f".{key_shown(part)}" if text else key_shown(part)
    return text


def key_shown(key: str) -> str:
    """A key as errors repeat it. One too long to be a key is cut: it may be a secret in the wrong place."""
    return key if len(key) <= LONGEST_KEY else f"{key[:4]}…"


def _sections(loc: Place) -> Iterator[tuple[type[Section], str]]:
    """The models along a location, each with the field that leads on from it."""
    model: type[Section] | None = Config
    for part in loc:
        if isinstance(part, int):
            continue
        if model is None or part not in model.model_fields:
            return
        yield model, part
        model = section_in(model.model_fields[part].annotation)


def _known_keys(loc: Place) -> tuple[str, list[str]]:
    steps = list(_sections(loc))
    model: type[Section] | None = Config
    if steps:
        parent, name = steps[-1]
        model = section_in(parent.model_fields[name].annotation)
    assert model is not None
    return (f"`{field_shown(loc)}`" if loc else "A config"), list(model.model_fields)


def lacking(values: Mapping[str, Any], fields: Iterable[str]) -> list[str]:
    """A sentence for each of these optional fields that has no value, in the words of its definition."""
    return [
        f"`{field}` is missing: {Config.model_fields[field].description}."
        for field in fields
        if values.get(field) is None
    ]


def _description(loc: Place) -> str | None:
    steps = list(_sections(loc))
    if not steps:
        return None
    model, name = steps[-1]
    return model.model_fields[name].description
