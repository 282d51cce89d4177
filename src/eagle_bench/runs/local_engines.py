"""The engines of this machine: what Local Vertex starts where a config deploys."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from eagle_bench.builtin import engine as builtin
from eagle_bench.config import Config
from eagle_bench.errors import InputError
from eagle_bench.local_vertex.settings import Settings, vllm
from eagle_bench.nearest import did_you_mean

EXAMPLE = Path(__file__).parents[1] / "builtin" / "example.yaml"
Say = Callable[[str], None]
BUILTIN_IMAGES = "*vllm*"
LOCAL_PLACE = {
    "project": "local-project",
    "location": "us-central1",
    "pipeline_root": "gs://local-bucket/eagle-bench",
}
# The hub is asked for data and tokenizer; nobody else needs the user's token of it.
TASK_SECRETS = dict.fromkeys(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), ("stage-data",))


def with_local_place(config: Config) -> Config:
    """A config with a project, a region and a bucket of Local Vertex where it names none: only a job needs real ones."""
    given = config.model_dump(include=set(LOCAL_PLACE), exclude_none=True)
    return config.model_copy(update={**LOCAL_PLACE, **given})


def settings_for(
    config: Config, state_dir: Path, engines: Path | None, slots: int, say: Say, *, make: bool = True
) -> Settings:
    """What Local Vertex needs: the engines the user named, or the built-in one where a variant is deployed.

    Args:
        state_dir: for its logs, buckets and the service account's key.
        engines: a YAML file that maps serving images to commands and model ids to folders.
        slots: endpoints that fit on this machine at the same time.
        make: the built-in engine is made where it is missing; False names its places alone.

    Raises:
        InputError: the file of engines, or the config's model, can't be used here.
    """
    base: dict[str, object] = {"state_dir": state_dir, "slots": slots, "task_secrets": TASK_SECRETS}
    if config.project:
        base["project_id"] = config.project
    if engines:
        return _named(engines, config, base)
    if not any(variant.deployed for variant in config.variants):
        return Settings.model_validate(base)
    if config.model != builtin.MODEL_ID:
        near = did_you_mean(config.model or "", [builtin.MODEL_ID])
        raise InputError(
            f"`model`: {config.model!r} is not on this machine; the built-in engine serves {builtin.MODEL_ID}.{near}",
            hint="Give `--engines FILE` with a command and a folder for it, or use variants with a `url`.",
        )
    if config.serving.image and not fnmatchcase(config.serving.image, BUILTIN_IMAGES):
        raise InputError(
            f"`serving.image`: the built-in engine stands for vLLM's images ({BUILTIN_IMAGES}), not for {config.serving.image!r}.",
            hint="Give `--engines FILE` with a command for it, or write `image: vllm-cpu`.",
        )
    made = builtin.ensure(say) if make else builtin.places()
    command = vllm(made.python, kv_cache_gb=1)
    models = {builtin.MODEL_ID: made.model, builtin.HEAD_ID: builtin.HEAD}
    return Settings.model_validate({**base, "engines": {"default": command, BUILTIN_IMAGES: command}, "models": models})


def _named(engines: Path, config: Config, base: dict[str, object]) -> Settings:
    """The settings with the user's engines, once they have what stands for the config's image and model."""
    try:
        data = yaml.safe_load(engines.read_text(encoding="utf-8"))
        settings = Settings.model_validate({**base, **(data or {})})
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise InputError(f"{engines}: can't be used: {error}") from None
    if any(variant.deployed for variant in config.variants):
        engine, model = settings.engine_for(config.serving.image), config.model or ""
        if engine is None:
            image = config.serving.image or "default"
            raise InputError(f"{engines}: `engines` has no command for {image!r}{_names(settings.engines)}.")
        if shutil.which(engine.command[0]) is None:
            raise InputError(f"{engines}: there is no command {engine.command[0]!r} on this machine.")
        if engine.needs_model and settings.model_folder(model) is None:
            near = did_you_mean(model, settings.models)
            raise InputError(f"{engines}: `models` has no folder for {model!r}{_names(settings.models)}.{near}")
    return settings


def _names(known: Mapping[str, object]) -> str:
    return f": it names {', '.join(known)}" if known else ""


def with_local_tokenizer(config: Config, settings: Settings) -> Config:
    """The tokenizer of a model that stands on this machine comes from its folder, not from the hub."""
    folder = settings.model_folder(config.tokenizer) if config.tokenizer else None
    return config.model_copy(update={"tokenizer": str(folder)}) if folder else config
