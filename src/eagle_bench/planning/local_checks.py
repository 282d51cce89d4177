"""What this machine has of a run that is meant for it: the engine that serves its variants, and their tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eagle_bench.adapters import sources
from eagle_bench.builtin.engine import MODEL_ID
from eagle_bench.config import ON_VERTEX_AI, Config
from eagle_bench.errors import InputError
from eagle_bench.planning.cloud_checks import answered
from eagle_bench.planning.quick_checks import require_image
from eagle_bench.run_plan import Check
from eagle_bench.runs.local_engines import settings_for
from eagle_bench.units import conjunction

STATE = Path("local-vertex")  # named, never made


def engine_checks(config: Config, engines: Path | None) -> Iterator[Check]:
    """Whether the engine is there that `run` would start, and the tokenizer where it comes with the model.

    Args:
        engines: the file of `--engines`; None for the built-in engine.
    """
    try:
        require_image(config)
        settings = settings_for(config, STATE, engines, 1, lambda text: None, make=False)
    except InputError as error:
        elsewhere = (
            ""
            if config.project
            else f"For a job on Vertex AI set {conjunction([f'`{name}`' for name in ON_VERTEX_AI])}."
        )
        hint = " ".join(filter(None, [error.hint, elsewhere])) or None
        yield Check(name="engine", status="refused", text=error.message, hint=hint)
        return
    engine = settings.engine_for(config.serving.image)
    assert engine is not None
    made = engines is not None or Path(engine.command[0]).exists()
    serves = f"{engines or 'the built-in engine'} serves {config.model} on this machine"
    yield Check(name="engine", status="ok", text=f"{serves}." if made else f"{serves}; `run` makes it first, once.")
    folder = settings.model_folder(config.tokenizer or "")
    if folder is not None:
        yield answered("tokenizer", lambda: _tokenizer(config, folder, made=made))


def served_by_builtin(config: Config) -> bool:
    """Whether the built-in engine serves what this config deploys, where no engines of this machine are named."""
    return config.model == MODEL_ID and any(variant.deployed for variant in config.variants)


def _tokenizer(config: Config, folder: Path, *, made: bool) -> str:
    if not made:
        return f"{config.tokenizer} comes with the engine."
    sources.check_tokenizer(str(folder), None)
    return f"{config.tokenizer} can be read in {folder}."
