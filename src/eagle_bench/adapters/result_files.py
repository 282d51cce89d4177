"""Saved results: our `cell.json`, and what `vllm bench serve --save-result [--save-detailed]` wrote (0.8 to 0.33)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from eagle_bench.adapters.vllm_results import cell_of
from eagle_bench.comparison import Comparison
from eagle_bench.errors import InputError
from eagle_bench.results import SCHEMA_VERSION, CellResult

# eagle3-concurrency4.json, eagle3_c4.json, eagle3@4.json, eagle3-infqps-concurrency4-….json
_NAME = re.compile(
    r"^(?P<variant>.+?)(?:-[\d.inf]+qps)?[-_.@](?:concurrency|conc|c)?[-_=]?(?P<level>\d+)(?:[-_.].*)?$", re.I
)

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Label:
    """Which variant and level a file is of, as said on the command line."""

    variant: str
    concurrency: int | None = None

    @classmethod
    def parse(cls, text: str) -> tuple[Path, Label]:
        """Read FILE=VARIANT or FILE=VARIANT@CONCURRENCY.

        Raises:
            InputError: it is of another form.
        """
        path, equals, name = text.rpartition("=")
        variant, at, level = name.rpartition("@") if "@" in name else (name, "", "")
        if not equals or not path or not variant or (at and (not level.isdigit() or int(level) < 1)):
            raise InputError(
                f"--label {text!r}: must be FILE=VARIANT or FILE=VARIANT@CONCURRENCY, such as a.json=eagle3@4."
            )
        return Path(path), cls(variant, int(level) if level else None)


def read_cells(paths: Iterable[Path], labels: Mapping[Path, Label] | None = None) -> list[CellResult]:
    """The cells in files and in all result files below folders.

    Args:
        labels: by path, for files that do not tell their variant or level.

    Raises:
        InputError: a path is missing, is not a result, or does not tell its variant or level; a label has no file.
    """
    named = {path.resolve(): label for path, label in (labels or {}).items()}
    cells: list[CellResult] = []
    used: set[Path] = set()
    for path in paths:
        for file, must in _files(path):
            label = named.get(file.resolve())
            used.add(file.resolve())
            for number, data in enumerate(_documents(file)):
                if (cell := _cell(file, data, label, number, must)) is not None:
                    cells.append(cell)
    for path in labels or {}:
        if path.resolve() not in used:
            raise InputError(f"--label {path}: is not among the files given.", hint="Name the file as an argument too.")
    if not cells:
        raise InputError("no results: the folders hold no cell.json and no JSON of `vllm bench serve`.")
    return cells


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
        yield from ((file, False) for file in sorted(path.rglob("*.json")))
    elif path.exists():
        yield path, True
    else:
        raise InputError(f"{path}: there is no such file or folder.")


def _documents(path: Path) -> list[Any]:
    """The JSON document of a file, or one a line (what `--append-result` writes)."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read: {error}.") from None
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


def _cell(file: Path, data: Any, label: Label | None, number: int, must: bool) -> CellResult | None:
    if isinstance(data, dict) and "variant" in data and "counts" in data:
        cell = _validated(CellResult, data, file)
        if label is None:
            return cell
        return cell.model_copy(update={"variant": label.variant, "concurrency": label.concurrency or cell.concurrency})
    if isinstance(data, dict) and "completed" in data and ("request_throughput" in data or "duration" in data):
        variant, concurrency = _place(file, data, label)
        try:
            return cell_of(data, variant, concurrency)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise InputError(f"{file}: looks like a result of `vllm bench serve` but can't be read: {error}.") from None
    if must:
        raise InputError(f"{file}: neither a cell.json nor a result that `vllm bench serve --save-result` wrote.")
    return None


def _place(file: Path, data: Mapping[str, Any], label: Label | None) -> tuple[str, int]:
    """Variant and level of a vLLM result: from the command line, else the file's content, else its name."""
    name = _NAME.match(file.stem)
    variant = label.variant if label else data.get("variant") or data.get("label") or (name and name["variant"])
    level = (label.concurrency if label else None) or data.get("max_concurrency") or (name and int(name["level"]))
    if variant and level and int(level) >= 1:
        return str(variant), int(level)
    unknown = "variant" if not variant else "concurrency"
    raise InputError(
        f"{file}: does not tell its {unknown}.",
        hint=f"Say it: --label {file}=VARIANT@CONCURRENCY, or name the file like eagle3-concurrency4.json.",
    )


def _validated(model: type[Model], data: dict[str, Any], path: Path) -> Model:
    version = data.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise InputError(f"{path}: has schema version {version}; this eagle-bench reads version {SCHEMA_VERSION}.")
    try:
        return model.model_validate(_known(model, data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: `{where}`: {first['msg'][0].lower()}{first['msg'][1:]}.") from None


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
