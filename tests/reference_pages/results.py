"""The files of results: every key, JSON Schemas, and examples that are valid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from eagle_bench import outcomes
from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, Plan
from eagle_bench.results import CellResult
from eagle_bench.schemas import MODELS, schema
from reference_pages import MADE, code, sentence, table
from simulated_cells import BASELINE, EAGLE, cell

INTRODUCTION = """# The result files

`cell.json` is one variant at one concurrency, request by request. `comparison.json` is the whole answer; `report.html` and
`summary.md` are made from it alone.

- A missing value is `null`, never 0. Times end in `_ms` or `_s`, rates are per second, shares are between 0 and 1.
- A speed-up is baseline ÷ variant for times and variant ÷ baseline for rates: above 1 is better, always.
- `schema_version` changes when a key changes its meaning or goes away. New keys may come at any time: don't refuse them.

| file | JSON Schema | example (simulated measurements, requests cut short) |
| :-- | :-- | :-- |
| `cell.json` | [cell.schema.json](schemas/cell.schema.json) | [cell.json](examples/cell.json) |
| `comparison.json` | [comparison.schema.json](schemas/comparison.schema.json) | [comparison.json](examples/comparison.json) |

Check a file, or print a schema for a validator of your own:

```sh
.venv/bin/eagle-bench validate docs/reference/examples/cell.json docs/reference/examples/comparison.json
.venv/bin/eagle-bench validate --schema cell
```
"""
JSON_OUTPUT = """
## What `--json` prints

With `--json`, a command prints one JSON object on standard output, and everything else on standard error. The exit status
is the same; the object is there also when a gate failed or no result can be used.
"""


def page() -> str:
    seen: set[type[BaseModel]] = set()
    parts = [MADE, INTRODUCTION]
    for title, model in (("cell.json", CellResult), ("comparison.json", Comparison)):
        parts += _model(title, model, seen)
    parts.append(JSON_OUTPUT)
    for model in dict.fromkeys(outcomes.PRINTED.values()):
        commands = [
            f"eagle-bench {command} --json" for command, printed in outcomes.PRINTED.items() if printed is model
        ]
        parts += _model(" and ".join(commands), model, seen)
    return "".join(parts)


def schemas() -> dict[str, Callable[[], str]]:
    return {f"schemas/{name}.schema.json": lambda name=name: _json(schema(name)) for name in MODELS}


def examples() -> dict[str, Callable[[], str]]:
    return {"examples/cell.json": _cell_example, "examples/comparison.json": _comparison_example}


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _cells() -> list[CellResult]:
    made = (("baseline", BASELINE), ("eagle3", EAGLE))
    return [CellResult.model_validate(cell(name, 2, engine, prompts=60)) for name, engine in made]


def _short(result: CellResult) -> CellResult:
    return result.model_copy(update={"requests": result.requests[:2]})


def _cell_example() -> str:
    return _json(_short(_cells()[1]).model_dump(mode="json"))


def _comparison_example() -> str:
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(2,))
    answer = compare(plan, _cells())
    return _json(answer.model_copy(update={"cells": tuple(map(_short, answer.cells))}).model_dump(mode="json"))


def _model(title: str, model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    """A table of a model's keys, then those of the models in it that had none yet."""
    seen.add(model)
    rows, inner = [], []
    for name, field in model.model_fields.items():
        found = [part for part in _parts(field.annotation) if part not in seen]
        inner += [part for part in found if part not in inner]
        rows.append([code(name), _type(field.annotation), sentence(field.description or "")])
    about = " ".join((model.__doc__ or "").split())
    yield f"\n## {title}\n\n{about}\n\n{table(['key', 'type', 'what it is'], rows)}"
    for part in inner:
        if part not in seen:
            yield from _model(part.__name__, part, seen)


def _parts(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


PLACES = {CellResult: "celljson", Comparison: "comparisonjson"}
NAMES = {datetime: "string", str: "string", int: "integer", float: "number", bool: "true or false", type(None): "null"}


def _type(annotation: Any) -> str:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(code(value) for value in inside)
    if origin is tuple:
        return f"list of {_type(inside[0])}"
    if origin is dict:
        return f"mapping to {_type(inside[1])}"
    if inside:
        return " or ".join(_type(part) for part in inside)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{PLACES.get(annotation, annotation.__name__.lower())})"
    return NAMES[annotation]
