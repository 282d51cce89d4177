"""`--json`: one object on standard output, for scripts; all that people read goes to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import TextIO

import click

from eagle_bench.results import Record

Tell = Callable[[Record], None]
option = click.option(
    "--json", "as_json", is_flag=True, help="Print how it ended as JSON; all else goes to standard error."
)


@contextmanager
def json_only(asked: bool) -> Iterator[Tell]:
    """Within it, `tell(outcome)` prints the object; without `--json` it does nothing, and prints stay as they are."""
    if not asked:
        yield _nothing
        return
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield partial(_print, out)


def _nothing(_: Record) -> None:
    pass


def _print(out: TextIO, outcome: Record) -> None:
    print(outcome.model_dump_json(indent=1), file=out, flush=True)
