"""Giving the machines back: what a run deployed is deleted, whatever else happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle_bench.adapters import vertex
from eagle_bench.errors import ServiceError
from eagle_bench.progress import say
from eagle_bench.variants import VariantSpec


def give_back(place: vertex.Place, run_id: str, spec: VariantSpec) -> None:
    """Delete what a variant runs on at once, where nothing will be measured on it any more.

    What can't be deleted now is for `teardown`: the results come first.
    """
    if not spec.deployed:
        return
    report = vertex.teardown(place, run_id, spec.id)
    if report.deleted:
        say(spec.id, f"given back: {', '.join(report.deleted)}")
    for item in report.left:
        say(spec.id, f"could not give back {item.resource} yet: {item.why}")


def teardown(
    project: str, location: str, run_id: str, variants: Sequence[dict[str, Any]], state: str | None = None
) -> None:
    """Delete endpoints and models of these variants; try all before complaining about any.

    Raises:
        ServiceError: something is left; the message names it and the command that deletes it.
    """
    if state:
        say("run", f"ended {state}; making sure that nothing is left")
    left: list[str] = []
    for variant in variants:
        spec = VariantSpec.model_validate(variant)
        if not spec.deployed:
            continue
        report = vertex.teardown(vertex.Place(project, location), run_id, spec.id)
        if report.deleted:
            say(spec.id, f"given back: {', '.join(report.deleted)}")
        left += [f"{item.resource} ({item.why}) – `{item.command}`" for item in report.left]
    if left:
        raise ServiceError(
            "could not be deleted: " + "; ".join(left),
            kind="other",
            hint="Run the commands named, or `eagle-bench cleanup`.",
        )
