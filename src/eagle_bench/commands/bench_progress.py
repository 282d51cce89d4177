"""How far `bench` is: on a terminal as often as it is told, in a log a few lines for each round."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from eagle_bench.adapters.vllm_client import Progress
from eagle_bench.progress import sparsely

IN_A_LOG_S = 30.0


def telling() -> Callable[[Progress], None]:
    """Prints what it is given; into a log where a round begins, at the end, and each `IN_A_LOG_S`."""
    return sparsely(
        lambda progress: click.echo(str(progress), err=True),
        0.0 if sys.stderr.isatty() else IN_A_LOG_S,
        about=lambda progress: (progress.round, progress.note, progress.done == progress.total),
    )
