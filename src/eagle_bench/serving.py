"""How a model is served: the part of a config that all variants share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import Field, field_validator

from eagle_bench.fields import Contradiction, Count, Flag, Port, Section, Word
from eagle_bench.machines import Gpus, mismatch, unknown_accelerator
from eagle_bench.secrecy import Args, Env

FLAG = re.compile(r"^(--[A-Za-z0-9][\w.-]*)")


class Accelerator(Section):
    """The GPUs of a machine."""

    type: str = Field(min_length=1, description="Vertex AI's name of the accelerator", examples=["NVIDIA_H100_80GB"])
    count: Count = Field(1, description="how many of them one machine has", examples=[8])

    def contradictions(self) -> Iterator[Contradiction]:
        if unknown := unknown_accelerator(self.type):
            yield Contradiction(("type",), unknown)


class Probe(Section):
    """A container probe, as Vertex AI takes it: a command or an HTTP path."""

    path: str | None = Field(None, description="HTTP path that answers 200 when all is well", examples=["/health"])
    command: tuple[str, ...] = Field(
        (), description="command that ends with 0 when all is well, in place of `path`", examples=[["/bin/ready"]]
    )
    period_s: Count = Field(10, description="between two tries", examples=[30])
    timeout_s: Count = Field(10, description="for one try", examples=[5])
    failure_threshold: Count = Field(
        3, description="tries in a row that may fail", examples=[120], json_schema_extra={"unit": "tries"}
    )


class Serving(Section):
    """How a model is served. Equal for all variants; a variant adds its own arguments."""

    image: str | None = Field(
        None,
        description="serving container; Model Garden's own choice when absent",
        examples=[
            "us-docker.pkg.dev/deeplearning-platform-release/vertex-model-garden/"
            "sglang-serve.cu124.0-4.ubuntu2204.py310:model-garden.sglang-0-4-release_20250831.00_p0"
        ],
    )
    machine_type: Word = Field(
        "a3-highgpu-8g", description="Compute Engine's name of the machine", examples=["g2-standard-12"]
    )
    accelerator: Accelerator | None = Field(
        None,
        description="the machine's GPUs; Model Garden's own choice when absent",
        examples=[{"type": "NVIDIA_L4", "count": 1}],
    )
    command: tuple[str, ...] = Field(
        (),
        description="replaces the image's entry point",
        examples=[["python3", "-m", "sglang.launch_server"]],
    )
    args: Args = Field((), description="the server's arguments; no flag twice", examples=[["--tp=8"]])
    env: Env = Field(
        default_factory=dict,
        description="the server's environment variables; no secrets, they show in the console",
        examples=[{"MODEL_ID": "meta-llama/Llama-4-Scout-17B-16E-Instruct"}],
    )
    port: Port | None = Field(
        None, description="port that the server listens on; Vertex AI's default (8080) when absent", examples=[30000]
    )
    health_route: str | None = Field(None, description="HTTP path of the server's health check", examples=["/health"])
    predict_route: str | None = Field(
        None, description="HTTP path that predictions go to", examples=["/vertex_generate"]
    )
    shared_memory_mb: Count | None = Field(
        None, description="of the container; needed for tensor parallelism", examples=[16384]
    )
    startup_probe: Probe | None = Field(
        None,
        description="tells when a server has started; large models need patience",
        examples=[{"path": "/health", "period_s": 30, "failure_threshold": 120}],
    )
    health_probe: Probe | None = Field(
        None, description="tells whether a started server still works", examples=[{"path": "/health"}]
    )
    deploy_timeout_s: Count = Field(7200, description="how long a deployment may take", examples=[3600])
    request_timeout_s: Count = Field(600, description="the endpoint's inference time-out", le=3600, examples=[1800])
    dedicated_endpoint: Flag = Field(
        True, description="an address of its own; shared ones cut requests off after a minute", examples=[True]
    )
    spot: Flag = Field(False, description="cheaper machines that can be taken away at any time", examples=[True])
    reservation: str | None = Field(
        None,
        description="resource name of a reservation to use",
        examples=["projects/my-project/zones/us-central1-a/reservations/h100"],
    )
    accept_eula: Flag = Field(False, description="you accept the model's licence", examples=[True])
    invoke_route: Flag = Field(
        False,
        description="opens all routes of the server, /metrics too, in place of `predict_route`",
        examples=[True],
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if self.invoke_route and self.predict_route:
            fields = ("invoke_route", "predict_route")
            yield Contradiction(fields, "has both `invoke_route` and `predict_route`: Vertex AI takes one of them.")
        if self.spot and self.reservation:
            yield Contradiction(
                ("spot", "reservation"), "has both `spot` and `reservation`: machines are one or the other."
            )
        asked = self.accelerator
        if asked and (wrong := mismatch(self.machine_type, Gpus(asked.type, asked.count))):
            yield Contradiction(("machine_type", "accelerator.type", "accelerator.count"), wrong)

    @field_validator("args")
    @classmethod
    def _no_flag_twice(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        if twice := flag_given_twice(args):
            raise ValueError(f"gives {twice} twice: the server would silently take one of them")
        return args


def flag_given_twice(args: Sequence[str]) -> str | None:
    """The first flag, in the alphabet, that stands in the arguments more than once; `_` and `-` are one sign."""
    flags = [match.group(1).replace("_", "-") for arg in args if (match := FLAG.match(arg))]
    return min((flag for flag in flags if flags.count(flag) > 1), default=None)
