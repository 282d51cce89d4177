"""Whether a compiled template is of this package's version: it is held against what the package compiles now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eagle_bench.adapters.artifact_registry import reading_template
from eagle_bench.adapters.pipeline_template import compile_template
from eagle_bench.adapters.vertex_address import credentials
from eagle_bench.errors import InputError, because


def read_template(path: Path) -> dict[str, Any]:
    """A compiled pipeline's specification.

    Raises:
        InputError: there is no such file, or it is no compiled pipeline.
    """
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"--template {path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"--template {path}: can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise _no_template(str(path), "it is no text in UTF-8") from None
    except RecursionError:
        raise _no_template(str(path), "it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise _no_template(str(path), _place(error)) from None
    return _specification(found, str(path))


def fetch_template(address: str) -> dict[str, Any]:
    """A compiled pipeline's specification, from its https:// address in Artifact Registry.

    Raises:
        InputError: it is no such address, or there is no compiled pipeline.
        ServiceError: it is not there, or may not be read.
    """
    import yaml
    from google.cloud.aiplatform.utils import yaml_utils

    with reading_template(address):
        try:
            found = yaml_utils.load_yaml(address, credentials=credentials())
        except (ValueError, yaml.YAMLError):
            found = None
    return _specification(found, address)


def _specification(found: Any, name: str) -> dict[str, Any]:
    """What was found, once it has the form that kfp gives to compiled pipelines."""
    from google.protobuf import json_format
    from kfp.pipeline_spec.pipeline_spec_pb2 import PipelineDeploymentConfig, PipelineSpec

    if not isinstance(found, dict):
        raise _no_template(name, "it holds no keys and values")
    if missing := [key for key in ("pipelineInfo", "deploymentSpec", "root", "schemaVersion") if key not in found]:
        raise _no_template(name, f"it has no `{missing[0]}`")
    try:
        json_format.ParseDict(found, PipelineSpec(), ignore_unknown_fields=True)
        json_format.ParseDict(found["deploymentSpec"], PipelineDeploymentConfig(), ignore_unknown_fields=True)
    except (json_format.ParseError, AttributeError, TypeError, RecursionError) as error:
        raise _no_template(name, " ".join(str(error).split())[:200]) from None
    return found


def _place(error: Exception) -> str:
    """What a reader of YAML stumbled over, and in which line."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"line {mark.line + 1}: {problem}" if mark and problem else " ".join(str(error).split())


def _no_template(name: str, why: str) -> InputError:
    return InputError(
        because(f"{name}: not a pipeline template that can be used", why),
        hint="`eagle-bench compile` writes one.",
    )


def unlike_package(template: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts in which a template is not as this package compiles it; images and kfp's own version may differ."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "own.yaml"
        compile_template(path)
        own = dict(_parts(read_template(path)))
    given = dict(_parts(template))
    return tuple(sorted(name for name in own.keys() | given.keys() if own.get(name) != given.get(name)))


def _parts(template: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Components, what they execute (without the image), and the pipeline's own parameters and steps."""
    for name, component in template.get("components", {}).items():
        yield name.removeprefix("comp-"), component
    for name, executor in template.get("deploymentSpec", {}).get("executors", {}).items():
        container = {key: value for key, value in executor.get("container", {}).items() if key != "image"}
        yield f"{name.removeprefix('exec-')}'s program", {**executor, "container": container}
    yield "the schema's version", template.get("schemaVersion")
    yield "the pipeline's parameters", template.get("root", {}).get("inputDefinitions")
    yield "the pipeline's steps", template.get("root", {}).get("dag")
