"""`eagle-bench cleanup`: what runs left behind."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from eagle_bench.errors import InputError, ServiceError

UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@click.command()
@click.argument("run_id", required=False)
@click.option("--older-than", metavar="AGE", help="All runs' leftovers of at least this age: 30m, 6h, 2d.")
@click.option("--project", required=True, envvar="GOOGLE_CLOUD_PROJECT", help="Project of the endpoints.")
@click.option("--location", default="us-central1", show_default=True, help="Region of the endpoints.")
@click.option("--yes", is_flag=True, help="Delete them; without it they are only listed.")
def command(run_id: str | None, older_than: str | None, project: str, location: str, yes: bool) -> None:
    """Find endpoints and models that runs left, by RUN_ID or by age, and delete them with --yes."""
    if (run_id is None) == (older_than is None):
        raise click.UsageError("Give a RUN_ID or --older-than, one of them.")
    least = age(older_than) if older_than else timedelta(0)
    from eagle_bench.adapters import vertex

    place = vertex.Place(project, location)
    found = [made for made in vertex.leftovers(place, run_id) if datetime.now(UTC) - made.created >= least]
    if not found:
        click.echo(f"nothing is left in {place}")
        return
    for made in found:
        click.echo(f"{made.resource}  run {made.run or 'unknown'}, made {made.created:%Y-%m-%d %H:%M} UTC")
    if not yes:
        click.echo(f"{len(found)} found, nothing deleted: --yes deletes them")
        return
    left: list[str] = []
    for name in dict.fromkeys(made.id for made in found):
        report = vertex.teardown_id(place, name)
        for resource in report.deleted:
            click.echo(f"deleted {resource}")
        left += [f"{item.resource} ({item.why}): {item.command}" for item in report.left]
    if left:
        raise ServiceError("could not be deleted: " + "; ".join(left))


def age(text: str) -> timedelta:
    """30m, 6h or 2d as a duration.

    Raises:
        InputError: it is none of these.
    """
    match = re.fullmatch(r"(\d+)([mhd])", text)
    if not match:
        raise InputError(f"--older-than {text!r}: it must be a number and m, h or d, such as 6h.")
    try:
        return timedelta(**{UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise InputError(f"--older-than {text[:30]!r}: too long ago.") from None
