"""`eagle-bench init`: a config to begin with."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from eagle_bench.commands import init_servers
from eagle_bench.commands.choices import Choice
from eagle_bench.commands.init_answers import Answers
from eagle_bench.errors import InputError
from eagle_bench.machines import MACHINES
from eagle_bench.placeholders import DRAFT, MEANT, WEIGHTS, to_fill
from eagle_bench.secrecy import base_url, without_credentials

USUAL_MACHINE = "a3-highgpu-8g"
PLACE = ("project", "location", "bucket", "service_account", "hf_token_secret")  # flags of a job on Vertex AI
# Where the two engines' servers answer, and how they are told to speculate.
ROUTES: dict[str, dict[str, Any]] = {
    "sglang": {"port": 30000, "health_route": "/health", "predict_route": "/vertex_generate"},
    "vllm": {"port": 8000, "health_route": "/health", "invoke_route": True},
}
SPECULATION: dict[str, Callable[[str], list[str]]] = {
    "sglang": lambda draft: [
        "--speculative-algo=EAGLE3",
        f"--speculative-draft-model-path={draft}",
        "--speculative-num-steps=3",
        "--speculative-eagle-topk=4",
        "--speculative-num-draft-tokens=8",
    ],
    "vllm": lambda draft: [
        f'--speculative-config={{"method": "eagle3", "model": "{draft}", "num_speculative_tokens": 3}}'
    ],
}
SHARED_MEMORY_MB = 16384  # with several GPUs: their processes speak through it, and Vertex AI gives 64 MB unasked
SHARDED = {"sglang": "--tp={}", "vllm": "--tensor-parallel-size={}"}  # over all GPUs of the machine
# A host without a scheme: one with a port or a path, or else no key could be told from it.
ADDRESS = re.compile(r"(localhost|[\w-]+(\.[\w-]+)*:\d+|[\w-]+(\.[\w-]+)+(?=/)|\d+(\.\d+){3})(/[^@?#\s]*)?")


def _pairs(_: click.Context, param: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [text.partition("=") for text in given]
    if not all(name and equals and value for name, equals, value in found):
        raise click.BadParameter("it must be ID=VALUE, such as eagle3=http://10.0.0.7:8000/v1.")
    return [(name, value) for name, _, value in found]


def _urls(context: click.Context, param: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, _url(name, url)) for name, url in _pairs(context, param, given)]


def _url(name: str, url: str) -> str:
    shown = f"{name}={without_credentials(url)}"
    if ADDRESS.fullmatch(url):
        raise click.BadParameter(f"{shown}: `http://` is missing, as in {name}=http://{url}.")
    if not re.match(r"https?://[^/\s]", url):  # what it is nobody knows: it may be a key, and is not said again
        raise click.BadParameter(f"{name}=…: it must start with http:// or https:// and a host.")
    try:
        base_url(url)
    except ValueError as error:
        raise click.BadParameter(f"{shown} {error}.") from None
    return url


def _levels(_: click.Context, __: click.Parameter, given: str | None) -> list[int] | None:
    if given is None:
        return None
    try:
        return [int(level) for level in given.split(",")]
    except ValueError:
        raise click.BadParameter(f"{given!r} must be numbers with commas, such as 1,2,4.") from None


@click.command()
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("bench.yaml"),
              show_default=True, help="File to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--url", "urls", multiple=True, metavar="ID=URL", callback=_urls,
              help="A server that runs already; give two or more.")  # fmt: skip
@click.option("--endpoint", "endpoints", multiple=True, metavar="ID=NAME", callback=_pairs,
              help="A Vertex AI endpoint that runs already, by its resource name; give two or more.")  # fmt: skip
@click.option("--project", metavar="ID", help="Google Cloud project.")
@click.option("--location", metavar="REGION", help="Region.  [default: us-central1]")
@click.option("--bucket", metavar="gs://…", help="Folder for the artifacts of runs.")
@click.option(
    "--service-account", metavar="EMAIL", help="Account that the job runs as; without, the project's default."
)
@click.option("--hf-token-secret", metavar="NAME",
              help="Secret Manager's name of a Hugging Face token, for what is gated; never the token.")  # fmt: skip
@click.option("--model", metavar="ID", help="publisher/model@version of Model Garden, or a Hugging Face id.")
@click.option("--tokenizer", metavar="ID", help="Hugging Face id, gs:// or local folder.")
@click.option("--image", metavar="ADDRESS", help="Serving container.")
@click.option("--engine", type=Choice(sorted(SPECULATION)), help="What that container runs.")
@click.option("--weights", metavar="ID", help="Its weights: a gs:// folder or a Hugging Face id.")
@click.option("--draft", metavar="ID", help="The draft model: a gs:// folder or a Hugging Face id.")
@click.option("--machine-type", metavar="NAME", help="Compute Engine's name of the machine.")
@click.option("--accelerator", metavar="TYPE=COUNT", help="The machine's GPUs, such as NVIDIA_H100_80GB=8.")
@click.option("--dataset", metavar="NAME", help="Prompts: builtin, sharegpt, a path or an address.")
@click.option("--concurrency", metavar="N,N,…", callback=_levels, help="The levels, such as 1,2,4,8.")
def command(output: Path, force: bool, urls: list[tuple[str, str]], endpoints: list[tuple[str, str]],
            concurrency: list[int] | None, **given: str | None) -> None:  # fmt: skip
    """Write a config with comments, from answers or flags.

    At a terminal it asks for what no flag says, unless all is said that has no default: first whether servers run already. Elsewhere it takes defaults,
    and refuses where there is none. With --url or --endpoint it compares what runs already; without, it deploys a model twice.
    """
    from eagle_bench import config_file, config_template
    from eagle_bench.adapters.whole_files import write_files
    from eagle_bench.tasks.stage_data import check_here, usable_prompts
    from eagle_bench.workload.fitting import USUAL_LEVELS, USUAL_PROMPTS, levels_for, prompts_per_level

    if output.exists() and not force:
        raise InputError(f"{output}: is there already.", hint="Give another --output, or --force.")
    if asked := not (urls or endpoints) and init_servers.wanted(given, _url):
        urls = asked.complete()
    running = [{"id": name, "url": _with_path(url)} for name, url in urls]
    running += [{"id": name, "endpoint": resource} for name, resource in endpoints]
    placed = bool(endpoints) or any(given[name] for name in PLACE) or not running
    needed = _needed(given, running=bool(running), placed=placed, endpoints=bool(endpoints))
    answers = Answers(given, needed, asked=bool(asked))
    values = _running(answers, running, placed=placed, endpoints=bool(endpoints)) if running else _deployed(answers)
    dataset = answers.get(
        "dataset", "Prompts: builtin, sharegpt, a path or an address", "builtin" if running else "sharegpt"
    )
    prompts = None if dataset == "builtin" else usable_prompts(dataset)
    usual = (1, 2, 4) if dataset == "builtin" else USUAL_LEVELS if prompts is None else levels_for(prompts)
    if concurrency is None:
        levels = answers.get("levels", "Levels of concurrency to measure", ",".join(map(str, usual)))
        concurrency = [int(level) for level in levels.split(",")]
    answers.refuse_unused("servers and endpoints that run already" if running else "a model that is deployed")
    each = (
        200 if dataset == "builtin" else USUAL_PROMPTS if prompts is None else prompts_per_level(prompts, concurrency)
    )
    values |= {"workload": {"dataset": dataset, "prompts_per_level": each}, "concurrency": concurrency}
    text = config_template.render(values)
    config = config_file.parse(text, source=str(output), filled=False)
    write_files({output: text})
    click.echo(f"{output} is written.")
    try:
        check_here(config)
    except InputError as error:
        click.echo(f"warning: {error}", err=True)
    for word in MEANT:
        if word in text:
            click.echo(to_fill(word))
    go = "submit" if placed else "run"
    click.echo(f"Next: eagle-bench plan {output}, then eagle-bench {go} {output}")


def _with_path(url: str) -> str:
    """A URL that ends behind the host gets the path that servers of OpenAI's API have, and that is said."""
    base = url.rstrip("/")
    if not re.fullmatch(r"https?://[^/?#@\s]+", base):
        return url
    click.echo(f"{url} ends behind the host: {base}/v1 is written, where such servers have their API.")
    return f"{base}/v1"


def _needed(given: dict[str, str | None], *, running: bool, placed: bool, endpoints: bool) -> tuple[str, ...]:
    """The flags that have no default."""
    if running:
        return (*(("project", "bucket") if placed else ()), *(("tokenizer",) if endpoints else ()))
    tokenizer = ("tokenizer",) if "@" in (given["model"] or "") else ()  # a Hugging Face id has its own
    return ("project", "bucket", "model", *tokenizer, "image")


def _running(answers: Answers, variants: list[dict[str, str]], *, placed: bool, endpoints: bool) -> dict[str, Any]:
    ids = [variant["id"] for variant in variants]
    values: dict[str, Any] = _place(answers) if placed else {}
    asked = f"Tokenizer of the model: a Hugging Face id, gs:// or local folder{'' if endpoints else ' (Enter: none)'}"
    if tokenizer := answers.get("tokenizer", asked, None if endpoints else ""):
        values["tokenizer"] = tokenizer
    values["variants"] = variants
    if "baseline" not in ids:
        values["baseline"] = ids[0]
    return values


def _deployed(answers: Answers) -> dict[str, Any]:
    values = _place(answers)
    values["model"] = answers.get("model", "Model: publisher/model@version, or a Hugging Face id")
    hub_id = None if "@" in values["model"] else values["model"]
    values["tokenizer"] = answers.get("tokenizer", "Its tokenizer: a Hugging Face id, gs:// or local folder", hub_id)
    image = answers.get(
        "image",
        "Serving container, which gets the speculative arguments, such as us-docker.pkg.dev/my-project/images/vllm:1",
    )
    engine = answers.get("engine", "What it runs: sglang or vllm", "vllm" if "vllm" in image else "sglang")
    machine = answers.get("machine_type", "Machine", USUAL_MACHINE)
    gpus = MACHINES.get(machine, MACHINES[USUAL_MACHINE])
    accelerator = answers.get("accelerator", "Its GPUs", f"{gpus.type}={gpus.count}")
    kind, _, count = accelerator.partition("=")
    weights = answers.get("weights", "Its weights: a gs:// folder or a Hugging Face id", hub_id or WEIGHTS)
    values["serving"] = {
        "image": image,
        "machine_type": machine,
        "accelerator": {"type": kind, "count": int(count)},
        "args": [f"--model={weights}", *([SHARDED[engine].format(count)] if int(count) > 1 else [])],
        **ROUTES[engine],
        **({"shared_memory_mb": SHARED_MEMORY_MB} if int(count) > 1 else {}),
    }
    draft = answers.get("draft", "Draft model: a gs:// folder or a Hugging Face id", DRAFT)
    values["variants"] = [{"id": "baseline"}, {"id": "eagle3", "args": SPECULATION[engine](draft)}]
    return values


def _place(answers: Answers) -> dict[str, Any]:
    place = {
        "project": answers.get("project", "Google Cloud project"),
        "location": answers.get("location", "Region", "us-central1"),
        "pipeline_root": answers.get("bucket", "gs:// folder for artifacts"),
        "service_account": answers.get("service_account", "Account that the job runs as (Enter: the default)", ""),
        "hf_token_secret": answers.get("hf_token_secret", "Secret of a Hugging Face token (Enter: none)", ""),
    }
    return {name: answer for name, answer in place.items() if answer}
