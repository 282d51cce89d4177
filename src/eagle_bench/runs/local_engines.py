"""The engines of this machine: what Local Vertex starts where a config deploys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from eagle_bench.builtin import engine as builtin
from eagle_bench.config import Config
from eagle_bench.errors import InputError
from eagle_bench.local_vertex.settings import Settings, vllm
from eagle_bench.nearest import did_you_mean

EXAMPLE = Path(__file__).parents[1] / "builtin" / "example.yaml"
Say = Callable[[str], None]
# The hub is asked for data and tokenizer; nobody else needs the user's token of it.
TASK_SECRETS = dict.fromkeys(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), ("stage-data",))


def settings_for(config: Config, state_dir: Path, engines: Path | None, slots: int, say: Say) -> Settings:
    """What Local Vertex needs: the engines the user named, or the built-in one where a variant is deployed.

    Args:
        state_dir: for its logs, buckets and the service account's key.
        engines: a YAML file that maps serving images to commands and model ids to folders.
        slots: endpoints that fit on this machine at the same time.

    Raises:
        InputError: the file of engines, or the config's model, can't be used here.
    """
    base: dict[str, object] = {
        "state_dir": state_dir,
        "slots": slots,
        "project_id": config.project,
        "task_secrets": TASK_SECRETS,
    }
    if engines:
        try:
            data = yaml.safe_load(engines.read_text(encoding="utf-8"))
            return Settings.model_validate({**base, **(data or {})})
        except (OSError, yaml.YAMLError, ValueError) as error:
            raise InputError(f"{engines}: can't be used: {error}") from None
    if not any(variant.deployed for variant in config.variants):
        return Settings.model_validate(base)
    if config.model != builtin.MODEL_ID:
        near = did_you_mean(config.model or "", [builtin.MODEL_ID])
        raise InputError(
            f"`model`: {config.model!r} is not on this machine; the built-in engine serves {builtin.MODEL_ID}.{near}",
            hint="Give `--engines FILE` with a command and a folder for it, or use variants with a `url`.",
        )
    made = builtin.ensure(say)
    command = vllm(made.python, kv_cache_gb=1)
    models = {builtin.MODEL_ID: made.model, builtin.HEAD_ID: builtin.HEAD}
    return Settings.model_validate({**base, "engines": {"default": command, "*vllm*": command}, "models": models})


def with_local_tokenizer(config: Config, settings: Settings) -> Config:
    """The tokenizer of a model that stands on this machine comes from its folder, not from the hub."""
    folder = settings.model_folder(config.tokenizer) if config.tokenizer else None
    return config.model_copy(update={"tokenizer": str(folder)}) if folder else config
