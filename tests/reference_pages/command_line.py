"""Every command, option and argument, from the commands themselves."""

from __future__ import annotations

import importlib
import inspect

import click

from eagle_bench import cli
from reference_pages import MADE, code, sentence, table

INTRODUCTION = """# The command line

Every command answers `--help`. `--debug` may stand anywhere and shows the traceback of an error. Results go to standard
output; progress and complaints that scripts should not read go to standard error.

"""
EXIT_STATUSES = "The exit statuses are in [codes](codes.md#exit-statuses).\n"


def page() -> str:
    contents = table(
        ["command", "what it does"],
        [[f"[{name}](#eagle-bench-{name})", sentence(line)] for name, line in cli.COMMANDS.items()],
    )
    parts = [MADE, INTRODUCTION, contents, "\n", EXIT_STATUSES]
    return "".join([*parts, *(_command(name) for name in cli.COMMANDS)])


def _command(name: str) -> str:
    command: click.Command = importlib.import_module(f"eagle_bench.commands.{name}").command
    context = click.Context(command, info_name=f"eagle-bench {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    rows = [[_spelling(option, context), _default(option, context), sentence(_help(option))] for option in options]
    shown = table(["option", "default", "what it does"], rows) if rows else ""
    return f"\n## eagle-bench {name}\n\n```text\neagle-bench {name} {usage}\n```\n\n{text}\n\n{shown}"


def _spelling(option: click.Option, context: click.Context) -> str:
    names = ", ".join(code(name) for name in (*option.opts, *option.secondary_opts))
    return names if option.is_flag else f"{names} {code(_value(option, context))}"


def _value(option: click.Option, context: click.Context) -> str:
    """What stands for the value: the option's own word, or else its bounds or choices."""
    kind = option.type
    if option.metavar is None and isinstance(kind, click.IntRange) and None not in (kind.min, kind.max):
        return f"{kind.min} to {kind.max}"
    return option.make_metavar(context).removesuffix(" RANGE")


def _default(option: click.Option, context: click.Context) -> str:
    if option.required:
        return "required"
    told = (option.help or "").partition("[default: ")[2].partition("]")[0]
    default = option.get_default(context, call=False)
    if told:
        return told
    if option.is_flag or option.multiple or default in (None, "") or "Sentinel" in repr(default):
        return ""
    return code(default)


def _help(option: click.Option) -> str:
    text = (option.help or "").partition("[default: ")[0]
    variable = f" Taken from `{option.envvar}` when absent." if isinstance(option.envvar, str) else ""
    return f"{sentence(text)}{variable}"
