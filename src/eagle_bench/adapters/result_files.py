"""Saved results: our `cell.json`, and what `vllm bench serve --save-result [--save-detailed]` wrote (0.8 to 0.33)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from eagle_bench.adapters.earlier_results import set_aside_in
from eagle_bench.adapters.result_labels import Label, labelled, refuse_other_level
from eagle_bench.adapters.vllm_results import cell_of
from eagle_bench.comparison import Comparison
from eagle_bench.damage import damage
from eagle_bench.errors import InputError
from eagle_bench.results import SCHEMA_VERSION, CellResult
from eagle_bench.unreadable import reason

Model = TypeVar("Model", bound=BaseModel)


def read_cells(paths: Iterable[Path], labels: Iterable[tuple[Path, Label]] = ()) -> list[CellResult]:
    """The cells in files and in all result files below folders; a file that is named twice counts once.

    Args:
        labels: for files that do not tell their variant or level.

    Raises:
        InputError: a path is missing, is not a result, or does not tell its variant or level; a label has no file,
            or a file has two.
    """
    files: dict[Path, tuple[Path, bool]] = {}
    paths = tuple(paths)
    for path in paths:
        for file, must in _files(path):
            named_before = files.get(file.resolve())
            files[file.resolve()] = (file, must or (named_before is not None and named_before[1]))
    named: dict[Path, Label] = {}
    for path, label in labels:
        if path.resolve() not in files:
            raise InputError(f"--label {path}: is not among the files given.", hint="Name the file as an argument too.")
        if path.resolve() in named:
            raise InputError(f"--label {path}: is given twice for this file.", hint="Keep the one that is right.")
        named[path.resolve()] = label
    cells = [
        cell
        for place, (file, must) in files.items()
        for data in _documents(file)
        if (cell := _cell(file, data, named.get(place), must)) is not None
    ]
    if not cells:
        where = ", ".join(dict.fromkeys(str(path) for path in paths))
        raise InputError(f"{where}: no results: no cell.json and no JSON of `vllm bench serve` is in there.")
    return cells


def cell_in(content: bytes, name: str) -> CellResult:
    """The one cell in the content of a file that a run wrote.

    Args:
        name: of the file, for messages.

    Raises:
        InputError: it is no cell, was cut short, or holds what can't have been measured.
    """
    [data, *more] = _documents_in(content, name)
    if more or not isinstance(data, dict) or not {"variant", "counts"} <= data.keys():
        raise InputError(f"{name}: not the result of a cell.")
    cell = _validated(CellResult, data, name)
    if (wrong := damage(cell)) is not None:
        raise InputError(f"{name}: {wrong}.")
    return cell


def read_comparison(path: Path) -> Comparison:
    """A `comparison.json`, also of a later minor version that says more.

    Raises:
        InputError: it is missing or is no comparison.
    """
    [data, *_] = _documents(path)
    if not isinstance(data, dict) or "comparisons" not in data:
        raise InputError(f"{path}: not a comparison.json of eagle-bench: it has no `comparisons`.")
    return _validated(Comparison, data, path)


def _files(path: Path) -> Iterator[tuple[Path, bool]]:
    """Files to read, each with whether it must be a result."""
    if path.is_dir():
        found = (file for file in sorted(path.rglob("*.json")) if not set_aside_in(file, path))
        yield from ((file, False) for file in found)
    elif path.exists():
        yield path, True
    else:
        raise InputError(f"{path}: there is no such file or folder.")


def _documents(path: Path) -> list[Any]:
    """The JSON document of a file, or one a line (what `--append-result` writes)."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {reason(error)}.") from None
    return _documents_in(content, path)


def _documents_in(content: bytes, path: Path | str) -> list[Any]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: can't be read: {reason(error)}.") from None
    try:
        documents = _parsed(text, path)
        if "\\ud" in text.lower():  # escapes of surrogates: whole pairs are characters, halves are none
            json.dumps(documents, ensure_ascii=False).encode()
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be a result.") from None
    except UnicodeEncodeError:
        raise InputError(f"{path}: holds half a character (a surrogate without its other half).") from None
    except ValueError:
        raise InputError(f"{path}: holds a number of too many digits.") from None
    return documents


def _parsed(text: str, path: Path | str) -> list[Any]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as whole:
        try:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError:
            documents = []
        if not documents:
            raise InputError(f"{path}, line {whole.lineno}: not JSON: {whole.msg}.") from None
        return documents


def _cell(file: Path, data: Any, label: Label | None, must: bool) -> CellResult | None:
    if isinstance(data, dict) and "variant" in data and "counts" in data:
        cell = _validated(CellResult, data, file)
        if label is not None:
            refuse_other_level(file, label, cell.concurrency)
            cell = cell.model_copy(update={"variant": label.variant})
        if (wrong := damage(cell)) is not None:
            raise InputError(f"{file}: {wrong}.")
        return cell
    if isinstance(data, dict) and "completed" in data and ("request_throughput" in data or "duration" in data):
        variant, concurrency = labelled(file, data, label)
        try:
            return cell_of(data, variant, concurrency)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise InputError(f"{file}: looks like a result of `vllm bench serve` but can't be read: {error}.") from None
    if must:
        raise InputError(f"{file}: neither a cell.json nor a result that `vllm bench serve --save-result` wrote.")
    return None


def _validated(model: type[Model], data: dict[str, Any], path: Path | str) -> Model:
    version = data.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int:
        raise InputError(f"{path}: `schema_version` must be the number {SCHEMA_VERSION}, is {version!r}.")
    if version != SCHEMA_VERSION:
        raise InputError(f"{path}: has schema version {version}; this eagle-bench reads version {SCHEMA_VERSION}.")
    try:
        return model.model_validate(_known(model, data))
    except ValidationError as error:
        raise InputError(f"{path}: {reason(error)}.") from None


def _known(kind: Any, value: Any) -> Any:
    """A value without the keys that its model does not know: what a newer writer added is no fault."""
    if get_origin(kind) in (Union, UnionType):
        options = [option for option in get_args(kind) if option is not type(None)]
        return _known(options[0], value) if len(options) == 1 else value
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, dict):
        fields = kind.model_fields
        return {key: _known(fields[key].annotation, inner) for key, inner in value.items() if key in fields}
    if get_origin(kind) is tuple and isinstance(value, list):
        return [_known(get_args(kind)[0], item) for item in value]
    return value
