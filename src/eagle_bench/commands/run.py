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
from eagle_bench.commands import json_output
from eagle_bench.errors import InputError, NoUsableResult

if TYPE_CHECKING:
    from eagle_bench.commands.json_output import Tell
    from eagle_bench.config import Config
    from eagle_bench.local_run import LocalRun
    from eagle_bench.local_vertex.settings import Settings
    from eagle_bench.outcomes import RunOutcome

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
@json_output.option
def command(
    config: Path | None, out: Path | None, engines: Path | None, slots: int, images: tuple[str, ...], as_json: bool
) -> int:
    """Run the compiled pipeline on this machine and write a report.

    Without CONFIG, the built-in example: a small real model on the CPU, baseline against speculation.
    """
    from eagle_bench.adapters.pipeline_template import images_of
    from eagle_bench.local_engines import EXAMPLE, settings_for, with_local_tokenizer
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
        click.echo(f"[{time.monotonic() - started:6.1f} s] {text}", err=as_json)

    settings = settings_for(given, folder / "local-vertex", engines, slots, say)
    ready = with_local_tokenizer(given, settings)
    preflight(ready)
    if addresses:
        settings = settings.model_copy(update={"docker": ("docker",)})
    with json_output.json_only(as_json) as tell:
        return _run(ready, settings, folder, say, addresses, tell)


def _run(config: Config, settings: Settings, folder: Path, say: Say, images: Mapping[str, str], tell: Tell) -> int:
    from rich.console import Console

    from eagle_bench import local_run
    from eagle_bench.plain_text import plain_line
    from eagle_bench.report.terminal import print_comparison
    from eagle_bench.tasks.compare import require_usable

    ended = local_run.run(config, settings, folder, say, images)
    gathered = ended.gathered
    tell(_outcome(ended, folder))
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


def _outcome(ended: LocalRun, folder: Path) -> RunOutcome:
    from eagle_bench.outcomes import Answer, RunOutcome

    answer = ended.gathered.answer
    return RunOutcome(
        run_id=ended.run_id,
        state=ended.state,
        error=ended.error,
        cells=ended.gathered.cells,
        planned=ended.gathered.planned,
        out=str(folder),
        report=str(folder / "report.html") if answer else None,
        comparison=str(folder / "comparison.json") if answer else None,
        answer=Answer.of(answer) if answer else None,
    )


def _obey_signals() -> None:
    """Let Ctrl-C and TERM end a run in order, also where the shell started it with them ignored."""

    def interrupted(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
