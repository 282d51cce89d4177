"""Every field of a config file: what it is, its unit, default and an example, from the fields themselves."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from eagle_bench.config import Config, Slo, Variant, Workload
from eagle_bench.fields import Section
from eagle_bench.schemas import schema
from eagle_bench.serving import Accelerator, Probe, Serving
from reference_pages import MADE, code, sentence, table

SECTIONS: dict[str, type[Section]] = {
    "The config": Config,
    "`serving`": Serving,
    "`serving.accelerator`": Accelerator,
    "`serving.startup_probe` and `serving.health_probe`": Probe,
    "`variants`": Variant,
    "`workload`": Workload,
    "`slo`": Slo,
}
UNITS = {"_ms": "ms", "_s": "seconds", "_mb": "MB", "_tokens": "tokens"}
INTRODUCTION = """# The config file

YAML. A key that is not here is refused, with the one that was probably meant; so is a key that stands there twice. All
problems of its fields are said at once. A field without a default may be left out unless it is required. `eagle-bench init` writes a config with comments, and `eagle-bench validate FILE`
checks one. [config.schema.json](schemas/config.schema.json) is its JSON Schema: an editor that knows it completes the keys.

Nothing secret may stand in a config: it becomes the pipeline's parameters, which the console shows. Secrets are named by
their resource name in Secret Manager.
"""


def page() -> str:
    return "".join([MADE, INTRODUCTION, *(_section(title, model) for title, model in SECTIONS.items())])


def _section(title: str, model: type[Section]) -> str:
    allowed = _properties(model)
    rows = [
        [
            code(name),
            f"{sentence(f'{field.description}{_limits(allowed.get(name, {}))}')}{_unit(name, field)}",
            _default(field),
            code(_yaml(field.examples[0])) if field.examples else "",
        ]
        for name, field in model.model_fields.items()
    ]
    about = " ".join((model.__doc__ or "").split())
    heads = ["field", "what it is", "default", "example"]
    return f"\n## {title}\n\n{about}\n\n{table(heads, rows)}"


def _properties(model: type[Section]) -> dict[str, Any]:
    whole = schema("config")
    found = whole if model is Config else whole["$defs"][model.__name__]
    return dict(found["properties"])


def _limits(allowed: dict[str, Any]) -> str:
    """Bounds in words, from the schema."""
    found = {**allowed}
    for part in (*allowed.get("anyOf", ()), allowed.get("items", {})):
        found |= {key: value for key, value in part.items() if "imum" in key.lower()}
    low, high = found.get("minimum"), found.get("maximum")
    above, below = found.get("exclusiveMinimum"), found.get("exclusiveMaximum")
    words = []
    if low is not None and high is not None:
        words.append(f"{low:g} to {high:g}")
    elif low is not None:
        words.append(f"at least {low:g}")
    elif high is not None:
        words.append(f"at most {high:g}")
    if above is not None:
        words.append(f"above {above:g}")
    if below is not None:
        words.append(f"below {below:g}")
    return f" ({', '.join(words)})" if words else ""


def _unit(name: str, field: FieldInfo) -> str:
    extra = field.json_schema_extra
    unit = extra.get("unit") if isinstance(extra, dict) else None
    unit = unit or next((unit for ending, unit in UNITS.items() if name.endswith(ending)), None)
    return f" Unit: {unit}." if unit else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default is PydanticUndefined or default is None or default in ((), {}) or isinstance(default, Section):
        return ""
    return code(_yaml(default))


def _yaml(value: object) -> str:
    """As it would stand in the file."""
    plain = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=10_000).strip().removesuffix("\n...")
