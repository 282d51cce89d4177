"""What Local Vertex needs to know: how images and models of Vertex AI stand on this machine."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from eagle_bench.local_vertex.faults import Fault


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Engine(Part):
    """The command that stands for a serving image.

    `command` may hold `{model}` (a folder), `{served_model}` (the name in requests), `{host}` and `{port}`;
    the variant's own arguments follow it, without those flags that this machine decides.
    """

    command: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)
    health_route: str = "/health"
    decides: tuple[str, ...] = ("--model", "--host", "--port", "--served-model-name")

    @field_validator("command")
    @classmethod
    def _with_a_program(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not command or not command[0].strip():
            raise ValueError("is empty: it needs a program, and the arguments that serve a model with it")
        return command

    def argv(self, *, model: str, served_model: str, host: str, port: int, args: tuple[str, ...]) -> tuple[str, ...]:
        """The whole command line for one deployed model."""
        places = {"{model}": model, "{served_model}": served_model, "{host}": host, "{port}": str(port)}
        pattern = re.compile("|".join(re.escape(place) for place in places))
        filled = (pattern.sub(lambda found: places[found.group()], part) for part in self.command)
        return (*filled, *_without(args, self.decides))

    @property
    def needs_model(self) -> bool:
        """Whether the command wants a model's folder."""
        return any("{model}" in part for part in self.command)


def vllm(python: Path, *, kv_cache_gb: int = 2) -> Engine:
    """vLLM's OpenAI server on the CPU, run by the Python of an environment that has it.

    Its OpenMP library is loaded first when the environment brings one: vLLM's CPU workers need it. The model runs in
    the engine's own process: a worker process of its own would keep one of few cores busy by waiting for it. It leaves a
    core to the client: threads that wait for one that was interrupted made its rounds differ by a factor of two.
    """
    cores = len(os.sched_getaffinity(0))
    library = next(iter(sorted(python.parent.parent.glob("lib*/libiomp5.so"))), None)
    env = {
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gb),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # or vLLM for CPUs puts the worker process back
        "OMP_NUM_THREADS": str(max(1, cores - 1)),
    }
    if library:
        env["LD_PRELOAD"] = str(library)
    server = ("-m", "vllm.entrypoints.openai.api_server", "--model", "{model}", "--served-model-name", "{served_model}")
    here = ("--host", "{host}", "--port", "{port}", "--distributed-executor-backend", "uni")
    return Engine(command=(str(python), *server, *here), env=env)


class Denied(Part):
    """A permission that an account (all of them, when None) doesn't have on resources of a name or pattern."""

    permission: str
    resource: str = "*"
    account: str | None = None


class Quota(Part):
    """A quota's limit (-1: none), and how much is in use. Without a region it holds in several."""

    limit: int = Field(ge=-1)
    used: int = Field(0, ge=0)
    region: str | None = None


class Settings(Part):
    """Everything a server of Local Vertex is started with.

    `engines` maps image names (or patterns such as `*sglang*`) to commands; `default` stands for deploys that
    name no image. `models` maps model ids, as the config gives them, to folders.
    """

    state_dir: Path
    port: int = Field(0, ge=0, le=65535, description="0: any free one")
    slots: int = Field(1, ge=1, description="endpoints that fit on this machine at the same time")
    turn_linger_s: float = Field(2.0, ge=0, description="how long an idle endpoint keeps its turn; for 2 slots or more")
    engines: dict[str, Engine] = Field(default_factory=dict)
    models: dict[str, Path] = Field(default_factory=dict)
    secrets: dict[str, Path] = Field(default_factory=dict, description="Secret Manager's names -> files")
    token_lifetime_s: float = Field(3600.0, gt=0)
    stop_grace_s: float = Field(10.0, ge=0, description="between TERM and KILL")
    denied: tuple[Denied, ...] = Field((), description="what isn't allowed; all else is")
    absent: tuple[str, ...] = Field((), description="names or patterns of buckets, accounts, secrets that aren't there")
    quotas: dict[str, Quota] = Field(default_factory=dict, description="by quota id; others have no limit")
    project_id: str = "local-project"
    project_number: int = 100000000001
    task_secrets: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="secret variables of the user's environment -> the tasks that get them"
    )
    docker: tuple[str, ...] = Field((), description="runs tasks in their images: `docker`; without it, as processes")
    readable: tuple[Path, ...] = Field(
        (), description="what tasks in containers read of this machine, beside the models"
    )
    faults: tuple[Fault, ...] = ()

    @field_validator("state_dir", "models", "secrets")
    @classmethod
    def _absolute(cls, paths: Path | dict[str, Path]) -> Path | dict[str, Path]:
        """Engines and jobs run in folders of their own: relative paths would mean something else there."""
        return {key: path.absolute() for key, path in paths.items()} if isinstance(paths, dict) else paths.absolute()

    def engine_for(self, image: str | None) -> Engine | None:
        """The engine that stands for an image: by its exact name, then by the first pattern that fits."""
        if not image:
            return self.engines.get("default")
        if image in self.engines:
            return self.engines[image]
        return next((engine for pattern, engine in self.engines.items() if fnmatchcase(image, pattern)), None)

    def model_folder(self, model: str) -> Path | None:
        """The folder of a model id; Vertex AI doesn't keep the case of ids, so neither does this."""
        return next((folder for known, folder in self.models.items() if known.lower() == model.lower()), None)

    def with_folders(self, text: str) -> str:
        """An engine's argument with the model ids in it (of a draft, say) replaced by their folders."""
        if not self.models:
            return text
        longest_first = sorted(self.models, key=len, reverse=True)
        known = rf"(?<![\w./-])({'|'.join(map(re.escape, longest_first))})(?![\w./-])"
        return re.sub(known, lambda found: str(self.models[found[1]]), text)


def _without(args: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    skip_value = False
    for arg in args:
        if skip_value and not arg.startswith("-"):
            skip_value = False
            continue
        skip_value = arg in flags
        if not skip_value and arg.split("=", 1)[0] not in flags:
            kept.append(arg)
    return tuple(kept)
