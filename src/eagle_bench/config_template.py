"""A config as a file to begin with: what is set, each field explained, and what could be set."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from eagle_bench.config import Config, Slo, Workload
from eagle_bench.fields import Section, section_in

WIDTH = 100
OFFERED: tuple[type[Section], ...] = (Config, Workload, Slo)  # of the others, only what is set is shown


def render(values: Mapping[str, Any]) -> str:
    """A config file with these fields set, in the order and with the words of their definitions.

    A field that is not set stands there as `#field: value`, with what it is anyway, or with an example.
    """
    return "\n".join(_section(Config, values)).strip() + "\n"


def _section(model: type[Section], values: Mapping[str, Any]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = section_in(field.annotation)
        if name in values:
            yield from ("", *_comment(field))
            yield from _set(name, values[name], inner)
        elif model in OFFERED and field.examples:
            yield from ("", *_comment(field), f"#{name}: {_flow(_offered(field))}")


def _set(name: str, value: Any, inner: type[Section] | None) -> Iterator[str]:
    if inner is None:
        yield from _plain(name, value)
        return
    yield f"{name}:"
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        lines = (
            list(_section(inner, item)) if number == 0 else [line for key in item for line in _plain(key, item[key])]
        )
        lines = [line for line in lines if line]
        if isinstance(value, list):
            first = next(index for index, line in enumerate(lines) if not line.startswith("#"))
            marks = ["", "- ", "  "]
            lines = [f"{marks[(index >= first) + (index > first)]}{line}" for index, line in enumerate(lines)]
        yield from (f"  {line}" for line in lines)


def _plain(name: str, value: Any) -> Iterator[str]:
    line = f"{name}: {_flow(value)}"
    if len(line) <= WIDTH or not isinstance(value, list):
        yield line
        return
    yield f"{name}:"
    yield from (f"  - {_flow(item)}" for item in value)


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip().removesuffix("\n...")


def _offered(field: FieldInfo) -> Any:
    """What stands there anyway, or an example where nothing does."""
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    value = default if default not in (None, (), {}) else (field.examples or [None])[0]
    return list(value) if isinstance(value, tuple) else value


def _comment(field: FieldInfo) -> Iterator[str]:
    yield from textwrap.wrap(field.description or "", WIDTH, initial_indent="# ", subsequent_indent="# ")
