"""Where a job or a schedule is, how to see it and how to end it: also where only its request is known to have been sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from eagle_bench.commands.interrupts import obey_signals, status_of

if TYPE_CHECKING:
    from eagle_bench.adapters.vertex_address import Place


@contextmanager
def told_if_interrupted(what_may_be: str) -> Iterator[None]:
    """Say what may have been made by a request that Ctrl-C or a signal cut short, and exit as a shell would say it.

    Raises:
        SystemExit: with the status of the signal.
    """
    obey_signals()
    try:
        yield
    except KeyboardInterrupt as interrupt:
        click.echo(f"interrupted. {what_may_be}", err=True)
        raise SystemExit(status_of(str(interrupt))) from None


def job_may_be(name: str) -> str:
    return f"The job {name} may have been made, and runs on then;\n{_how_to_end(name)}"


def schedule_may_be(title: str, place: Place) -> str:
    from eagle_bench.adapters.running_jobs import schedules_link

    link = schedules_link(place)
    return (
        f"The schedule {title!r} in {place} may have been made, and starts jobs then. "
        f"Look for it, and delete it where it isn't wanted{f': {link}' if link else '.'}"
    )


def whereabouts(name: str) -> str | None:
    """Where a person finds the job: its page, or its folder where it runs on this machine."""
    from eagle_bench.adapters.running_jobs import artifacts_folder, console_link

    folder = artifacts_folder(name)
    return f"it runs on this machine, and its results go to {folder}" if folder else console_link(name)


def next_steps(name: str) -> str:
    return (
        "to see how it stands, and for report and results, also before its end:\n"
        f"  eagle-bench fetch {name}\n{_how_to_end(name)}"
    )


def _how_to_end(name: str) -> str:
    from eagle_bench.adapters.vertex_address import Place

    place, run_id = Place.of(name), name.rsplit("/", 1)[-1]
    where = f"--project {place.project} --location {place.location}"
    return f"to cancel it and give everything back:\n  eagle-bench cleanup {run_id} {where} --cancel --yes"
