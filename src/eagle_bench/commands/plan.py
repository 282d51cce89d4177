"""`eagle-bench plan`: what a run will make, take and cost, and what can be found against it. Nothing is made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eagle_bench import config_file
from eagle_bench.errors import InputError

if TYPE_CHECKING:
    from eagle_bench.config import Config
    from eagle_bench.estimate import Assumptions
    from eagle_bench.run_plan import RunPlan

REFUSED = 2


class Between(click.ParamType):  # type: ignore[type-arg]
    """LOW-HIGH or one number, as a pair."""

    name = "low-high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?", str(value))
        low, high = (float(found[1]), float(found[2] or found[1])) if found else (1.0, 0.0)
        if low > high:
            self.fail(f"{str(value)[:30]!r} is no range: it must be LOW-HIGH or one number, such as 8-12.", param, ctx)
        return low, high


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--allow-difference",
    "allowed",
    multiple=True,
    metavar="KEY",
    help="A setting in which variants may differ, beside the config's own `allow_difference`; may be repeated.",
)
@click.option("--template", help="Compiled pipeline that is to be submitted: a file, or its https:// address.")
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="[NAME=]ADDRESS",
    help="Address of an image that the components are to run in, as for `submit`.",
)
@click.option(
    "--engines",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file of this machine's engines and models, as for `run`: the plan is of a run on this machine.",
)
@click.option("--ms-per-token", type=Between(), help="Time per output token to reckon with, such as 8-12.")
@click.option("--answer-tokens", type=Between(), help="Tokens of an answer to reckon with, such as 200-300.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(
    config: Path,
    allowed: tuple[str, ...],
    template: str | None,
    images: tuple[str, ...],
    engines: Path | None,
    ms_per_token: tuple[float, float] | None,
    answer_tokens: tuple[float, float] | None,
    as_json: bool,
) -> int:
    """Show what a run of CONFIG will make, how long it takes and what it costs, and check what can be checked.

    Nothing is made. A config whose variants all run at URLs, or are served by this machine (`machine_type:
    this-machine`, --engines, or no `project`), is meant for `run`: the cloud is not asked then. Exit status: 0 nothing is
    refused, 2 something is.
    """
    if template and images:
        raise click.UsageError("--image goes into a template that is compiled: leave out --template.")
    if engines and (template or images):
        raise click.UsageError("--engines is for `run`, on this machine: leave out --template and --image.")
    from eagle_bench import planning
    from eagle_bench.adapters.vertex_address import on_this_machine
    from eagle_bench.run_plan import run_plan

    given = config_file.load(config)
    given = given.model_copy(update={"allow_difference": (*given.allow_difference, *allowed)})
    here = planning.runs_here(given, template=template, images=images, engines=engines)
    if not here:
        _require_place(given, str(config))
    checks = tuple(planning.checks(given, template=template, images=images, engines=engines))
    local = here or on_this_machine()  # Local Vertex has no other machine, whatever the config names
    builtin = local and engines is None and planning.served_by_builtin(given)
    plan = run_plan(given, _assumptions(ms_per_token, answer_tokens, here=local, builtin=builtin), checks, here=local)
    if as_json:
        click.echo(plan.model_dump_json(indent=1))
    else:
        _print(plan)
    return 0 if plan.may_run else REFUSED


def _require_place(given: Config, source: str) -> None:
    """Make sure that a job's project and location are there; the check of the bucket has the third field."""
    from eagle_bench.adapters.vertex_address import VARIABLE, on_this_machine

    try:
        config_file.require(given, ("project", "location"), source=source)
    except InputError as error:
        if on_this_machine():
            error.hint = (
                f"{VARIABLE} is set, so this plans a job on Local Vertex. For `run`, plan in a shell without it."
            )
        raise


def _assumptions(
    ms_per_token: tuple[float, float] | None, answer_tokens: tuple[float, float] | None, *, here: bool, builtin: bool
) -> Assumptions:
    from eagle_bench.estimate import BUILTIN_ENGINE, ON_THIS_MACHINE, Assumptions, Range

    given = {"ms_per_token": ms_per_token, "tokens_per_answer": answer_tokens}
    found = {key: Range(low=pair[0], high=pair[1]) for key, pair in given.items() if pair}
    return Assumptions(**{**(ON_THIS_MACHINE if here else {}), **(BUILTIN_ENGINE if builtin else {}), **found})


def _print(plan: RunPlan) -> None:
    from rich.console import Console

    from eagle_bench.plain_text import plain_line
    from eagle_bench.report.plan_tables import assumptions, endpoints, totals
    from eagle_bench.report.terminal import print_checks, print_table

    console = Console()
    print_table(endpoints(plan), console)
    for line in (*totals(plan), *assumptions(plan)):
        console.print(plain_line(line), highlight=False, markup=False)
    console.print()
    print_checks(plan.checks, console)
