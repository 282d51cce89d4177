"""What to compare, on what, with which load: the fields of a config file. Strict and frozen."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    field_validator,
    model_validator,
)


def _whole_number(value: object) -> object:
    """Take 4 and 4.0 (pipelines turn the one into the other); refuse "4" and true."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be a whole number")
    return int(value)


Whole = Annotated[int, BeforeValidator(_whole_number)]
Count = Annotated[Whole, Field(ge=1)]
Rounds = Annotated[Count, Field(le=100)]
Level = Annotated[Count, Field(le=10_000)]
Port = Annotated[Count, Field(le=65_535)]
Number = Annotated[float, Strict()]
Positive = Annotated[Number, Field(gt=0, allow_inf_nan=False)]
Flag = Annotated[bool, Strict()]

Word = Annotated[str, Field(pattern=r"^\S+$", description="one word, without spaces")]

SECRET_NAME = r"^projects/[^/\s]+/secrets/[A-Za-z0-9_-]+/versions/(latest|\d+)$"
SecretName = Annotated[str, Field(pattern=SECRET_NAME, description="Secret Manager resource name, never the secret")]


def _without_credentials(address: str) -> str:
    """Refuse a user name or password in a URL: it would show in the console."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL: its host or port can't be read") from None
    if parts.username or parts.password:
        raise ValueError("carries a user name or password; give a secret by its Secret Manager name")
    if port == 0:
        raise ValueError("is not a URL: its host or port can't be read")
    return address


def _known_source(address: str) -> str:
    scheme, separator, _ = address.partition("://")
    if not separator:
        return address
    if scheme not in {"gs", "http", "https", "hf"}:
        raise ValueError("names a scheme that can't be read; gs://, https:// and hf:// can")
    return _without_credentials(address)


SECRET_WORDS = r"token|secret|password|passwd|credentials?|api[-_]?key|access[-_]?key"
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _no_secrets_in_env(env: dict[str, str]) -> dict[str, str]:
    """Variables show in the console with the pipeline's parameters."""
    for name in env:
        if not ENV_NAME.fullmatch(name):
            raise ValueError("has a name that is no variable's: letters, digits and _ only")
        if re.search(rf"(^|_)({SECRET_WORDS})$", name, re.IGNORECASE):
            raise ValueError(
                f"{name} would show in the console: use `hf_token_secret`, or a secret of the serving image"
            )
    return env


def _no_secrets_in_args(args: tuple[str, ...]) -> tuple[str, ...]:
    for arg in args:
        flag = arg.split("=", 1)[0]
        if re.fullmatch(rf"--?([\w-]*[-_])?({SECRET_WORDS})", flag, re.IGNORECASE):
            raise ValueError(f"{flag} would show in the console: nothing secret may stand in arguments")
    return args


Env = Annotated[dict[str, str], AfterValidator(_no_secrets_in_env)]
Args = Annotated[tuple[str, ...], AfterValidator(_no_secrets_in_args)]


class Section(BaseModel):
    """Base of every part of the config."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Accelerator(Section):
    type: str = Field(min_length=1, description="Vertex AI's name, such as NVIDIA_H100_80GB")
    count: Count = 1


class Probe(Section):
    """A container probe, as Vertex AI takes it: a command or an HTTP path."""

    path: str | None = None
    command: tuple[str, ...] = ()
    period_s: Count = 10
    timeout_s: Count = 10
    failure_threshold: Count = 3


class Serving(Section):
    """How a model is served. Equal for all variants; a variant adds its own arguments."""

    image: str | None = Field(None, description="serving container; Model Garden's own choice when absent")
    machine_type: Word = "a3-highgpu-8g"
    accelerator: Accelerator | None = None
    command: tuple[str, ...] = ()
    args: Args = ()
    env: Env = Field(default_factory=dict)
    port: Port | None = None
    health_route: str | None = None
    predict_route: str | None = None
    shared_memory_mb: Count | None = None
    startup_probe: Probe | None = None
    health_probe: Probe | None = None
    deploy_timeout_s: Count = 7200
    request_timeout_s: Count = Field(600, description="the endpoint's inference time-out, 3600 at most", le=3600)
    dedicated_endpoint: Flag = True
    spot: Flag = False
    reservation: str | None = Field(None, description="resource name of a reservation to use")
    accept_eula: Flag = False
    invoke_route: Flag = Field(
        False, description="opens all routes of the server, /metrics too, in place of `predict_route`"
    )

    @model_validator(mode="after")
    def _one_route(self) -> Serving:
        if self.invoke_route and self.predict_route:
            raise ValueError("has both `invoke_route` and `predict_route`: Vertex AI takes one of them")
        return self

    @field_validator("args")
    @classmethod
    def _no_flag_twice(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        _refuse_repeated_flags(args)
        return args


class Variant(Section):
    """One side of the comparison.

    Without `endpoint` and `url` it is deployed from `model` and `serving`, and torn down again.
    With one of them, what runs there is measured and never touched.
    """

    id: str = Field(
        pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="1 to 40 of a-z, 0-9 and -, starting with a letter: it becomes part of an endpoint's id",
    )
    label: str | None = Field(None, description="how the report calls it")
    args: Args = Field((), description="added to `serving.args`: the speculative settings")
    env: Env = Field(default_factory=dict)
    endpoint: str | None = Field(
        None,
        pattern=r"^projects/[^/\s]+/locations/[^/\s]+/endpoints/[^/\s]+$",
        description="resource name of an existing Vertex AI endpoint",
    )
    url: Annotated[str, AfterValidator(_without_credentials)] | None = Field(
        None, pattern=r"^https?://[^/\s]+", description="base URL of any OpenAI-compatible server, up to and with /v1"
    )
    served_model: str | None = Field(None, description="the model name in requests to `url`")
    api_key_secret: SecretName | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Variant:
        if self.endpoint and self.url:
            raise ValueError("has both `endpoint` and `url`: give one")
        if (self.endpoint or self.url) and (self.args or self.env):
            raise ValueError("`args` and `env` are for variants that are deployed, not for an `endpoint` or a `url`")
        return self

    @property
    def deployed(self) -> bool:
        """Whether a run makes (and deletes) this variant's endpoint."""
        return self.endpoint is None and self.url is None


class Workload(Section):
    """Which prompts, how many, how long the answers."""

    dataset: Annotated[str, AfterValidator(_known_source)] = Field(
        "builtin",
        min_length=1,
        description="`builtin`, `sharegpt`, a path, gs:// or https:// address, `hf://owner/name[/file]`, "
        "or a shape `synthetic:INPUTxOUTPUT` in tokens",
    )
    prompt_column: str | None = Field(None, description="column of a CSV file that holds the prompt")
    prompts_per_level: Count = Field(
        1000, description="requests per level in all rounds together; the least is max(50, 20 × concurrency)"
    )
    max_output_tokens: Count = 512
    min_prompt_tokens: Count = 4
    max_prompt_tokens: Count = 1024
    ignore_eos: Flag = Field(False, description="answers of fixed length; the report labels it")
    request_timeout_s: Positive = 600.0
    seed: Whole = 0
    precision: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        0.02, description="a cell ends after a whole round (never before the third) once its intervals are narrower"
    )
    store_text: Flag = Field(True, description="keep the answers' texts, for the losslessness check")

    @model_validator(mode="after")
    def _room_for_prompts(self) -> Workload:
        if self.min_prompt_tokens > self.max_prompt_tokens:
            raise ValueError("`min_prompt_tokens` is above `max_prompt_tokens`: no prompt fits")
        return self

    def requests_at(self, concurrency: int) -> int:
        """Requests of one cell: what was asked for, never under the least that gives an answer."""
        return max(self.prompts_per_level, least_requests(concurrency))


class Slo(Section):
    """What an interactive user needs; goodput counts the requests that met it."""

    ttft_ms: Positive | None = None
    tpot_ms: Positive | None = None


class Criteria(Section):
    """What the results are judged by."""

    max_failure_rate: Annotated[Number, Field(ge=0, lt=1)] = 0.02
    price_per_hour: Positive | None = None
    slo: Slo | None = None
    baseline_again: str | None = None


class Config(Section):
    """A whole benchmark."""

    project: Word
    location: str = Field(pattern=r"^[a-z0-9-]+$", description="a region, such as us-central1")
    pipeline_root: str | None = Field(None, description="gs:// folder for the artifacts of runs")
    service_account: str | None = Field(None, pattern=r"^[^@\s]+@[^@\s]+$", description="an account's e-mail address")
    model: str | None = Field(
        None, min_length=1, description="publisher/model@version of Model Garden, or a Hugging Face id (owner/name)"
    )
    tokenizer: str | None = Field(None, min_length=1, description="Hugging Face id, gs:// or local folder")
    hf_token_secret: SecretName | None = None
    serving: Serving = Serving()
    variants: tuple[Variant, ...] = Field(min_length=1)
    baseline: str = "baseline"
    baseline_again: str | None = Field(
        None, description="id of a variant that is the baseline once more: how far its answers differ from themselves"
    )
    workload: Workload = Workload()
    concurrency: tuple[Level, ...] = Field((1, 2, 4, 6, 8, 10), min_length=1)
    repeats: Rounds = 3
    max_failure_rate: Annotated[Number, Field(ge=0, lt=1)] = 0.02
    price_per_hour: Positive | None = Field(None, description="of one endpoint, for cost per million tokens")
    slo: Slo | None = None

    @field_validator("concurrency")
    @classmethod
    def _levels_differ(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        twice = sorted({n for n in levels if levels.count(n) > 1})
        if twice:
            raise ValueError(f"names {twice[0]} twice; each level is measured once, `repeats` repeats it")
        return levels

    @field_validator("variants")
    @classmethod
    def _ids_differ(cls, variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
        ids = [v.id for v in variants]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"has two variants with the id {twice[0]!r}")
        return variants

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        ids = [v.id for v in self.variants]
        if self.baseline not in ids:
            raise ValueError(
                f"no variant is the baseline: none of {', '.join(ids)} has the id {self.baseline!r}; "
                "give one that id, or name one with `baseline: ID`"
            )
        if len(ids) < 2:
            raise ValueError("`variants` has only the baseline: there is nothing to compare it with")
        if self.baseline_again is not None and self.baseline_again not in set(ids) - {self.baseline}:
            raise ValueError(f"`baseline_again`: {self.baseline_again!r} is no variant beside the baseline")
        if self.model is None and any(v.deployed for v in self.variants):
            raise ValueError("`model` is needed: at least one variant is to be deployed")
        if self.tokenizer is None and any(v.url is None for v in self.variants):
            raise ValueError(
                "`tokenizer` is missing: a Vertex AI endpoint sends no token counts, so the answers are counted with it"
            )
        for variant in self.variants:
            if variant.deployed:
                _refuse_repeated_flags((*self.serving.args, *variant.args), where=f"of variant {variant.id!r} ")
        return self

    @property
    def criteria(self) -> Criteria:
        return Criteria(
            max_failure_rate=self.max_failure_rate,
            price_per_hour=self.price_per_hour,
            slo=self.slo,
            baseline_again=self.baseline_again,
        )


def least_requests(concurrency: int) -> int:
    """Requests below which a cell says nothing: max(50, 20 × concurrency)."""
    return max(50, 20 * concurrency)


FLAG = re.compile(r"^(--[A-Za-z0-9][\w.-]*)")


def _refuse_repeated_flags(args: tuple[str, ...], *, where: str = "") -> None:
    flags = [match.group(1).replace("_", "-") for arg in args if (match := FLAG.match(arg))]
    twice = sorted({flag for flag in flags if flags.count(flag) > 1})
    if twice:
        raise ValueError(f"{where}gives {twice[0]} twice: the server would silently take one of them")
