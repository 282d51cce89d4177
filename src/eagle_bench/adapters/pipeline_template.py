"""The pipeline template: compiling it, and the parameters that a config means."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eagle_bench.adapters.whole_files import write_files
from eagle_bench.config import Config
from eagle_bench.errors import InputError
from eagle_bench.nearest import did_you_mean
from eagle_bench.variants import resolve

COMPILED = b"# PIPELINE DEFINITION\n"  # how kfp begins what it writes
_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?", re.ASCII
)


def compile_template(path: Path, *, images: Mapping[str, str] | None = None, open_source: bool = False) -> str:
    """Write the pipeline as one YAML document, and give its SHA-256.

    Args:
        images: addresses of built images by `images_of`, in place of the names that the components carry.
        open_source: for Kubeflow Pipelines outside of Vertex AI; it then measures URLs and deploys nothing.

    Raises:
        InputError: the name is no template's, something else stands there, or the file can't be written.
    """
    if path.suffix not in {".yaml", ".yml"}:
        raise InputError(f"{path}: a template's name must end in .yaml or .yml.")
    _spare(path)
    from kfp import compiler

    from eagle_bench.components._image import IMAGES
    from eagle_bench.pipelines import eagle_benchmark

    pipeline = eagle_benchmark.eagle_benchmark_of_urls if open_source else eagle_benchmark.eagle_benchmark
    try:
        with TemporaryDirectory() as scratch:
            compiled = Path(scratch, "template.yaml")
            compiler.Compiler().compile(pipeline, str(compiled))
            text = compiled.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror or error}.") from None
    for name, built in IMAGES.items():
        text = text.replace(f"image: {built}\n", f"image: {(images or {}).get(name, built)}\n")
    write_files({path: text})
    return sha256_of(path)


def _spare(path: Path) -> None:
    """Refuse to write over what no compiler wrote, such as the config of a run.

    Raises:
        InputError: such a file stands there.
    """
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            start = file.read(len(COMPILED))
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror or error}.") from None
    if start and start != COMPILED:
        raise InputError(
            f"{path}: holds something else than a template, and is not written over.",
            hint="Give --output another name.",
        )


def images_of(given: Iterable[str]) -> dict[str, str]:
    """The addresses of `--image NAME=ADDRESS`, by name; ADDRESS alone stands for every name.

    Raises:
        InputError: an unknown name, a name without its address, or twice the same, or no image's address.
    """
    from eagle_bench.components._image import IMAGES

    found: dict[str, str] = {}
    for text in given:
        name, equals, address = text.partition("=")
        names, address = ([name], address) if equals else (list(IMAGES), text)
        if not IMAGE.fullmatch(address):
            example = "us-docker.pkg.dev/…/bench@sha256:…"
            raise InputError(
                f"--image {text[:60]!r}: not an image's address, such as {example}.",
                hint="It has no https://, is in lower case but for its tag, and a digest has 64 digits behind sha256:.",
            )
        for known in names:
            if known not in IMAGES:
                raise InputError(
                    f"--image {text[:60]!r}: no image is called {known!r}; {' and '.join(IMAGES)} are."
                    f"{did_you_mean(known, IMAGES)}"
                )
            if known in found:
                raise InputError(f"--image: {known} is given twice.")
            found[known] = address
    if missing := sorted(IMAGES.keys() - found.keys()) if found else []:
        raise InputError(f"--image: the address of {missing[0]} is missing: give --image {missing[0]}=ADDRESS too.")
    return found


def images_in(spec: Mapping[str, Any]) -> frozenset[str]:
    """Every image that a compiled pipeline (its specification, as JSON) names."""
    executors = spec.get("deploymentSpec", {}).get("executors", {})
    return frozenset(executor["container"]["image"] for executor in executors.values() if "container" in executor)


def sha256_of(path: Path) -> str:
    """Hash of a template's bytes: what `compile` wrote and what ran are the same if it is."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def parameters(config: Config, environment: dict[str, str], *, open_source: bool = False) -> dict[str, Any]:
    """The pipeline's parameters. They show in the console: nothing in them is secret.

    Args:
        environment: where and with what the run is made, as the report shows it.
        open_source: of the template that was compiled so.

    Raises:
        InputError: a variant has no `url`, and nothing else can be measured outside of Vertex AI.
    """
    given: dict[str, Any] = {
        "project": config.project,
        "location": config.location,
        "variants": [spec.as_parameter() for spec in resolve(config)],
        "baseline": config.baseline,
        "concurrency": list(config.concurrency),
        "repeats": config.repeats,
        "workload": config.workload.model_dump(mode="json", exclude_none=True),
        "criteria": config.criteria.model_dump(mode="json", exclude_none=True),
        "tokenizer": config.tokenizer or "",
        "hf_token_secret": config.hf_token_secret or "",
        "max_hours": config.max_hours or 0.0,
        "earlier": {},
        "environment": environment,
    }
    if open_source:
        if missing := [variant.id for variant in config.variants if variant.url is None]:
            raise InputError(f"`variants`: {missing[0]!r} has no `url`: outside of Vertex AI only URLs are measured.")
        del given["project"], given["location"]
    return given
