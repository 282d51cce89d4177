"""What goes wrong, where, and what people are to be told: a row of the matrix each, several of them in one run.

A trial is one run of the pipeline: a baseline that nothing goes wrong with, and a variant for each of its rows. Rows
that hit the whole run have a trial of their own.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Act = Literal["kill", "terminate", "cancel", "restart", "disk-full", "order"]
Kept = Literal["whole", "in part", "nothing"]

SIGNALS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}
EVER: dict[str, Any] = {"times": None}


@dataclass(frozen=True)
class Order:
    """A fault that Local Vertex is told of, for the row's variant alone unless it is `anybody`'s."""

    kind: str
    details: dict[str, Any] = field(default_factory=dict)
    anybody: bool = False


@dataclass(frozen=True)
class Moment:
    """When to act: a task runs, and by then its engine was asked so often, and a line was said (`{}`: the row's id)."""

    task: str
    asked: int = 0
    line: str = ""


@dataclass(frozen=True)
class Row:
    """One fault.

    Args:
        id: of the row, and of the variant that it hits.
        fault, stage: as the table says them.
        says: a pattern that what people see must hold; its groups, or all of it, stand in the table.
        kept: what there is of the variant's cell in the end; the baseline's is whole.
        args: of the variant's engine.
        orders: told to Local Vertex before the run.
        until: a line at which all orders are taken back; who waits for them goes on.
        act, at, then: what is done by hand, when, and with which orders.
        by: what gives the machines back: the run's own teardown, the command where no task runs any more, or the end of
            Local Vertex itself.
        or_less: a slow machine may come to keep nothing: the clock decides.
    """

    id: str
    fault: str
    stage: str
    says: str
    kept: Kept = "nothing"
    args: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()
    until: str = ""
    act: Act | None = None
    at: Moment | None = None
    then: tuple[Order, ...] = ()
    by: Literal["the run", "cleanup", "its end"] = "the run"
    or_less: bool = False


@dataclass(frozen=True)
class Trial:
    """One run of the pipeline.

    Args:
        ends: the job's last state, or two that it may be; LOST where nobody knows of it any more.
        baseline: what there is of the baseline's cell in the end; None where it depends on who was quicker.
        config: fields beyond the usual ones.
    """

    id: str
    rows: tuple[Row, ...]
    ends: str = "SUCCEEDED"
    baseline: Kept | None = "whole"
    config: dict[str, Any] = field(default_factory=dict)


SLOW = ("--pause=0.4",)  # of a level's 50 answers of 3 words each: a minute


def refused(word: str, fault: str, says: str) -> Row:
    return Row(f"refused-{word}", f"deploy is refused: {fault}", "deploy", says, orders=(Order(f"deploy-{word}"),))


def storm(status: int, said: str) -> Row:
    return Row(
        f"storm-{status}",
        f"the endpoint answers {status} from a request on",
        "benchmark",
        rf"of 50 (requests failed) \(\d+ %\)\. The server said: .*({said})",
        "in part",
        orders=(Order("traffic-status", {"skip": 10, "status": status, "message": said, **EVER}),),
    )


def lasting(kind: str, **details: Any) -> Order:
    return Order(kind, {**EVER, **details})


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


TRIALS = (
    Trial(
        "budget",
        (
            Row(
                "budget",
                "the budget (`max_hours`) is used up",
                "benchmark",
                r"the run's budget \(`max_hours`\) was used up",
                "in part",
                SLOW,
                or_less=True,
            ),
            Row(
                "hang-deploy",
                "the operation never ends",
                "deploy",
                r"the run's budget of \S+ h \(`max_hours`\) was used up",
                orders=(Order("operation-hangs"),),
            ),
        ),
        "SUCCEEDED or FAILED",  # by whether there was time for an answer
        None,
        {"max_hours": 40 / 3600},
    ),
    Trial(
        "signals",
        (
            Row(
                "disk-full",
                "the disk is full",
                "benchmark",
                r"OSError: \[Errno 28\] No space left on device",
                act="disk-full",
                at=Moment("benchmark"),
            ),
            # The teardowns last: what they don't give back is given back when the run ends, and there are two machines.
            *(signalled(stage, act) for stage in STAGES if stage != "stage data" for act in ("kill", "terminate")),
        ),
        "FAILED",
    ),
    Trial(
        "traffic",
        (
            Row(
                "dies-warm-up",
                "the engine crashes",
                "warm-up",
                "None of 50 requests succeeded; 50 × overload, HTTP 503",
                args=("--dies-at=2",),
            ),
            Row(
                "dies-in-level",
                "the engine crashes",
                "in the middle of a level",
                "dies-in-level: (overload 503) .*(The model server can't be reached)",
                "in part",
                ("--dies-at=20",),
            ),
            storm(503, "The model is overloaded"),
            storm(429, "Quota exceeded for online prediction requests"),
            Row(
                "streams-cut",
                "every other stream is cut",
                "benchmark",
                r"of 50 (requests failed) \(\d+ %\)\. The server said: “(The server closed the connection in the middle of the answer)",
                "in part",
                orders=(lasting("traffic-cut", skip=4, every=2),),
            ),
            Row(
                "token-revoked",
                "the access token is revoked",
                "benchmark",
                "a token that should have been valid was refused: 1 request failed with 401, and a new token was taken",
                "in part",
                orders=(Order("token-revoked", {"skip": 10}),),
            ),
        ),
    ),
    Trial(
        "operations",
        (
            Row(
                "operation-fails",
                "the operation fails",
                "deploy",
                "Model server failed to start: CUDA out of memory",
                orders=(Order("operation-fails", {"message": "CUDA out of memory"}),),
            ),
            Row(
                "operation-garbage",
                "the operation answers garbage",
                "deploy",
                "with an answer that is no deploy's",
                orders=(lasting("operation-garbage"),),
            ),
            Row(
                "crash-at-load",
                "the engine crashes",
                "load",
                "the draft model does not fit the target",
                args=("--crash",),
            ),
            Row(
                "never-healthy",
                "the engine hangs",
                "load",
                "Model server was not healthy after",
                args=("--deaf",),
            ),
            *(
                Row(
                    f"{kind}-once",
                    f"{what} fails once",
                    "teardown",
                    rf"{kind}-once: (given back): \S+/endpoints/\S+, \S+/models/",
                    "whole",
                    orders=(Order(f"{kind}-fails"),),
                )
                for kind, what in (
                    ("undeploy", "undeploying"),
                    ("delete-endpoint", "deleting the endpoint"),
                    ("delete-model", "deleting the model"),
                )
            ),
        ),
    ),
    Trial(
        "refusals",
        (
            refused(
                "quota", "a quota", r"(The following quotas are exceeded: \w+).*(Ask for more of \w+ in us-central1)"
            ),
            refused(
                "permission",
                "a permission",
                r"(Permission '[\w.]+' denied on resource).*(Grant the job's account roles/aiplatform.user)",
            ),
            refused(
                "eula",
                "the licence",
                r"(End User License Agreement \(EULA\) to be accepted).*(accept it with `serving.accept_eula: true`)",
            ),
            refused(
                "gated-model",
                "a gated model",
                r"(Access to the gated Hugging Face model is denied).*(Accept the model's conditions) at \S+/owner/name",
            ),
            refused("image", "the serving image", r"(Failed to pull the container image).*(Check `serving.image`)"),
            refused(
                "region",
                "the region",
                r"(Machine type is not supported in this region).*(Take a region that has a3-highgpu-8g)",
            ),
        ),
        "FAILED",
    ),
    Trial(
        "never-deleted",
        (
            Row(
                "never-deleted",
                "deleting the endpoint fails for ever",
                "teardown",
                r"(COULD NOT BE DELETED): .*(gcloud ai endpoints delete)",
                "whole",
                orders=(lasting("delete-endpoint-fails", status=500),),
                by="cleanup",
            ),
        ),
        "FAILED",
    ),
    Trial(
        "token-server",
        (
            Row(
                "token-server",
                "the token server is down",
                "benchmark",
                "Vertex AI refused to give out an access token",
                orders=(HELD_IN_SMOKE_TEST,),
                act="order",
                at=Moment("smoke_test", line="baseline: c=1 done"),
                then=(Order("token-server-down", EVER, anybody=True),),
            ),
        ),
        "FAILED",
    ),
    Trial(
        "restart",
        (
            Row(
                "restart",
                "Local Vertex is restarted",
                "benchmark",
                "(Vertex AI refused to look up) .* (not found)",
                "in part",
                SLOW,
                act="restart",
                at=Moment("benchmark", asked=8),
                by="its end",
                **AFTER_THE_BASELINE,
            ),
        ),
        "LOST",
    ),
    *(
        Trial(row.id, (row,), "FAILED", "nothing")
        for row in (signalled("stage data", "kill"), signalled("stage data", "terminate"))
    ),
    *(cancelled(stage) for stage in STAGES),
)


def rows() -> Iterator[tuple[Trial, Row]]:
    """Every row with its trial."""
    for trial in TRIALS:
        for row in trial.rows:
            yield trial, row
