"""A variant as the pipeline's tasks get it: all that is needed to deploy or reach it, in one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from eagle_bench.config import Config
from eagle_bench.fields import Level, Section
from eagle_bench.secrecy import SecretName
from eagle_bench.serving import Serving

NO_LEVEL = 0
"""Stands alone in a list of levels where none is to be measured: not every runner takes loops over nothing."""
MACHINES = {
    "own": "each variant has machines of its own",
    "one-at-a-time": "one machine: the variants are deployed and measured one after another",
    "turns": "one machine: the variants are deployed together and take turns",
}
"""How variants share machines, as cells tell it (`environment.machines`)."""


class VariantSpec(Section):
    """One variant with the shared serving settings merged in. Travels as a pipeline parameter."""

    id: str
    label: str | None = None
    model: str | None = None
    serving: Serving | None = None
    endpoint: str | None = None
    url: str | None = None
    served_model: str | None = None
    api_key_secret: SecretName | None = None
    hf_token_secret: SecretName | None = None
    levels: tuple[Level, ...] | None = Field(None, description="the levels to measure; None: all of the run")

    @property
    def deployed(self) -> bool:
        """Whether a run makes (and deletes) this variant's endpoint."""
        return self.endpoint is None and self.url is None

    @property
    def to_measure(self) -> bool:
        """Whether anything is; an earlier run may have measured it all."""
        return self.levels != ()

    def levels_of(self, run: Sequence[int]) -> tuple[int, ...]:
        """The levels that this variant is measured at, of those of its run."""
        return tuple(int(level) for level in run) if self.levels is None else self.levels

    def as_parameter(self) -> dict[str, Any]:
        """Plain JSON values without what is absent: consoles show parameters to people."""
        return self.model_dump(mode="json", exclude_none=True)


def resolve(config: Config) -> tuple[VariantSpec, ...]:
    """The variants of a config, the baseline first, each with `serving` and its own arguments merged."""
    ordered = sorted(config.variants, key=lambda variant: variant.id != config.baseline)
    specs = []
    for variant in ordered:
        serving = None
        if variant.deployed:
            serving = config.serving.model_copy(
                update={
                    "args": (*config.serving.args, *variant.args),
                    "env": {**config.serving.env, **variant.env},
                }
            )
        specs.append(
            VariantSpec(
                id=variant.id,
                label=variant.label,
                model=config.model if variant.deployed else None,
                serving=serving,
                endpoint=variant.endpoint,
                url=variant.url,
                served_model=variant.served_model,
                api_key_secret=variant.api_key_secret,
                hf_token_secret=config.hf_token_secret if variant.deployed else None,
            )
        )
    return tuple(specs)
