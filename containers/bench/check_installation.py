"""Checks an image while it is built: `python check_installation.py slim|bench`.

Everything that a component may import is imported, so that a package that is missing or broken fails the build and
not a task that was paid for. Byte code of what is imported is kept: tasks start faster, as any user.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MEASURING = frozenset({"torch", "transformers", "uvloop", "vllm"})  # what `slim` does without
ELSEWHERE = ("eagle_bench.builtin",)  # makes the engine of the example, on the user's machine alone
RUNTIME = ("kfp.dsl.executor_main", "google_cloud_pipeline_components.types.artifact_types")


def main(image: str) -> None:
    """Import all of it; the exit status is 1 when something can't be, or is there and should not."""
    left_out = MEASURING if image == "slim" else frozenset()
    started = time.monotonic()
    broken = []
    for name in sorted({*RUNTIME, *_imports(), *_parts_of_google()}):
        if name.partition(".")[0] in left_out:
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # a package can break in any way
            broken.append(f"{name}: {type(error).__name__}: {error}")
    present = sorted(name for name in left_out if importlib.util.find_spec(name))
    if broken or present:
        sys.exit("\n".join([*broken, *(f"{name}: is installed, {image} does without" for name in present)]))
    print(f"{image}: {len(sys.modules)} modules imported in {time.monotonic() - started:.0f} s")


def _imports() -> set[str]:
    """Every module that a component may import, also inside of functions: all that can be reached from its task."""
    spec = importlib.util.find_spec("eagle_bench")
    assert spec is not None and spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0]).parent
    open_ = [f"eagle_bench.tasks.{path.stem}" for path in (root / "eagle_bench" / "tasks").glob("*.py")]
    found: set[str] = set()
    while open_:
        name = open_.pop()
        path = _file(root, name)
        if name in found or name.startswith(ELSEWHERE):
            continue
        if name.partition(".")[0] != "eagle_bench":
            found.add(name)
        elif path is not None:
            found.add(name)
            open_ += _imported(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _parts_of_google() -> set[str]:
    """The modules of Google's client that are looked up by name when they are first used."""
    from eagle_bench.adapters import lean_google

    return {f"{lean_google.PACKAGE}.{where}" for where in lean_google.DEFINED_IN.values()}


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from filter(_is_module, names)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # what stands before the last dot is no package, or isn't here
        return False


def _file(root: Path, module: str) -> Path | None:
    """Where a module of this package is written."""
    path = root.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


if __name__ == "__main__":
    main(sys.argv[1])
