"""docs/reference is made from the code: a page that differs fails here, and `make golden` writes it afresh."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from pydantic import BaseModel

import eagle_bench
import golden_file
from eagle_bench import checks, codes, comparison_checks, outcomes, provenance, settings_checks
from eagle_bench.comparison import Comparison
from eagle_bench.results import CellResult, ErrorKind
from eagle_bench.runs import strangers
from eagle_bench.schemas import MODELS, schema
from reference_pages import FOLDER, cheap_pages

PAGES = cheap_pages()
SOURCE = Path(eagle_bench.__file__).parent


@pytest.mark.golden
@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_the_code_says(name):
    golden_file.check(name, PAGES[name](), folder=FOLDER)


def test_no_page_is_left_over():
    made = {FOLDER / name for name in PAGES} | {FOLDER / "components.md"}
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == made


@pytest.mark.parametrize("name", MODELS)
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize(("name", "model"), [("cell", CellResult), ("comparison", Comparison)])
def test_examples_are_valid_for_the_schema_and_for_us(name, model):
    """The validator shares no code with the models."""
    example = json.loads((FOLDER / "examples" / f"{name}.json").read_text())
    validator = jsonschema.Draft202012Validator(schema(name))
    assert not list(validator.iter_errors(example))
    model.model_validate(example)
    assert not list(validator.iter_errors({**example, "a_key_of_tomorrow": 1}))
    assert list(validator.iter_errors({**example, "schema_version": 2}))


def test_the_acceptance_of_the_example_is_one_that_can_be():
    """By the page's own words: 1 + accepted ÷ steps, positions that add up, no more tokens than were answered."""
    result = json.loads((FOLDER / "examples" / "cell.json").read_text())
    found, counts = result["acceptance"], result["counts"]
    assert found["length"] == pytest.approx(1 + found["accepted_tokens"] / found["steps"])
    assert sum(found["by_position"]) * found["drafts"] == pytest.approx(found["accepted_tokens"])
    assert found["drafts"] <= found["steps"]
    assert found["accepted_tokens"] <= found["drafted_tokens"] == len(found["by_position"]) * found["drafts"]
    answered = result["metrics"]["mean_output_tokens"] * counts["completed"]
    assert found["steps"] + found["accepted_tokens"] == pytest.approx(answered - counts["completed"])


def test_values_are_named_as_json_has_them():
    assert not re.search(r"\bNone\b", PAGES["results.md"]())


def test_what_fetch_prints_is_described():
    assert "\n## eagle-bench run --json and eagle-bench fetch --json\n" in PAGES["results.md"]()


def test_every_option_has_its_words():
    rows = re.findall(r"^\| `-.*", PAGES["command-line.md"](), re.MULTILINE)
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_schema_of_a_config_takes_the_example_and_no_unknown_key():
    import yaml

    example = yaml.safe_load((FOLDER.parents[1] / "examples" / "llama4-scout.yaml").read_text())
    validator = jsonschema.Draft202012Validator(schema("config"))
    assert not list(validator.iter_errors(example))
    assert list(validator.iter_errors({**example, "repeets": 3}))


def models(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    seen.add(model)
    for field in model.model_fields.values():
        for part in re.findall(r"\w+", str(field.annotation)):
            found = next(
                (m for m in BaseModel.__subclasses__() for m in (m, *m.__subclasses__()) if m.__name__ == part), None
            )
            if found is not None and found not in seen and found.__module__.startswith("eagle_bench"):
                models(found, seen)
    return seen


@pytest.mark.parametrize("model", [CellResult, Comparison, *outcomes.PRINTED.values()])
def test_every_key_of_a_result_is_described(model):
    for part in models(model, set()):
        assert part.__doc__
        for name, field in part.model_fields.items():
            assert field.description, f"{part.__name__}.{name}"


def test_every_code_has_a_meaning_and_is_used():
    assert set(codes.WARNINGS) == set(get_args(codes.WarningCode))
    assert set(codes.CELL_WARNINGS) == set(get_args(codes.CellWarningCode))
    assert set(codes.REQUEST_ERRORS) == set(get_args(ErrorKind))
    used = "".join(
        inspect.getsource(module) for module in (checks, comparison_checks, provenance, settings_checks, strangers)
    )
    assert [code for code in codes.WARNINGS if f'"{code}"' not in used] == []


def test_every_kind_of_failure_is_known():
    """Whatever `kind=` a ServiceError or a CellFailure is made with anywhere."""
    kinds = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"ServiceError", "CellFailure"}:
                for keyword in node.keywords:
                    if keyword.arg == "kind":
                        kinds |= {part.value for part in ast.walk(keyword.value) if isinstance(part, ast.Constant)}
    assert kinds
    assert kinds <= set(codes.FAILURES)
