"""The command line. Each command is a module of `eagle_bench.commands`, imported when it is used."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from typing import Any, cast

import click

from eagle_bench import __version__
from eagle_bench.commands.interrupts import status_of
from eagle_bench.errors import EagleBenchError
from eagle_bench.nearest import did_you_mean
from eagle_bench.plain_text import plain

# name -> one line of help; the module of that name holds the click command `command`.
COMMANDS = {
    "init": "Write a config with comments, from answers or flags.",
    "run": "Run the pipeline on this machine and write a report.",
    "plan": "Check a config and say what its run takes, making nothing.",
    "compile": "Write the pipeline template for Vertex AI Pipelines.",
    "submit": "Submit the pipeline to Vertex AI.",
    "fetch": "Get report and results of a job.",
    "bench": "Measure one endpoint at one concurrency.",
    "compare": "Compare saved results and write a report.",
    "cleanup": "Find and delete endpoints and models that runs left.",
    "validate": "Check config and result files; print their JSON Schemas.",
    "completion": "Print what a shell needs to complete commands.",
}


class Commands(click.Group):
    """A group that imports a command's module only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"eagle_bench.commands.{cmd_name}")
        return cast(click.Command, module.command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="eagle-bench")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def group(debug: bool) -> None:
    """Does EAGLE speculative decoding pay on your endpoint, and up to which concurrency?

    Exit status: 0 done, 1 an unexpected fault, 2 your input, 3 a gate failed, 4 no usable result.
    """


def main(argv: list[str] | None = None) -> Any:
    """Entry point: runs a command and turns errors into one message and an exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal of few characters shows "?" for the others
    args = sys.argv[1:] if argv is None else argv
    debug = "--debug" in args
    # A switch for the whole program may stand anywhere.
    args = [arg for arg in args if arg != "--debug"]
    try:
        # The context's root tells commands of the switch.
        result = group.main(
            args=["--debug", *args] if debug and args else args, prog_name="eagle-bench", standalone_mode=False
        )
        sys.exit(result if isinstance(result, int) else 0)
    except EagleBenchError as error:
        _fail(str(error), error.exit_status, debug)
    except click.exceptions.Abort as error:
        _fail("interrupted.", status_of(str(error.__cause__ or "")), debug)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(plain(shown.getvalue()), err=True, nl=False)
        sys.exit(2)
    except KeyboardInterrupt as error:
        _fail("interrupted.", status_of(str(error)), debug)
    except Exception as error:  # the last border: no traceback unless asked for
        _fail(f"unexpected fault: {type(error).__name__}: {error}. `--debug` shows where.", 1, debug)


def _fail(message: str, status: int, debug: bool) -> None:
    if debug:
        click.echo(plain(traceback.format_exc()), err=True)
    for line in filter(str.strip, plain(message).split("\n")):
        click.echo(f"eagle-bench: {line}", err=True)
    sys.exit(status)
