"""Reading a config file, and saying what is wrong with one.

What a run could not use is refused before anything is made: with the field's name, what was given and what
is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from eagle_bench.config import Config
from eagle_bench.config_problems import examine, key_shown, lacking
from eagle_bench.errors import InputError
from eagle_bench.placeholders import unfilled
from eagle_bench.units import whole

MOST_VALUES = 10_000


def load(path: Path, *, needs: tuple[str, ...] = ()) -> Config:
    """Read and check a config file. `needs` names optional fields that the caller can't do without.

    Raises:
        InputError: the file is missing, is not YAML, or fields can't be used: all of them are named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read: {error}.") from None
    return parse(text, source=str(path), needs=needs)


def parse(text: str, *, source: str = "config", needs: tuple[str, ...] = (), filled: bool = True) -> Config:
    """Check a config given as YAML text; `source` names it in errors. Unless `filled`, `init`'s placeholders may stand in it.

    Raises:
        InputError: the text is not YAML, or fields can't be used.
    """
    loader = None
    try:
        loader = _Loader(text)
        data = loader.get_single_data()
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        at = f", line {where.line + 1}" if where else ""
        problem = getattr(error, "problem", None) or "it can't be parsed"
        raise InputError(f"{source}{at}: not YAML: {problem}.") from None
    except (ValueError, OverflowError, RecursionError) as error:  # dates, numbers and depths that YAML can't mean
        words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]
        raise InputError(f"{source}: not YAML: {words}.") from None
    finally:
        if loader:
            loader.dispose()
    if not isinstance(data, dict):
        raise InputError(f"{source}: not a config: it must be a mapping of fields, such as `variants:`.")
    if _values_in(data) > MOST_VALUES:
        raise InputError(f"{source}: not a config: it holds more than {whole(MOST_VALUES)} values.")
    return validate(data, source=source, needs=needs, problems=loader.twice, filled=filled)


class _Loader(yaml.SafeLoader):
    """Plain values only. A key that stands there twice is noted: YAML itself would silently take the last."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)  # a list may stand in a key's place
            if name in seen and key.tag != "tag:yaml.org,2002:merge":
                self.twice.append(f"line {key.start_mark.line + 1}: `{key_shown(name)}` stands there twice.")
            seen.add(name)
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


def validate(
    data: dict[str, Any],
    *,
    source: str = "config",
    needs: tuple[str, ...] = (),
    problems: Sequence[str] = (),
    filled: bool = True,
) -> Config:
    """Check a config given as plain values; `problems` are those that its text had already, `filled` is as for `parse`.

    Raises:
        InputError: fields can't be used. Each problem is a line of the message.
    """
    config, found = examine(data)
    said = [*problems, *found, *lacking(data, needs), *(unfilled(data) if filled else ())]
    if config is None or said:
        raise InputError("\n".join(f"{source}: {problem}" for problem in said))
    return config


def require(config: Config, fields: Sequence[str], *, source: str = "config") -> None:
    """Make sure that optional fields have a value, where only the config as a whole told that they are needed.

    Raises:
        InputError: some have none. Each is a line of the message.
    """
    if missing := lacking(config.model_dump(include=set(fields)), fields):
        raise InputError("\n".join(f"{source}: {problem}" for problem in missing))
