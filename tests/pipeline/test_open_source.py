"""The template for Kubeflow Pipelines outside of Vertex AI, held against what its backend is known to refuse.

The rules are those of its API server (backend/src/apiserver/template/v2_template.go) and of its compiler to Argo
(backend/src/v2/compiler); the specification is parsed as there, by the definition of the API.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from eagle_bench.adapters.pipeline_template import compile_template, parameters
from eagle_bench.config import Config
from eagle_bench.errors import InputError

CONFIG = {
    "project": "none",
    "location": "none",
    "variants": [
        {"id": "baseline", "url": "http://127.0.0.1:8000/v1", "served_model": "m"},
        {"id": "eagle3", "url": "http://127.0.0.1:8001/v1", "served_model": "m"},
    ],
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "eagle-benchmark.yaml"
    compile_template(path, open_source=True)
    return path.read_text()


@pytest.fixture(scope="module")
def spec(text):
    return yaml.safe_load(text)


def refusals(text):
    """What KFP's API server and compiler refuse about a template; none of it when it is good."""
    documents = list(yaml.safe_load_all(text))
    if len(documents) != 1:
        yield "more than one document, and no platform specification is needed"
    data = documents[0]
    try:
        spec = json_format.Parse(json.dumps(data), pipeline_spec_pb2.PipelineSpec(), ignore_unknown_fields=False)
    except json_format.ParseError as error:
        yield f"invalid v2 pipeline spec: {error}"
        return
    if spec.schema_version != "2.1.0":
        yield f"KFP only supports schema version 2.1.0, but the pipeline spec has version {spec.schema_version}"
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", spec.pipeline_info.name):
        yield "name should consist of lower case alphanumeric characters, '-' or '.'"
    executors = data["deploymentSpec"]["executors"]
    final_status = pipeline_spec_pb2.ParameterType.TASK_FINAL_STATUS
    for name, component in {"root": spec.root, **spec.components}.items():
        for parameter, definition in component.input_definitions.parameters.items():
            if definition.parameter_type == final_status:
                yield f"input parameter {parameter} of {name} requires type TASK_FINAL_STATUS, which is not supported"
        if component.executor_label:
            executor = executors.get(component.executor_label)
            if executor is None:
                yield f"executor with label {component.executor_label} not found"
            elif not executor.keys() & {"container", "importer"}:
                yield "custom job executors are Google Cloud only"
            continue
        tasks = component.dag.tasks
        if all(
            task.trigger_policy.strategy == task.trigger_policy.ALL_UPSTREAM_TASKS_COMPLETED for task in tasks.values()
        ):
            yield f"DAG {name} must contain one or more non-exit tasks"
        for task_name, task in tasks.items():
            if task.WhichOneof("iterator") == "artifact_iterator":
                yield f"task {task_name}: artifact iterator not implemented yet"
            if task.component_ref.name not in spec.components:
                yield f"component spec for {task.component_ref.name} not found"
            for producer in task.dependent_tasks:
                if producer not in tasks:
                    yield f"unknown producer task {producer} in DAG"


def test_nothing_in_it_is_refused(text):
    assert list(refusals(text)) == []


def test_the_rules_refuse_the_template_of_vertex_ai(tmp_path):
    """It asks how the run ended, which only Vertex AI tells: the rules above can fail."""
    compile_template(tmp_path / "vertex.yaml")
    (refused,) = refusals((tmp_path / "vertex.yaml").read_text())
    assert "TASK_FINAL_STATUS" in refused


def test_its_parameters_are_a_config_s_without_a_place(spec):
    definitions = spec["root"]["inputDefinitions"]["parameters"]
    given = parameters(Config.model_validate(CONFIG), {}, open_source=True)
    assert set(given) == set(definitions)
    assert not {"project", "location"} & set(given)
    types = {"LIST": list, "STRUCT": dict, "STRING": str, "NUMBER_INTEGER": int, "NUMBER_DOUBLE": float}
    assert all(isinstance(given[name], types[definition["parameterType"]]) for name, definition in definitions.items())


def test_a_variant_that_would_be_deployed_is_refused():
    variants = [CONFIG["variants"][0], {"id": "eagle3"}]
    config = Config.model_validate({**CONFIG, "variants": variants, "model": "m/m@1", "tokenizer": "t/t"})
    with pytest.raises(InputError, match="'eagle3' has no `url`"):
        parameters(config, {}, open_source=True)


def test_nothing_of_it_deploys_or_tears_down(spec):
    assert not any("teardown" in name or "exit-handler" in name for name in spec["components"])


def test_a_loop_s_results_can_not_be_taken_for_each_other(spec):
    """Artifacts of iterations could overwrite each other (pipelines#10186): the comparison knows what was planned."""
    compared = spec["root"]["dag"]["tasks"]["compare"]["inputs"]["parameters"]
    assert {"variants", "concurrency", "baseline"} <= set(compared)
