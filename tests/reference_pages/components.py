"""The components' and the pipeline's inputs and outputs, as the compiler sees them."""

from __future__ import annotations

import inspect
import re
from typing import Any

from eagle_bench.components.benchmark import benchmark
from eagle_bench.components.collect import collect
from eagle_bench.components.compare import compare, conclude
from eagle_bench.components.deploy_endpoint import deploy_endpoint
from eagle_bench.components.smoke_test import smoke_test
from eagle_bench.components.stage_data import stage_data
from eagle_bench.components.teardown import teardown, teardown_all
from eagle_bench.pipelines.eagle_benchmark import eagle_benchmark

from reference_pages import MADE, code, sentence, table

COMPONENTS = (
    stage_data, deploy_endpoint, smoke_test, benchmark, collect, teardown, compare, conclude, teardown_all
)  # fmt: skip
INTRODUCTION = """# The pipeline and its components

`eagle-bench compile` writes them as one YAML file for Vertex AI Pipelines. Each component is a signature and one call into
the library, and can be used in a pipeline of your own: `from eagle_bench.components.benchmark import benchmark`.

"""


def page() -> str:
    return "".join([MADE, INTRODUCTION, _pipeline(), *map(_component, COMPONENTS)])


def _pipeline() -> str:
    spec = eagle_benchmark.pipeline_spec
    texts = {name: text for component in COMPONENTS for name, text in _texts(component).items()}
    given = inspect.signature(eagle_benchmark.pipeline_func).parameters
    types = eagle_benchmark.component_spec.inputs
    rows = [
        [code(name), str(types[name].type), _default(parameter.default), sentence(texts[name])]
        for name, parameter in given.items()
    ]
    about = " ".join((inspect.getmodule(eagle_benchmark.pipeline_func).__doc__ or "").split("\n\n")[0].split())
    title = f"## The pipeline `{spec.pipeline_info.name}`"
    return f"{title}\n\n{about}\n\n{table(['parameter', 'type', 'default', 'what it is'], rows)}"


def _component(component: Any) -> str:
    spec, texts = component.component_spec, _texts(component)
    about = sentence((spec.description or "").strip())
    rows = [["input", code(name), str(put.type), sentence(texts.get(name, ""))] for name, put in spec.inputs.items()]
    rows += [
        ["output", code(name), str(put.type), sentence(texts.get(name, ""))]
        for name, put in (spec.outputs or {}).items()
    ]
    return f"\n## {spec.name.replace('-', '_')}\n\n{about}\n\n{table(['', 'name', 'type', 'what it is'], rows)}"


def _texts(component: Any) -> dict[str, str]:
    """The docstring's `Args:`, of which the compiler keeps those of inputs only, and its `Returns:`."""
    given, _, returned = (inspect.getdoc(component.python_func) or "").partition("Returns:")
    texts = dict(re.findall(r"^    (\w+): (.*)$", given.partition("Args:")[2], re.MULTILINE))
    return {**texts, "Output": " ".join(returned.split())}


def _default(value: object) -> str:
    return "required" if value is inspect.Parameter.empty else code(repr(value))
