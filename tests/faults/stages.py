"""The stages of a run, and what can be done to the task of each: a signal, a cancelled job."""

from __future__ import annotations

from typing import Any

from faults.trial import SIGNALS, Act, Kept, Moment, Order, Row, Trial, lasting

SLOW = ("--pause=0.4",)  # of a level's 50 answers of 3 words each: a minute

HELD_IN_DEPLOY = Order("slow-start", {"seconds": 600})
HELD_IN_SMOKE_TEST = lasting("traffic-status", status=503, message="not yet")

# The slow variant would keep the machine to itself: it waits in its smoke test until the baseline is measured.
AFTER_THE_BASELINE: dict[str, Any] = {"orders": (HELD_IN_SMOKE_TEST,), "until": "baseline: c=1 done"}

# Where a task is when something is done to it.
STAGES = {
    "stage data": ("stage-data", Moment("stage_data"), {}),
    "deploy": (
        "deploy-endpoint",
        Moment("deploy_endpoint", line="{}: waiting for the endpoint"),
        {"orders": (HELD_IN_DEPLOY,)},
    ),
    "smoke test": ("smoke-test", Moment("smoke_test"), {"orders": (HELD_IN_SMOKE_TEST,)}),
    "benchmark": ("benchmark", Moment("benchmark", asked=8), {"args": SLOW}),
    "teardown": ("teardown", Moment("teardown"), {}),
}


def signalled(stage: str, act: Act) -> Row:
    task, moment, more = STAGES[stage]
    name = SIGNALS[act].name
    says, kept = rf"the task {task} was killed by {name}", "whole" if stage == "teardown" else "nothing"
    if stage == "benchmark" and act == "terminate":  # it ends in order, with what it has
        says, kept = "interrupted: the measurement was ended from outside", "in part"
    return Row(f"{act}-{task}", f"the task gets {name}", stage, says, kept, act=act, at=moment, **more)


def cancelled(stage: str) -> Trial:
    task, moment, more = STAGES[stage]
    baseline: Kept | None = {"stage data": "nothing", "benchmark": "whole"}.get(stage)
    if stage == "benchmark":
        more = {**more, **AFTER_THE_BASELINE}
    row = Row(
        f"cancel-{task}",
        "the job is cancelled",
        stage,
        "was cancelled",
        "whole" if stage == "teardown" else "in part" if stage == "benchmark" else "nothing",
        act="cancel",
        at=moment,
        by="cleanup",
        **more,
    )
    return Trial(f"cancel-{task}", (row,), "CANCELLED", baseline)
