"""`eagle-bench bench`: one endpoint at one concurrency."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from eagle_bench.errors import InputError, NoUsableResult
from eagle_bench.results import CellResult, CellSettings, Summary
from eagle_bench.units import NOTHING, milliseconds, rate, significant

if TYPE_CHECKING:
    from eagle_bench.adapters.vllm_client import Target
    from eagle_bench.workload.prompts import StagedPrompt

_POSITIVE = click.IntRange(min=1)


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
    "--rounds", type=_POSITIVE, default=3, show_default=True, metavar="R", help="Repeats that share the prompts."
)
@click.option("--model", metavar="NAME", help="Model name in requests.  [default: the first that the server lists]")
@click.option(
    "--variant", default="endpoint", show_default=True, metavar="ID", help="Name of this side in a comparison."
)
@click.option("--api-key-env", metavar="VAR", help="Environment variable that holds the bearer token.")
@click.option(
    "--request-timeout", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True, metavar="S"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses among the prompts of a larger file.")
@click.option("--ignore-eos", is_flag=True, help="Answers of fixed length; the result is labelled.")
@click.option(
    "--precision",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="End after a round once the 95 % intervals are narrower than this, such as 0.02.",
)
@click.option("--out", required=True, metavar="cell.json", type=click.Path(path_type=Path, dir_okay=False))
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

    Exit status 4 when no request succeeded; the file is written all the same.
    """
    from eagle_bench.adapters.vllm_client import measure
    from eagle_bench.workload import cell_prompts

    folder = _tokenizer_folder(tokenizer) if tokenizer else None
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
    measured = _in_rounds(measured, rounds, concurrency)
    _make_folder(out)
    result = measure(
        _target(base_url, model, api_key_env),
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
        on_progress=lambda progress: click.echo(str(progress), err=True),
    )
    out.write_text(result.model_dump_json(), encoding="utf-8")
    _report(result, out)
    if any(warning.startswith("interrupted") for warning in result.warnings):
        raise click.Abort
    if result.metrics is None:
        reason = result.failure.message if result.failure else "No request succeeded."
        raise NoUsableResult(f"{base_url}: {reason}", hint=f"What there is stands in {out}.")


def _in_rounds(prompts: Sequence[StagedPrompt], rounds: int, concurrency: int) -> list[StagedPrompt]:
    """Share the prompts among rounds of at least `concurrency` each: a smaller round never holds the level."""
    possible = min(rounds, max(1, len(prompts) // concurrency))
    if possible < rounds:
        click.echo(
            f"{len(prompts)} prompts are enough for {possible} round{'s' if possible > 1 else ''} "
            f"at concurrency {concurrency}, not for {rounds}.",
            err=True,
        )
    return [p.model_copy(update={"round": index * possible // len(prompts)}) for index, p in enumerate(prompts)]


def _target(base_url: str, model: str | None, api_key_env: str | None) -> Target:
    import asyncio

    from eagle_bench.adapters.vllm_client import Target
    from eagle_bench.adapters.vllm_client.pages import served_model
    from eagle_bench.adapters.vllm_client.target import address

    address(base_url)
    token = _token(api_key_env)
    at_root = not urlsplit(base_url).path.strip("/")
    for url in (base_url, base_url.rstrip("/") + "/v1") if at_root else (base_url,):
        if model is None:
            model = asyncio.run(served_model(url, token() if token else None))
    root = base_url.rstrip("/").removesuffix("/v1")
    return Target(base_url=base_url, model=model or "", token=token, metrics_url=f"{root}/metrics")


def _token(variable: str | None) -> Callable[[], str] | None:
    if variable is None:
        return None
    value = os.environ.get(variable, "")
    if not value.strip():
        raise InputError(f"--api-key-env {variable}: there is no such environment variable, or it is empty.")
    return lambda: value


def _tokenizer_folder(name: str) -> Path:
    """A folder as it is; a hub id is downloaded: the tokenizer's files, never weights."""
    path = Path(name)
    if path.is_dir():
        return path
    if path.is_absolute() or name.startswith(".") or name.count("/") != 1:
        raise InputError(f"--tokenizer {name}: there is no such folder, and it is not a Hugging Face id (owner/name).")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.jinja", "*.txt", "tokenizer.model"]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(
            f"--tokenizer {name}: it can't be downloaded: {str(error).splitlines()[0]}",
            hint="Accept the model's terms on its page and set HF_TOKEN, or give a folder.",
        ) from None


def _make_folder(out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a"):
            pass
    except OSError as error:
        raise InputError(f"--out {out}: it can't be written: {error.strerror}.") from None


def _report(result: CellResult, out: Path) -> None:
    """A short table, and what is suspect."""
    metrics, count = result.metrics, result.counts

    def shown(summary: Summary | None) -> str:
        return milliseconds(summary.p50) if summary else NOTHING

    rows = [
        ("TPOT, median", shown(metrics.tpot_ms) if metrics else NOTHING),
        ("TTFT, median", shown(metrics.ttft_ms) if metrics else NOTHING),
        ("E2E, median", shown(metrics.e2e_ms) if metrics else NOTHING),
        ("Output", rate(metrics.output_tokens_per_s, "tok/s") if metrics else NOTHING),
        ("Failed", f"{count.failed} of {count.requested}"),
    ]
    if result.acceptance is not None and result.acceptance.source != "chunks":
        rows.insert(4, ("Acceptance length", significant(result.acceptance.length)))
    click.echo(f"{result.variant} at concurrency {result.concurrency}")
    for name, value in rows:
        click.echo(f"  {name:<18} {value:>12}")
    for warning in result.warnings:
        click.echo(f"  ! {warning}")
    click.echo(f"written: {out}")
