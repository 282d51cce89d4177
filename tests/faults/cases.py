"""The rows of the fault matrix, several of them in one run.

A trial is one run of the pipeline: a baseline that nothing goes wrong with, and a variant for each of its rows. Rows
that hit the whole run have a trial of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from faults.stages import AFTER_THE_BASELINE, HELD_IN_SMOKE_TEST, SLOW, STAGES, cancelled, signalled
from faults.trial import EVER, Moment, Order, Row, Trial, lasting


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
        {"max_hours": 0.011},
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
                args=("--dies-at=3",),
            ),
            Row(
                "dies-in-level",
                "the engine crashes",
                "in the middle of a level",
                "dies-in-level: (overload 503) .*(The model server can't be reached)",
                "in part",
                ("--dies-at=21",),
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
                    rf"{kind}-once: (given back): endpoint and model",
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
