"""JSON Schemas of the files that people and programs write and read."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from eagle_bench.comparison import Comparison
from eagle_bench.config import Config
from eagle_bench.results import CellResult

MODELS: dict[str, type[BaseModel]] = {"config": Config, "cell": CellResult, "comparison": Comparison}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file, one of `MODELS`.

    An unknown key is an error in a config. In results it is none: a later version may say more.
    """
    made = MODELS[name].model_json_schema()
    found = {"$schema": DIALECT, **made}
    return found if name == "config" else _open(found)


def _open(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _open(value) for key, value in part.items() if key != "additionalProperties" or value is not False}
    return [_open(item) for item in part] if isinstance(part, list) else part
