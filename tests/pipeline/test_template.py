"""The compiled template: what Vertex AI gets. A golden file of it, and what must hold whatever it looks like."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from eagle_bench.components._image import IMAGES, USED_BY

import golden_file
from eagle_bench import __version__
from eagle_bench.adapters.pipeline_template import compile_template, images_in, images_of, sha256_of
from eagle_bench.adapters.template_version import read_template, unlike_package
from eagle_bench.errors import InputError

MEASURE_OR_ACT = {
    "deploy-endpoint",
    "smoke-test",
    "benchmark",
    "compare",
    "conclude",
    "teardown",
    "teardown-all",
    "stage-data",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("template") / "eagle-benchmark.yaml"
    compile_template(path)
    return path


@pytest.fixture(scope="module")
def spec(template):
    return yaml.safe_load(template.read_text())


def tasks(node):
    """Every task of the template, with its name."""
    if isinstance(node, dict):
        yield from node.get("dag", {}).get("tasks", {}).items()
        for value in node.values():
            yield from tasks(value)


def executors(spec):
    return {name: value["container"] for name, value in spec["deploymentSpec"]["executors"].items()}


@pytest.mark.golden
def test_the_template_is_the_golden_one(template):
    text = re.sub(r"^sdkVersion: .*\n", "", template.read_text(), flags=re.MULTILINE)
    golden_file.check("eagle-benchmark.yaml", text)


def test_it_is_one_document(template):
    assert len(list(yaml.safe_load_all(template.read_text()))) == 1


def test_compiling_twice_gives_the_same_bytes(template, tmp_path):
    assert compile_template(tmp_path / "again.yaml") == sha256_of(template)


def test_loop_items_have_their_types(spec):
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    assert parameters["variants"]["parameterType"] == "LIST"
    assert parameters["concurrency"]["parameterType"] == "LIST"
    items = {
        name: definition["parameterType"]
        for component in spec["components"].values()
        for name, definition in component.get("inputDefinitions", {}).get("parameters", {}).items()
        if name.endswith("-loop-item")
    }
    assert {kind for name, kind in items.items() if "variants" in name} == {"STRUCT"}
    assert {kind for name, kind in items.items() if "smoke-test" in name} == {"NUMBER_INTEGER"}


def test_nothing_that_acts_or_measures_is_cached(spec):
    found = {}
    for name, task in tasks(spec):
        if task["componentRef"]["name"].removeprefix("comp-") in MEASURE_OR_ACT:
            found[name] = task.get("cachingOptions", {})
    assert set(found) == MEASURE_OR_ACT
    assert all(options == {} for options in found.values()), found


def test_everything_stands_inside_an_exit_handler(spec):
    root = spec["root"]["dag"]["tasks"]
    guard = root["teardown-all"]
    assert guard["triggerPolicy"]["strategy"] == "ALL_UPSTREAM_TASKS_COMPLETED"
    (guarded,) = guard["dependentTasks"]
    assert set(root) == {guarded, "teardown-all"}
    assert "taskFinalStatus" in str(guard["inputs"]["parameters"]["status"])


def test_a_variants_machines_go_back_whatever_happened_before(spec):
    dag = spec["components"]["comp-benchmark-variant"]["dag"]["tasks"]
    assert dag["teardown"]["triggerPolicy"]["strategy"] == "ALL_UPSTREAM_TASKS_COMPLETED"
    assert dag["teardown"]["dependentTasks"] == ["collect"]


def test_levels_run_one_after_another(spec):
    dag = spec["components"]["comp-benchmark-variant"]["dag"]["tasks"]
    loops = [task for task in dag.values() if "parameterIterator" in task]
    assert [loop["iteratorPolicy"]["parallelismLimit"] for loop in loops] == [1]


def test_only_the_levels_that_the_smoke_test_gives_are_measured(spec):
    dag = spec["components"]["comp-benchmark-variant"]["dag"]["tasks"]
    (loop,) = [task for task in dag.values() if "parameterIterator" in task]
    source = loop["inputs"]["parameters"][loop["parameterIterator"]["items"]["inputParameter"]]
    assert source["taskOutputParameter"] == {"producerTask": "smoke-test", "outputParameterKey": "Output"}


def test_variants_run_side_by_side(spec):
    loops = [
        task for _, task in tasks(spec) if "parameterIterator" in task and "variants" in str(task["parameterIterator"])
    ]
    assert len(loops) == 1
    assert "iteratorPolicy" not in loops[0]


def test_artifacts_have_the_types_of_the_field(spec):
    def outputs(name):
        artifacts = spec["components"][f"comp-{name}"]["outputDefinitions"]["artifacts"]
        return {key: value["artifactType"]["schemaTitle"] for key, value in artifacts.items()}

    assert outputs("deploy-endpoint") == {"endpoint": "google.VertexEndpoint"}
    assert outputs("benchmark") == {"cell": "system.Dataset", "metrics": "system.Metrics"}
    assert outputs("compare") == {
        "comparison": "system.Dataset",
        "report": "system.HTML",
        "summary": "system.Markdown",
        "metrics": "system.Metrics",
    }
    assert outputs("stage-data") == {"prompts": "system.Dataset"}


def test_deploy_leaves_its_operation_for_the_console(spec):
    parameters = spec["components"]["comp-deploy-endpoint"]["outputDefinitions"]["parameters"]
    assert parameters["gcp_resources"]["parameterType"] == "STRING"


def test_the_client_has_cores_of_its_own(spec):
    resources = executors(spec)["exec-benchmark"]["resources"]
    assert float(resources["cpuRequest"]) >= 4
    assert float(resources["memoryRequest"]) >= 8


def test_images_stand_where_one_place_says_and_nothing_is_installed_at_run_time(spec, tmp_path):
    found = {name.removeprefix("exec-").replace("-", "_"): box["image"] for name, box in executors(spec).items()}
    assert found == {component: IMAGES[image] for component, image in USED_BY.items()}
    assert all(image.endswith(f":{__version__}") for image in found.values())
    assert not any("pip install" in str(container["command"]) for container in executors(spec).values())


def test_images_are_named_by_digest_where_that_is_asked_for(tmp_path):
    addresses = {name: f"us-docker.pkg.dev/my-project/eagle-bench/{name}@sha256:{'0' * 64}" for name in IMAGES}
    path = tmp_path / "pinned.yaml"
    compile_template(path, images=images_of(f"{name}={address}" for name, address in addresses.items()))
    pinned = yaml.safe_load(path.read_text())
    assert {box["image"] for box in executors(pinned).values()} == set(addresses.values())
    assert images_in(pinned) == set(addresses.values())
    # One address for all of them: `bench` has everything.
    compile_template(path, images=images_of([addresses["bench"]]))
    assert images_in(yaml.safe_load(path.read_text())) == {addresses["bench"]}


@pytest.mark.parametrize(
    "address",
    [
        "us-docker.pkg.dev/p/r/bench@sha256:abc",
        "us-docker.pkg.dev/p/r/bench:1:2",
        "us-docker.pkg.dev/p/r/Bench",
        "https://us-docker.pkg.dev/p/r/bench",
        "bänch",
        "a/",
        "a:",
        "a@@b",
    ],
)
def test_what_no_registry_takes_for_an_image_is_refused(address):
    with pytest.raises(InputError, match="not an image's address"):
        images_of([address])


def test_an_image_may_have_a_port_a_tag_and_a_digest():
    address = f"localhost:5000/any_one/be-nch:V1.0@sha256:{'a' * 64}"
    assert set(images_of([address]).values()) == {address}


def test_only_a_template_is_written_over(tmp_path):
    path = tmp_path / "llama.yaml"
    path.write_text("project: my-project\n")
    with pytest.raises(InputError, match="holds something else than a template"):
        compile_template(path)
    assert path.read_text() == "project: my-project\n"
    path.write_text("")
    digest = compile_template(path)
    assert compile_template(path) == digest


def test_component_bodies_are_one_call(spec):
    for name, container in executors(spec).items():
        source = next(part for part in container["command"] if "def " in part)
        body = source.split('"""')[-1]
        statements = [line for line in body.splitlines() if re.match(r"    \S", line) and line.strip() != ")"]
        calls = [line for line in statements if "import" not in line]
        assert len(calls) == 1, f"{name}: {calls}"


def test_no_parameter_is_for_a_secret_itself(spec):
    names = {
        name
        for component in [spec["root"], *spec["components"].values()]
        for name in component.get("inputDefinitions", {}).get("parameters", {})
    }
    assert {name for name in names if re.search("token|secret|password|key", name)} <= {
        name for name in names if name.endswith("hf_token_secret") or name == "tokenizer" or "tokenizer" in name
    }


@pytest.mark.golden
def test_the_reference_of_the_components_says_what_the_compiler_says():
    from reference_pages import FOLDER, components

    golden_file.check("components.md", components.page(), folder=FOLDER)


def test_the_reference_of_the_components_leaves_no_words_out():
    from reference_pages import components

    rows = [line for line in components.page().splitlines() if line.startswith(("| input", "| output", "| `"))]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []
    assert "| `max_hours` | Float | `0.0` |" in components.page()


def test_a_template_of_another_version_is_told_by_its_parts(template):
    given = read_template(template)
    given["sdkVersion"] = "kfp-2.0.0"
    for executor in given["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = "us-docker.pkg.dev/p/r/bench@sha256:0"
    assert unlike_package(given) == ()
    given["root"]["inputDefinitions"]["parameters"].pop("repeats")
    given["deploymentSpec"]["executors"]["exec-compare"]["container"]["command"].append("x")
    assert unlike_package(given) == ("compare's program", "the pipeline's parameters")
