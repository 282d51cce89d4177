"""`eagle-bench run`: the whole pipeline on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eagle_bench import config_file
from eagle_bench.commands import json_output
from eagle_bench.commands.interrupts import let_go_of_the_terminal, obey_signals, status_of
from eagle_bench.errors import InputError, NoUsableResult, because
from eagle_bench.units import count

if TYPE_CHECKING:
    from eagle_bench.commands.json_output import Tell
    from eagle_bench.local_vertex.settings import Settings
    from eagle_bench.runs.gathering import Gathered
    from eagle_bench.runs.local_run import LocalRun

Say = Callable[[str], None]


@click.command()
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report and results; an earlier run's are moved into earlier/ there.",
)
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
@click.option(
    "--resume",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of an earlier run: its results are taken, only what is missing is measured, and all of it goes to --out.",
)
@json_output.option
def command(
    config: Path | None,
    out: Path | None,
    engines: Path | None,
    slots: int,
    images: tuple[str, ...],
    resume: Path | None,
    as_json: bool,
) -> int:
    """Run the compiled pipeline on this machine and write a report.

    Without CONFIG, the built-in example: a small real model on the CPU, baseline against speculation.
    """
    from eagle_bench.adapters.pipeline_template import images_of
    from eagle_bench.planning.quick_checks import heed, host_checks, require_image, server_checks
    from eagle_bench.runs import local_run
    from eagle_bench.runs.folder_lock import alone_in, only_one
    from eagle_bench.runs.local_engines import (
        EXAMPLE,
        in_containers,
        settings_for,
        with_local_place,
        with_local_tokenizer,
        with_whole_paths,
    )
    from eagle_bench.tasks.stage_data import preflight

    obey_signals(once=True)
    addresses = images_of(images)
    if addresses and shutil.which("docker") is None:
        raise InputError("--image runs the components in containers, and there is no `docker` on this machine.")
    given = with_whole_paths(with_local_place(config_file.load(config or EXAMPLE)))
    require_image(given)
    if resume is None:  # what an earlier run has measured need not run any more
        heed(server_checks(given, reached_from_here=not addresses), lambda text: click.echo(text, err=True))
    heed(host_checks(given), lambda text: click.echo(text, err=True))
    folder = (out or Path(f"eagle-bench-run-{datetime.now():%Y%m%d-%H%M%S}")).resolve()
    started = time.monotonic()

    def say(text: str) -> None:
        try:
            click.echo(f"[{time.monotonic() - started:6.1f} s] {text}", err=as_json)
        except OSError:  # who read it is gone: what is measured is kept all the same
            let_go_of_the_terminal()

    elsewhere = resume is not None and resume.resolve() != folder and (resume / "local-vertex").is_dir()
    resumed = alone_in(resume, "--resume") if resume and elsewhere else nullcontext()
    with alone_in(folder), resumed, only_one() as alone, json_output.json_only(as_json) as tell:
        if not alone:
            say(
                "warning: another run measures on this machine: each slows the other, and the answers may be of that; this one goes on"
            )
        settings = settings_for(given, folder / "local-vertex", engines, slots, say)
        ready = with_local_tokenizer(given, settings)
        preflight(ready)
        if addresses:
            settings = in_containers(settings, ready)
        ended = local_run.run(ready, settings, folder, say, addresses, resume)
        return _tell(ended, settings, folder, _go_on(config, folder, engines, slots, images), tell)


def _go_on(config: Path | None, folder: Path, engines: Path | None, slots: int, images: tuple[str, ...]) -> str:
    """The command that goes on with a run, with all that this one was given."""
    words = ["eagle-bench", "run", *([str(config)] if config else []), "--resume", os.path.relpath(folder)]
    if engines:
        words += ["--engines", str(engines)]
    if slots > 1:
        words += ["--slots", str(slots)]
    return shlex.join([*words, *(word for image in images for word in ("--image", image))])


def _tell(ended: LocalRun, settings: Settings, folder: Path, go_on: str, tell: Tell) -> int:
    """Show how a run ended; the exit status comes back.

    Args:
        go_on: the command that measures what this run lacks.
    """
    from eagle_bench.commands.shown import outcome, show_results
    from eagle_bench.commands.states import failures
    from eagle_bench.tasks.compare import require_usable

    gathered = ended.gathered
    # What could not be deleted is said by `_require_clean`, with the commands.
    failed = [why for why in failures(ended.tasks, ended.error) if not (ended.left and why.startswith("teardown"))]
    tell(outcome(ended.run_id, ended.state, ended.error, gathered, folder, ended.left))
    if gathered.answer is None:
        if ended.state == "CANCELLED":
            _require_clean(ended)
            click.echo("interrupted before anything was measured; nothing is left running.", err=True)
            return status_of(ended.signal)
        raise NoUsableResult(because("nothing was measured", "; ".join(failed)), hint=f"Logs: {settings.state_dir}")
    show_results(gathered.answer, folder, name_missing=ended.state == "SUCCEEDED")
    if ended.state == "CANCELLED":
        _require_clean(ended)
        click.echo(f"interrupted; {gathered.kept}; nothing is left running.", err=True)
        _tell_missing(gathered, go_on)
        return status_of(ended.signal)
    if ended.state != "SUCCEEDED":
        click.echo(f"{'; '.join([*failed, gathered.kept])}.", err=True)
        _tell_missing(gathered, go_on)
    require_usable(gathered.answer)
    _require_clean(ended)
    return 0


def _tell_missing(gathered: Gathered, go_on: str) -> None:
    """Count the cells that were not measured to their end, and say how to measure them, where others can be taken."""
    missing = gathered.planned - gathered.whole
    if missing:
        how = f"; go on with: {go_on}" if gathered.whole else ""
        click.echo(f"{missing} of {count(gathered.planned, 'cell')} were not measured to their end{how}", err=True)


def _require_clean(ended: LocalRun) -> None:
    """Refuse to call a run done that could not delete all that it made.

    Raises:
        ServiceError: with what it was, and why.
    """
    from eagle_bench.adapters import vertex

    if ended.left:
        error = vertex.not_deleted(ended.left)
        error.hint = "Here it ended with Local Vertex; on Vertex AI it would cost money until it is deleted."
        raise error
