"""Whatever is wrong with a config is said at once, each thing once, and nothing that only follows from it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from eagle_bench import config_file
from eagle_bench.adapters.vertex_address import place_of
from eagle_bench.config import ON_VERTEX_AI, Config
from eagle_bench.config_problems import examine
from eagle_bench.errors import InputError
from eagle_bench.fields import Section

GOOD = {
    "project": "my-project",
    "location": "us-central1",
    "model": "meta/llama4@llama-4-scout-17b-16e-instruct",
    "tokenizer": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "serving": {"args": ["--tp=8"], "port": 30000},
    "variants": [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}],
    "workload": {"dataset": "builtin", "max_prompt_tokens": 100},
    "concurrency": [1, 2, 4],
}


def put(*place, value):
    """A mistake: this value in that place."""

    def make(data):
        for part in place[:-1]:
            data = data.setdefault(part, {}) if isinstance(data, dict) else data[part]
        data[place[-1]] = value

    return make


def without(key):
    return lambda data: data.pop(key)


# Each is a mistake of another kind in another place, with words of the one line that it deserves.
MISTAKES = {
    "`projct` is not a known key. Did you mean `project`? A config takes: project, ": [
        without("project"),
        put("projct", value="p"),
    ],
    "`model` is needed": [without("model")],
    "`tokenizer` is missing": [without("tokenizer")],
    "`serving.port` must be a whole number: 'x'": [put("serving", "port", value="x")],
    "`serving.acelerator` is not a known key. Did you mean `accelerator`?": [put("serving", "acelerator", value={})],
    "`serving` has both `invoke_route` and `predict_route`": [
        put("serving", "invoke_route", value=True),
        put("serving", "predict_route", value="/x"),
    ],
    "`serving` has both `spot` and `reservation`": [
        put("serving", "spot", value=True),
        put("serving", "reservation", value="projects/p/zones/z/reservations/r"),
    ],
    "give --tp twice": [put("variants", 1, "args", value=["--tp=4"])],
    "'baseline_2' is no variant beside the baseline. Did you mean `baseline-2`?": [
        lambda data: data["variants"].append({"id": "baseline-2"}),
        put("baseline_again", value="baseline_2"),
    ],
    "the id 'twin'": [lambda data: data["variants"].extend([{"id": "twin"}, {"id": "twin"}])],
    "no variant is the baseline: none of": [put("baseline", value="beseline")],
    "`workload.max_output_tokens` must be a whole number: 'many'": [put("workload", "max_output_tokens", value="many")],
    "`workload`: `min_prompt_tokens` is above": [put("workload", "min_prompt_tokens", value=200)],
    "`concurrency` names 1 twice": [lambda data: data["concurrency"].append(1)],
    "`concurrency[1]` must be a whole number: 'two'": [put("concurrency", 1, value="two")],
    "`repeats`: 0": [put("repeats", value=0)],
    "`pipeline_root`: '/tmp'": [put("pipeline_root", value="/tmp")],
    "`slo.ttft_ms`: -1": [put("slo", "ttft_ms", value=-1.0)],
}


def said_of(data) -> list[str]:
    with pytest.raises(InputError) as caught:
        config_file.validate(data, source="bench.yaml")
    return str(caught.value).splitlines()


def with_mistakes(names):
    data = copy.deepcopy(GOOD)
    for name in names:
        for make in MISTAKES[name]:
            make(data)
    return data


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(MISTAKES)), min_size=1, max_size=6, unique=True))
def test_every_mistake_is_named_at_once_and_once(names):
    lines = said_of(with_mistakes(names))
    for name in names:
        assert sum(name in line for line in lines) == 1, (name, lines)
    assert len(lines) == len(names), lines


def test_all_mistakes_together():
    lines = said_of(with_mistakes(MISTAKES))
    assert len(lines) == len(MISTAKES), lines


@pytest.mark.parametrize(
    ("change", "only"),
    [
        ({"variants": []}, "`variants` is empty"),
        ({"variants": "x"}, "`variants`: 'x' can't be used: it must be a list"),
        ({"variants": [{"label": "a"}, {"id": "b"}]}, "`variants[0].id` is missing"),
        ({"variants": [{"id": "A"}, {"id": "b"}]}, "`variants[0].id`: 'A'"),
        ({"variants": ["a", {"id": "b"}]}, "`variants[0]`: 'a'"),
        ({"tokenizer": 5}, "`tokenizer`: 5"),
        ({"tokenizer": None, "tokeniser": "a/b"}, "`tokeniser` is not a known key"),
        ({"workload": {"min_prompt_tokens": 50, "max_prompt_tokens": "x"}}, "`workload.max_prompt_tokens`"),
        ({"workload": {"min_prompt_tokens": "x", "max_prompt_tokens": 2}}, "`workload.min_prompt_tokens`"),
        ({"serving": 5}, "`serving`: 5"),
        ({"serving": {"env": {"A": 5}}}, "`serving.env.A` can't be used"),
        ({"concurrency": ["a"]}, "`concurrency[0]`"),
        ({"concurrency": [1, 1]}, "measured once, `repeats` repeats it."),
    ],
)
def test_nothing_is_said_that_only_follows(change, only):
    (line,) = said_of({**GOOD, **change})
    assert only in line


def test_keys_that_stand_there_twice_are_said_with_the_rest(tmp_path: Path):
    path = tmp_path / "bench.yaml"
    path.write_text("project: a\nproject: b\nlocation: us-central1\nlocation: us-east4\nrepeats: 0\nvariants: []\n")
    with pytest.raises(InputError) as caught:
        config_file.load(path, needs=ON_VERTEX_AI)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    for words in ("line 2: `project` stands there twice", "line 4: `location`", "`repeats`", "`variants` is empty"):
        assert sum(words in line for line in lines) == 1, lines
    assert "`pipeline_root` is missing: gs:// folder" in lines[-1]
    assert len(lines) == 5


def test_where_a_job_runs_is_needed_by_a_job_alone():
    here = {"variants": [{"id": name, "url": f"http://{name}/v1"} for name in ("baseline", "eagle3")]}
    config = config_file.validate(here)
    assert (config.project, config.location, config.pipeline_root) == (None, None, None)
    wanted = [f"`{field}` is missing: " for field in ON_VERTEX_AI]
    with pytest.raises(InputError) as caught:
        config_file.validate(here, source="x.yaml", needs=ON_VERTEX_AI)
    assert [line.startswith(f"x.yaml: {words}") for line, words in zip(lines_of(caught), wanted, strict=True)] == [
        True
    ] * 3
    assert all(line.endswith("a job on Vertex AI needs it.") for line in lines_of(caught))
    with pytest.raises(InputError) as caught:
        config_file.require(config, ON_VERTEX_AI, source="x.yaml")
    assert len(lines_of(caught)) == 3
    with pytest.raises(InputError) as caught:
        place_of(config.model_copy(update={"location": "us-central1"}))
    assert lines_of(caught) == [
        "`project` is missing: id of the Google Cloud project, not its number; a job on Vertex AI needs it."
    ]
    whole = config_file.validate(
        {**here, **{key: GOOD[key] for key in ("project", "location")}, "pipeline_root": "gs://b/x"}
    )
    config_file.require(whole, ON_VERTEX_AI)
    assert str(place_of(whole)) == "projects/my-project/locations/us-central1"


def lines_of(caught: pytest.ExceptionInfo[InputError]) -> list[str]:
    return str(caught.value).splitlines()


def fields_of(model: type[Section]):
    for name, field in model.model_fields.items():
        yield f"{model.__name__}.{name}", field


def sections(model: type[Section] = Config) -> list[type[Section]]:
    found = [model]
    for field in model.model_fields.values():
        for inner in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(inner, type) and issubclass(inner, Section):
                found += sections(inner)
    return list(dict.fromkeys(found))


FIELDS = dict(pair for model in sections() for pair in fields_of(model))


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_described_and_has_an_example_that_can_be_used(name):
    field = FIELDS[name]
    assert field.description, name
    composed = any(
        isinstance(part, type) and issubclass(part, Section)
        for part in [field.annotation, *getattr(field.annotation, "__args__", ())]
    )
    for example in field.examples or ():
        adapter = TypeAdapter(field.rebuild_annotation())
        adapter.validate_python(tuple(example) if isinstance(example, list) else example)
    assert field.examples or composed, name


@pytest.mark.parametrize("key", ["base_url", "endpoint_url"])
def test_a_url_by_another_name_is_one_mistake(key):
    """What is at a URL needs no arguments' image, no model and no tokenizer: the key alone is spoken of."""
    variants = [{"id": name, key: f"http://{name}/v1"} for name in ("baseline", "eagle3")]
    _, said = examine({"project": "p", "location": "l", "variants": variants})
    assert len(said) == 2, said
    for place, sentence in enumerate(said):
        assert f"`variants[{place}].{key}` is not a known key. Did you mean `url`?" in sentence
