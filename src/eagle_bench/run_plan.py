"""What `plan` says of a run before it: endpoints, hours, dollars, and what was checked. The form of `plan --json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from eagle_bench.config import Config
from eagle_bench.estimate import Assumptions, Estimate, Range, estimate, prompts_needed
from eagle_bench.machines import THIS_MACHINE
from eagle_bench.results import SCHEMA_VERSION, Record
from eagle_bench.variants import VariantSpec, resolve

Status = Literal["ok", "warning", "refused", "not checked", "not needed"]


class Check(Record):
    """One thing that was looked at."""

    name: str = Field(description="what was looked at: a stable word")
    status: Status = Field(
        description="`warning`: it may go wrong; `not checked`: it could not be asked, and the text says why; "
        "`not needed`: the run has no use for it"
    )
    text: str = Field(description="what was found")
    hint: str | None = Field(None, description="what to do about it")


class PlannedEndpoint(Record):
    """One variant: what serves it, on what, how long it is needed and what that costs."""

    variant: str = Field(description="id of the variant")
    kind: Literal["deployed", "endpoint", "url"] = Field(description="what the run makes, or what runs already")
    what: str = Field(description="model, endpoint or address")
    machine: str | None = Field(None, description="machine type; null for what runs already")
    accelerators: str | None = Field(None, description="how many of which; null where none is named")
    image: str | None = Field(None, description="serving image; null for Model Garden's own choice")
    price_per_hour: float | None = Field(None, description="dollars; null where the config gives none")
    hours: Range = Field(description="how long it is needed: from deploy to teardown where it is deployed")
    cost: Range | None = Field(None, description="dollars; null where it is not known or not ours to pay")


class RunPlan(Record):
    """What a run will make, take and cost, and what was checked of it."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="version of this form")
    project: str | None = Field(description="the config's project; null where it names none")
    location: str | None = Field(description="the config's region; null where it names none")
    on_this_machine: bool = Field(description="nothing of it is on Vertex AI: `run` is meant, or a job of Local Vertex")
    endpoints: tuple[PlannedEndpoint, ...] = Field(description="each variant, the baseline first")
    levels: tuple[int, ...] = Field(description="concurrency levels, rising")
    prompts_needed: int = Field(description="prompts that the run uses, none twice, warm-ups included")
    estimate: Estimate = Field(description="how long, and for how much")
    assumptions: Assumptions = Field(description="what the estimate rests on")
    checks: tuple[Check, ...] = Field(description="everything that was looked at")
    may_run: bool = Field(description="nothing is refused; what could not be checked may still fail")


def run_plan(config: Config, assumed: Assumptions, checks: Sequence[Check], *, here: bool = False) -> RunPlan:
    """The plan of a config with the checks that were made.

    Args:
        here: the run is one on this machine, which deploys and measures one variant after another.

    Raises:
        InputError: a level has fewer requests than rounds.
    """
    expected = estimate(config, assumed, in_turn=here)
    found = (*checks, *_budget(config, expected.run_h))
    return RunPlan(
        project=config.project,
        location=config.location,
        on_this_machine=here,
        endpoints=tuple(_endpoint(spec, config, expected, here=here) for spec in resolve(config)),
        levels=tuple(sorted(config.concurrency)),
        prompts_needed=prompts_needed(config),
        estimate=expected,
        assumptions=assumed,
        checks=found,
        may_run=all(check.status != "refused" for check in found),
    )


def _budget(config: Config, expected: Range) -> Iterator[Check]:
    """The estimate beside the config's `max_hours`, where it has one."""
    budget, hours = config.max_hours, expected.shown("h")
    if budget is None:
        return
    if expected.high < budget:
        yield Check(name="max_hours", status="ok", text=f"{budget:g} h are above the estimate of {hours}.")
        return
    how = "ends" if expected.low >= budget else "may end"
    yield Check(
        name="max_hours",
        status="warning",
        text=f"the run is estimated to take {hours}, and `max_hours: {budget:g}` {how} it before.",
        hint="The answer comes from what there is by then: allow more, or measure fewer levels or prompts.",
    )


def _endpoint(spec: VariantSpec, config: Config, expected: Estimate, *, here: bool) -> PlannedEndpoint:
    if spec.url:
        return PlannedEndpoint(variant=spec.id, kind="url", what=spec.url, hours=expected.sweep_h)
    if spec.endpoint:
        return PlannedEndpoint(variant=spec.id, kind="endpoint", what=spec.endpoint, hours=expected.sweep_h)
    serving = spec.serving
    assert serving is not None and spec.model is not None
    accelerator = None if here else serving.accelerator
    machine = f"{serving.machine_type} (spot)" if serving.spot else serving.machine_type
    return PlannedEndpoint(
        variant=spec.id,
        kind="deployed",
        what=spec.model,
        machine=THIS_MACHINE if here else machine,
        accelerators=f"{accelerator.count} × {accelerator.type}" if accelerator else None,
        image=serving.image,
        price_per_hour=config.price_per_hour,
        hours=expected.endpoint_h,
        cost=expected.endpoint_cost,
    )
