"""The pipeline template: compiling it, and the parameters that a config means."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from eagle_bench.config import Config
from eagle_bench.errors import InputError
from eagle_bench.variants import resolve

IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:@]*")


def compile_template(path: Path, *, image: str | None = None) -> str:
    """Write the pipeline as one YAML document, and give its SHA-256.

    Args:
        image: address of a built image, in place of the name that the components carry.

    Raises:
        InputError: the file can't be written under this name, or the image's address can't be one.
    """
    if path.suffix not in {".yaml", ".yml"}:
        raise InputError(f"{path}: a template's name must end in .yaml or .yml.")
    if image is not None and not IMAGE.fullmatch(image):
        raise InputError(f"--image {image[:60]!r}: not an image's address, such as us-docker.pkg.dev/…/bench@sha256:….")
    from kfp import compiler

    from eagle_bench.components._image import BENCH_IMAGE
    from eagle_bench.pipelines.eagle_benchmark import eagle_benchmark

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        compiler.Compiler().compile(eagle_benchmark, str(path))
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror or error}.") from None
    if image:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f"image: {BENCH_IMAGE}\n", f"image: {image}\n"), encoding="utf-8")
    return sha256_of(path)


def sha256_of(path: Path) -> str:
    """Hash of a template's bytes: what `compile` wrote and what ran are the same if it is."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def parameters(config: Config, environment: dict[str, str]) -> dict[str, Any]:
    """The pipeline's parameters. They show in the console: nothing in them is secret.

    Args:
        environment: where and with what the run is made, as the report shows it.
    """
    return {
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
        "environment": environment,
    }
