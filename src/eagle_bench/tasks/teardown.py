"""Giving the machines back: what a run deployed is deleted, whatever else happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eagle_bench.adapters import vertex
from eagle_bench.progress import say
from eagle_bench.variants import VariantSpec


def give_back(place: vertex.Place, run_id: str, spec: VariantSpec) -> None:
    """Delete what a variant runs on at once, where nothing will be measured on it any more.

    What can't be deleted now is for `teardown`: the results come first.
    """
    if not spec.deployed:
        return
    report = vertex.teardown(place, run_id, spec.id)
    _tell(spec.id, report)
    for item in report.left:
        say(spec.id, f"could not give back {item.resource} yet: {item.why}")


def teardown(project: str, location: str, run_id: str, variant: dict[str, Any]) -> list[str]:
    """Delete one variant's endpoint and model.

    Returns:
        What could not be deleted, why, and the command that does it. The answer of the run says so; it does not fail
        for it, as nothing would be compared then. `teardown_all` tries again.
    """
    spec = VariantSpec.model_validate(variant)
    if not spec.deployed:
        return []
    return [item.said for item in _deleted(project, location, run_id, spec)]


def teardown_all(
    project: str, location: str, run_id: str, variants: Sequence[dict[str, Any]], state: str | None = None
) -> None:
    """Delete endpoints and models of these variants; try all before complaining about any.

    Raises:
        ServiceError: something is left; the message names it and the command that deletes it.
    """
    if state:
        ended = {"SUCCEEDED": "measured", "FAILED": "a task failed"}.get(state, state.lower())
        say("run", f"{ended}; checking that no endpoint and no model is left")
    specs = [VariantSpec.model_validate(variant) for variant in variants]
    left = [item for spec in specs if spec.deployed for item in _deleted(project, location, run_id, spec)]
    if left:
        raise vertex.not_deleted(left)
    if state:
        say("run", "no endpoint and no model is left")


def _deleted(project: str, location: str, run_id: str, spec: VariantSpec) -> tuple[vertex.Left, ...]:
    """Delete what a variant runs on; what could not be deleted comes back, and stands in the log."""
    report = vertex.teardown(vertex.Place(project, location), run_id, spec.id)
    _tell(spec.id, report)
    for item in report.left:
        say(spec.id, f"COULD NOT BE DELETED: {item.said}")
    return report.left


def _tell(variant: str, report: vertex.TeardownReport) -> None:
    """Say in words what was deleted; the full names are for the task's log alone."""
    if report.deleted:
        say(variant, f"given back: {report.given_back}")
        print(f"deleted {', '.join(report.deleted)}", flush=True)
