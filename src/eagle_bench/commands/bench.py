"""`eagle-bench bench`: one endpoint at one concurrency."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from eagle_bench.commands import cell_file
from eagle_bench.commands.interrupts import let_go_of_the_terminal
from eagle_bench.config import least_requests
from eagle_bench.errors import InputError, NoUsableResult
from eagle_bench.report.cell import shown
from eagle_bench.results import CellSettings
from eagle_bench.workload.conversations import is_text

if TYPE_CHECKING:
    from eagle_bench.adapters.vllm_client import Progress
    from eagle_bench.workload.prompts import StagedPrompt

_POSITIVE = click.IntRange(min=1)


def _finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Ranges let "nan" and "inf" through."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


def _text(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """What the system could not decode arrives with halves of surrogate pairs, which can't be sent or stored."""
    if value is not None and not is_text(value):
        raise click.BadParameter(f"{value!r} is not text in UTF-8.")
    return value


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("it is empty: a comparison tells the sides by it.")
    return _text(context, parameter, value) or value


@click.command(name="bench")
@click.option("--base-url", required=True, metavar="URL", help="Up to and with /v1, of any OpenAI-compatible server.")
@click.option("--concurrency", required=True, type=_POSITIVE, metavar="N", help="Requests in flight at any time.")
@click.option(
    "--prompts",
    "prompts_file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="ShareGPT JSON, JSONL with `prompt` or `messages`, or CSV.",
)
@click.option("--prompt-column", metavar="NAME", help="Column of a CSV file that holds the prompt.  [default: prompt]")
@click.option("--num-prompts", type=_POSITIVE, metavar="N", help="How many to measure.  [default: all in the file]")
@click.option(
    "--tokenizer", metavar="ID_OR_DIR", help="Counts tokens where the server sends no usage: a folder or a hub id."
)
@click.option("--max-tokens", type=_POSITIVE, default=512, show_default=True, metavar="N", help="Limit of an answer.")
@click.option(
    "--rounds",
    type=_POSITIVE,
    default=3,
    show_default=True,
    metavar="R",
    help="Rounds that the prompts are divided among.",
)
@click.option(
    "--model",
    metavar="NAME",
    callback=_text,
    help="Model name in requests.  [default: the first that the server lists]",
)
@click.option(
    "--variant",
    default="endpoint",
    show_default=True,
    metavar="ID",
    callback=_name,
    help="Name of this side in a comparison.",
)
@click.option("--api-key-env", metavar="VAR", help="Environment variable that holds the bearer token.")
@click.option(
    "--request-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="S",
    callback=_finite,
    help="Limit of one answer, in seconds.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses among the prompts of a larger file.")
@click.option("--ignore-eos", is_flag=True, help="Answers of fixed length; the result is labelled.")
@click.option(
    "--precision",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    callback=_finite,
    help="End after a round once the 95 % intervals are narrower than this, such as 0.02.",
)
@click.option(
    "--out",
    required=True,
    metavar="cell.json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the result; what it held is moved into earlier/ beside it.",
)
def command(
    base_url: str,
    concurrency: int,
    prompts_file: Path,
    prompt_column: str | None,
    num_prompts: int | None,
    tokenizer: str | None,
    max_tokens: int,
    rounds: int,
    model: str | None,
    variant: str,
    api_key_env: str | None,
    request_timeout: float,
    seed: int,
    ignore_eos: bool,
    precision: float | None,
    out: Path,
) -> None:
    """Measure one endpoint at one concurrency and write cell.json.

    Exit status 4 when no request succeeded; the file is written all the same. A server to which no connection can be made
    is refused before that, with status 2.
    """
    started, heard = threading.Event(), list[int]()
    with _ended_before(started, heard):
        from eagle_bench.adapters import sources
        from eagle_bench.adapters.vllm_client import measure
        from eagle_bench.commands import bench_progress, bench_server
        from eagle_bench.workload import cell_prompts

        out = cell_file.place(out, prompts_file)
        server = bench_server.named(base_url, api_key_env)
        folder = sources.fetch_tokenizer(tokenizer, None) if tokenizer else None
        warmup, measured = cell_prompts(
            prompts_file,
            concurrency=concurrency,
            num_prompts=num_prompts,
            rounds=1,
            tokenizer=folder,
            seed=seed,
            prompt_column=prompt_column,
            max_output_tokens=max_tokens,
        )
        measured = _in_rounds(measured, rounds, concurrency, prompts_file)
        if len(measured) < (least := least_requests(concurrency)):
            click.echo(
                f"{len(measured)} prompts are measured, but no verdict: concurrency {concurrency} needs {least}",
                err=True,
            )
        server = bench_server.reached(server, model)
        click.echo("starting vLLM's client; it takes some seconds to load", err=True)

        tell = bench_progress.telling()

        def on_progress(progress: Progress) -> None:
            started.set()
            tell(progress)

        result = measure(
            server,
            warmup,
            measured,
            variant=variant,
            concurrency=concurrency,
            settings=CellSettings(
                max_output_tokens=max_tokens,
                ignore_eos=ignore_eos,
                requests=len(measured),
                rounds=measured[-1].round + 1,
                warmup_requests=len(warmup),
                request_timeout_s=request_timeout,
                seed=seed,
                shape="answers of fixed length" if ignore_eos else None,
                precision=precision,
            ),
            tokenizer=folder,
            on_progress=on_progress,
            on_signal=heard.append,
        )
        started.set()
        result = cell_file.held_against_earlier(result, out)
        cell_file.write(result, out)
    for line in shown(result):
        click.echo(line)
    click.echo(f"written: {click.format_filename(out)}")
    for warning in result.warnings:
        if warning.startswith("failure_rate"):
            click.echo(f"eagle-bench: {warning.partition(': ')[2]}", err=True)
    if any(warning.startswith("interrupted") for warning in result.warnings):
        raise KeyboardInterrupt(signal.Signals(heard[0]).name if heard else "")
    if result.metrics is None:
        reason = result.failure.message if result.failure else "No request succeeded."
        raise NoUsableResult(f"{base_url}: {reason}", hint=f"What there is stands in {out}.")


@contextmanager
def _ended_before(started: threading.Event, heard: list[int]) -> Iterator[None]:
    """Until `started` is set, SIGTERM or a closed terminal ends the command at once; from then on a result is due.

    While a cell runs it takes SIGTERM itself, and a closed terminal is told to it as that.
    """

    def end(number: int, _: FrameType | None) -> None:
        if not started.is_set() and signal.getsignal(signal.SIGTERM) is end:  # else a cell runs and has taken it over
            if number == signal.SIGTERM:
                click.echo("eagle-bench: ended by SIGTERM before anything was measured.", err=True)
            # An exception would have to find its way out of a half-done import, and many of them catch everything.
            os._exit(128 + number)
        if number == signal.SIGHUP:
            heard.append(number)
            let_go_of_the_terminal()
            os.kill(os.getpid(), signal.SIGTERM)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # `nohup` stays what it is
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_rounds(prompts: Sequence[StagedPrompt], rounds: int, concurrency: int, path: Path) -> list[StagedPrompt]:
    """Share the prompts among rounds of at least `concurrency` each: a smaller round never holds the level.

    Raises:
        InputError: they are not enough for one.
    """
    count = len(prompts)
    if count < concurrency:
        raise InputError(
            f"{path}: {count} prompt{'s' if count > 1 else ''} can't keep {concurrency} requests in flight.",
            hint=f"Measure at least {concurrency} prompts, better {3 * concurrency}, or lower --concurrency.",
        )
    possible = min(rounds, count // concurrency)
    if possible < rounds:
        click.echo(
            f"{count} prompt{'s are' if count > 1 else ' is'} enough for {possible} round{'s' if possible > 1 else ''} "
            f"at concurrency {concurrency}, not for {rounds}.",
            err=True,
        )
    return [p.model_copy(update={"round": index * possible // len(prompts)}) for index, p in enumerate(prompts)]
