"""What to compare, on what, with which load: the fields of a config file. Strict and frozen.

A field's description, example and unit stand here, in `load` or in `serving`, and nowhere else: all texts are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from eagle_bench.fields import Contradiction, Level, Number, Positive, Price, Rounds, Section, Word
from eagle_bench.load import Criteria, Slo, Workload, least_requests
from eagle_bench.nearest import did_you_mean
from eagle_bench.secrecy import Args, Env, SecretName, Url
from eagle_bench.serving import Serving, flag_given_twice

__all__ = ["ON_VERTEX_AI", "Config", "Criteria", "Serving", "Slo", "Variant", "Workload", "least_requests"]

ON_VERTEX_AI = ("project", "location", "pipeline_root")  # where a job runs; a run on this machine needs none of them


class Variant(Section):
    """One side of the comparison.

    Without `endpoint` and `url` it is deployed from `model` and `serving`, and torn down again.
    With one of them, what runs there is measured and never touched.
    """

    id: str = Field(
        pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="1 to 40 of a-z, 0-9 and -, starting with a letter: it becomes part of an endpoint's id",
        examples=["eagle3"],
    )
    label: str | None = Field(None, description="how the report calls it", examples=["EAGLE-3, 3 steps"])
    args: Args = Field(
        (),
        description="added to `serving.args`: the speculative settings",
        examples=[["--speculative-algo=EAGLE3", "--speculative-num-steps=3"]],
    )
    env: Env = Field(
        default_factory=dict, description="added to `serving.env`", examples=[{"SGLANG_ENABLE_SPEC_V2": "1"}]
    )
    endpoint: str | None = Field(
        None,
        pattern=r"^projects/[^/\s]+/locations/[^/\s]+/endpoints/[^/\s]+$",
        description="resource name of an existing Vertex AI endpoint",
        examples=["projects/my-project/locations/us-central1/endpoints/1234567890"],
    )
    url: Url | None = Field(
        None,
        pattern=r"^https?://[^/\s]+",
        description="base URL of any OpenAI-compatible server, up to and with /v1",
        examples=["http://10.0.0.7:8000/v1"],
    )
    served_model: str | None = Field(
        None, description="the model name in requests to `url`", examples=["meta-llama/Llama-3.1-8B-Instruct"]
    )
    api_key_secret: SecretName | None = Field(
        None,
        description="Secret Manager resource name of the bearer token for `url`, never the token",
        examples=["projects/my-project/secrets/api-key/versions/latest"],
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if self.endpoint and self.url:
            yield Contradiction(("endpoint", "url"), "has both `endpoint` and `url`: give one.")
        if (self.endpoint or self.url) and (self.args or self.env):
            yield Contradiction(
                ("args", "env", "endpoint", "url"),
                "`args` and `env` are for variants that are deployed, not for an `endpoint` or a `url`.",
            )

    @property
    def place(self) -> tuple[str, str | None] | None:
        """What tells apart where variants run that are not deployed; None where this one is."""
        if self.url is None:
            return (self.endpoint, None) if self.endpoint else None
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}", self.served_model

    @property
    def deployed(self) -> bool:
        """Whether a run makes (and deletes) this variant's endpoint."""
        return self.endpoint is None and self.url is None


class Config(Section):
    """A whole benchmark."""

    project: Word | None = Field(
        None,
        description="id of the Google Cloud project, not its number; a job on Vertex AI needs it",
        examples=["my-project"],
    )
    location: str | None = Field(
        None,
        pattern=r"^[a-z0-9-]+$",
        description="a region, such as us-central1; a job on Vertex AI needs it",
        examples=["us-central1"],
    )
    pipeline_root: str | None = Field(
        None,
        pattern=r"^gs://[^/]+",
        description="gs:// folder for the artifacts of runs; a job on Vertex AI needs it",
        examples=["gs://my-bucket/eagle-bench"],
    )
    service_account: str | None = Field(
        None,
        pattern=r"^[^@\s]+@[^@\s]+$",
        description="e-mail address of the account that the job runs as; the project's default when absent",
        examples=["eagle-bench-run@my-project.iam.gserviceaccount.com"],
    )
    model: str | None = Field(
        None,
        min_length=1,
        description="publisher/model@version of Model Garden, or a Hugging Face id (owner/name)",
        examples=["meta/llama4@llama-4-scout-17b-16e-instruct"],
    )
    tokenizer: str | None = Field(
        None,
        min_length=1,
        description="Hugging Face id, gs:// or local folder",
        examples=["meta-llama/Llama-4-Scout-17B-16E-Instruct"],
    )
    hf_token_secret: SecretName | None = Field(
        None,
        description="Secret Manager resource name of a Hugging Face token, never the token; for what is gated",
        examples=["projects/my-project/secrets/hf-token/versions/latest"],
    )
    serving: Serving = Field(Serving(), description="how variants that are deployed are served")
    variants: tuple[Variant, ...] = Field(min_length=1, description="the sides of the comparison, two or more")
    baseline: str = Field(
        "baseline", description="id of the variant that the others are compared with", examples=["no-speculation"]
    )
    baseline_again: str | None = Field(
        None,
        description="id of a variant that is the baseline once more: how far its answers differ from themselves",
        examples=["baseline-2"],
    )
    allow_difference: tuple[Word, ...] = Field(
        (),
        description="settings other than speculation in which variants may differ: flags of arguments, or env.NAME",
        examples=[["mem-fraction-static"]],
    )
    workload: Workload = Field(Workload(), description="the load, equal for all variants")
    concurrency: tuple[Level, ...] = Field(
        (1, 2, 4, 6, 8, 10),
        min_length=1,
        description="the levels: how many requests are in flight at any time",
        examples=[[1, 4, 16]],
        json_schema_extra={"unit": "requests in flight"},
    )
    repeats: Rounds = Field(
        3,
        description="rounds of each level, each with prompts of its own; fewer than 3 hide drift",
        examples=[5],
        json_schema_extra={"unit": "rounds"},
    )
    max_failure_rate: Annotated[Number, Field(ge=0, lt=1)] = Field(
        0.02,
        description="share of failed requests above which a cell is out of the verdict",
        examples=[0.0],
        json_schema_extra={"unit": "share"},
    )
    price_per_hour: Price | None = Field(
        None,
        description="dollars, of one endpoint, for cost per million tokens",
        examples=[88.0],
        json_schema_extra={"unit": "dollars"},
    )
    slo: Slo | None = Field(
        None,
        description="objectives that goodput and the report are held against",
        examples=[{"ttft_ms": 500.0, "tpot_ms": 30.0}],
    )
    max_hours: Positive | None = Field(
        None,
        description="a budget: a run that lasts longer gives everything back and answers from what it has",
        examples=[3.0],
        json_schema_extra={"unit": "hours"},
    )

    @field_validator("concurrency")
    @classmethod
    def _levels_differ(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        twice = sorted({n for n in levels if levels.count(n) > 1})
        if twice:
            raise ValueError(f"names {twice[0]} twice; each level is measured once, `repeats` repeats it")
        return levels

    def contradictions(self) -> Iterator[Contradiction]:
        yield from self._about_ids()
        kinds = ("variants.endpoint", "variants.url")
        if self.model is None and any(v.deployed for v in self.variants):
            yield Contradiction(("model", *kinds), "`model` is needed: at least one variant is to be deployed.")
        if self.tokenizer is None and any(v.url is None for v in self.variants):
            yield Contradiction(
                ("tokenizer", *kinds),
                "`tokenizer` is missing: a Vertex AI endpoint sends no token counts, so the answers are counted with it.",
            )
        yield from self._about_places()
        for variant in self.variants:
            twice = flag_given_twice((*self.serving.args, *variant.args))
            if variant.deployed and twice:
                yield Contradiction(
                    ("serving.args", "variants.args", *kinds),
                    f"`serving.args` and those of variant {variant.id!r} give {twice} twice: "
                    "the server would silently take one of them.",
                )

    def _about_ids(self) -> Iterator[Contradiction]:
        ids = [v.id for v in self.variants]
        others = set(ids) - {self.baseline}
        known = ("variants.id", "baseline")
        for twice in sorted({i for i in ids if ids.count(i) > 1}):
            yield Contradiction(("variants.id",), f"`variants` has two variants with the id {twice!r}.")
        if self.baseline not in ids:
            yield Contradiction(
                known,
                f"no variant is the baseline: none of {', '.join(ids)} has the id {self.baseline!r}."
                f"{did_you_mean(self.baseline, ids)} Give one that id, or name one with `baseline: ID`.",
            )
        if len(ids) < 2:
            yield Contradiction(
                ("variants.id",), "`variants` has only the baseline: there is nothing to compare it with."
            )
        if self.baseline_again is not None and self.baseline_again not in others:
            yield Contradiction(
                (*known, "baseline_again"),
                f"`baseline_again`: {self.baseline_again!r} is no variant beside the baseline."
                f"{did_you_mean(self.baseline_again, others)}",
            )

    def _about_places(self) -> Iterator[Contradiction]:
        for one, other in combinations(self.variants, 2):
            if one.place and one.place == other.place and {one.id, other.id} != {self.baseline, self.baseline_again}:
                yield Contradiction(
                    ("variants", "baseline", "baseline_again"),
                    f"`variants`: {one.id!r} and {other.id!r} are the same {'url' if one.url else 'endpoint'}: "
                    "nothing could differ between them. Only the baseline may stand there twice, the second time named "
                    "by `baseline_again`.",
                )

    @property
    def criteria(self) -> Criteria:
        return Criteria(**{name: getattr(self, name) for name in Criteria.model_fields})
