"""`eagle-bench run`: the whole pipeline on this machine."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from eagle_bench import config_file
from eagle_bench.errors import InputError, NoUsableResult
from eagle_bench.nearest import did_you_mean

if TYPE_CHECKING:
    from eagle_bench.config import Config
    from eagle_bench.local_vertex.settings import Settings

EXAMPLE = Path(__file__).parent.parent / "builtin" / "example.yaml"
INTERRUPTED = 130
Say = Callable[[str], None]


@click.command()
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for report and results.")
@click.option(
    "--engines",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file that maps serving images to commands and model ids to folders on this machine.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    help="Endpoints that fit on this machine at the same time; with 2 or more, variants take turns level by level.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="[NAME=]ADDRESS",
    help="Run the components in these images, with Docker, as Vertex AI does; as for `compile`.",
)
def command(config: Path | None, out: Path | None, engines: Path | None, slots: int, images: tuple[str, ...]) -> int:
    """Run the compiled pipeline on this machine and write a report.

    Without CONFIG, the built-in example: a small real model on the CPU, baseline against speculation.
    """
    from eagle_bench.adapters.pipeline_template import images_of
    from eagle_bench.tasks.stage_data import preflight

    _obey_signals()
    addresses = images_of(images)
    if addresses and shutil.which("docker") is None:
        raise InputError("--image runs the components in containers, and there is no `docker` on this machine.")
    given = config_file.load(config or EXAMPLE, needs=("pipeline_root",))
    folder = (out or Path(f"eagle-bench-run-{datetime.now():%Y%m%d-%H%M%S}")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()

    def say(text: str) -> None:
        click.echo(f"[{time.monotonic() - started:6.1f} s] {text}")

    settings = _settings(given, folder, engines, slots, say)
    ready = _with_local_tokenizer(given, settings)
    preflight(ready)
    if addresses:
        settings = settings.model_copy(update={"docker": ("docker",)})
    return _run(ready, settings, folder, say, addresses)


def _run(config: Config, settings: Settings, folder: Path, say: Say, images: Mapping[str, str]) -> int:
    from rich.console import Console

    from eagle_bench import local_run
    from eagle_bench.plain_text import plain_line
    from eagle_bench.report.terminal import print_comparison
    from eagle_bench.tasks.compare import require_usable

    ended = local_run.run(config, settings, folder, say, images)
    gathered = ended.gathered
    kept = f"{gathered.cells} of {gathered.planned} cells were measured"
    if gathered.answer is None:
        why = f" {ended.error}" if ended.error else ""
        if ended.state == "CANCELLED":
            click.echo("interrupted before anything was measured; nothing is left running.", err=True)
            return INTERRUPTED
        raise NoUsableResult(f"the run ended {ended.state} without a result.{why}", hint=f"Logs: {settings.state_dir}")
    print_comparison(gathered.answer, Console())
    click.echo(f"\nreport:  {folder / 'report.html'}\nresults: {folder / 'comparison.json'}, {folder / 'results'}/")
    for cell in gathered.answer.cells:
        if cell.failure or cell.counts.failed:
            why = cell.failure.message if cell.failure else "the report shows what the server said"
            share = (
                f"{cell.counts.failed} of {cell.counts.requested} requests failed: " if cell.counts.requested else ""
            )
            click.echo(plain_line(f"{cell.variant} at concurrency {cell.concurrency}: {share}{why[:200]}"), err=True)
    if ended.state == "CANCELLED":
        click.echo(f"interrupted; {kept} and kept; nothing is left running.", err=True)
        return INTERRUPTED
    if ended.state != "SUCCEEDED":
        click.echo(f"the run ended {ended.state}; {kept} and kept. {ended.error or ''}", err=True)
    require_usable(gathered.answer)
    return 0


def _obey_signals() -> None:
    """Let Ctrl-C and TERM end a run in order, also where the shell started it with them ignored."""

    def interrupted(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)


def _settings(config: Config, folder: Path, engines: Path | None, slots: int, say: Say) -> Settings:
    """What Local Vertex needs: the engines the user named, or the built-in one where a variant is deployed."""
    import yaml

    from eagle_bench.builtin import engine as builtin
    from eagle_bench.local_vertex.settings import Settings, vllm

    base = {"state_dir": folder / "local-vertex", "slots": slots, "project_id": config.project}
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
    return Settings.model_validate(
        {**base, "engines": {"default": command, "*vllm*": command}, "models": {builtin.MODEL_ID: made.model}}
    )


def _with_local_tokenizer(config: Config, settings: Settings) -> Config:
    """The tokenizer of a model that stands on this machine comes from its folder, not from the hub."""
    folder = settings.model_folder(config.tokenizer) if config.tokenizer else None
    return config.model_copy(update={"tokenizer": str(folder)}) if folder else config
