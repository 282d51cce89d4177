"""The checks of `eagle-bench plan`: each asks what a run will need, and makes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from eagle_bench.adapters import hugging_face, sources
from eagle_bench.adapters.vertex_address import on_this_machine
from eagle_bench.adapters.vertex_models import served_at
from eagle_bench.config import Config
from eagle_bench.differences import Difference, differences, how_to_allow, speculation
from eagle_bench.errors import ServiceError, because
from eagle_bench.estimate import prompts_needed
from eagle_bench.machines import THIS_MACHINE
from eagle_bench.planning.cloud_checks import NOT_THERE, answered, cloud_checks
from eagle_bench.planning.image_checks import image_checks
from eagle_bench.planning.local_checks import engine_checks
from eagle_bench.planning.quick_checks import host_checks, machine_checks, server_checks
from eagle_bench.run_plan import Check
from eagle_bench.tasks.stage_data import count_prompts
from eagle_bench.units import conjunction, whole
from eagle_bench.variants import VariantSpec, resolve

NO_CLOUD = "nothing of this run is there, and `run` needs no account. For `submit`, give `plan` its `--image`, too."
HUB_SAYS_NO = NOT_THERE | {"gated-model", "authentication", "permission"}


def checks(
    config: Config, *, template: str | None = None, images: Sequence[str] = (), engines: Path | None = None
) -> Iterator[Check]:
    """Every check of a plan, in the order in which a reader should see them.

    Args:
        template: as `submit --template` takes it; what this package compiles when absent.
        images: as `submit --image` takes them.
        engines: as `run --engines` takes it.
    """
    here = runs_here(config, template=template, images=images, engines=engines)
    yield answered("variants", lambda: _variants(config))
    of_engine = tuple(engine_checks(config, engines)) if here and _deploys(config) else tuple(machine_checks(config))
    yield from of_engine
    yield from server_checks(config, reached_from_here=here)
    yield from host_checks(config)
    token, why_not = _hub_token(config)
    yield answered("data", lambda: _data(config, token, here), _refusing(config.workload.dataset))
    if all(check.name != "tokenizer" for check in of_engine):
        tokenizer = answered("tokenizer", lambda: _tokenizer(config, token, here), _refusing(config.tokenizer or ""))
        yield _unless_without(why_not, tokenizer)
    if config.model and "@" not in config.model and _deploys(config) and not here:
        yield _unless_without(why_not, answered("model", lambda: _hub_model(config, token), HUB_SAYS_NO))
    if here:
        yield Check(name="google-cloud", status="not needed", text=NO_CLOUD, hint=None)
        return
    yield from cloud_checks(config)
    yield from image_checks(config, template=template, images=images)


def runs_here(config: Config, *, template: str | None, images: Sequence[str], engines: Path | None = None) -> bool:
    """Whether `run` is meant, and not `submit`, for which something would be named that only it takes.

    What runs at URLs can be measured from here. What is deployed is this machine's where engines of it are named, or
    where the config names no machine of Vertex AI, or no project; but not in a shell that Local Vertex's jobs go to.
    """
    if template is not None or images or any(variant.endpoint for variant in config.variants):
        return False
    if engines is not None or not _deploys(config):
        return True
    return (config.project is None or config.serving.machine_type == THIS_MACHINE) and not on_this_machine()


def _variants(config: Config) -> Check | str:
    baseline, *others = resolve(config)
    at_urls = [spec.id for spec in (baseline, *others) if spec.url]
    found: list[tuple[VariantSpec, tuple[Difference, ...]]] = []
    unseen: list[str] = []
    first = _seen(baseline, unseen)
    for spec in others:
        other = _seen(spec, unseen)
        if first.serving is not None and other.serving is not None:
            found.append((other, differences(*_comparable(first, other), config.allow_difference)))
    refused = [(spec, [one for one in some if not one.allowed]) for spec, some in found]
    words = [f"{spec.id} differs in {'; '.join(map(str, some))}" for spec, some in refused if some]
    if words:
        text = f"{'. '.join(words)}: any gain of that would be taken for speculation's."
        keys = dict.fromkeys(one.key for _, some in refused for one in some)
        return Check(name="variants", status="refused", text=text, hint=how_to_allow(keys))
    said = " ".join(f"{_speculation_of(spec, some, first, config)}." for spec, some in found)
    if at_urls:
        serve = "serves at its URL" if len(at_urls) == 1 else "serve at their URLs"
        unseen.append(f"what {conjunction(at_urls)} {serve} can't be seen.")
    if unseen:
        return Check(name="variants", status="not checked", text=" ".join(filter(None, [*unseen, said])))
    return said


def _seen(spec: VariantSpec, unseen: list[str]) -> VariantSpec:
    """A variant with the settings behind it, those of an existing endpoint too; `unseen` gets why there are none."""
    if spec.endpoint:
        try:
            return served_at(spec.endpoint, spec.id)
        except ServiceError as error:
            if error.kind in NOT_THERE:
                raise
            unseen.append(because(f"what {spec.id} serves can't be seen", error.message))
    return spec


def _comparable(one: VariantSpec, other: VariantSpec) -> tuple[VariantSpec, VariantSpec]:
    """Without what only one of the two tells: an existing endpoint names no model, and perhaps no environment."""
    assert one.serving is not None and other.serving is not None
    if one.endpoint is None and other.endpoint is None:
        return one, other
    hidden: dict[str, object] = {}
    if not (one.serving.env and other.serving.env):
        hidden = {"env": {}}
    pair = tuple(
        spec.model_copy(update={"model": None, "serving": spec.serving and spec.serving.model_copy(update=hidden)})
        for spec in (one, other)
    )
    return pair[0], pair[1]


def _speculation_of(spec: VariantSpec, allowed: Sequence[Difference], first: VariantSpec, config: Config) -> str:
    settings, before = speculation(spec), speculation(first)
    if settings == before:
        same = "once more" if spec.id == config.baseline_again else "too: it is the same, and sets no speculation"
        text = f"{spec.id} is the baseline {same}"
    else:
        changed = [key for key in {**settings, **before} if settings.get(key) != before.get(key)]
        text = f"{spec.id} differs in speculation ({', '.join(changed) if settings else 'the baseline sets it'})"
    return f"{text}, and as allowed in {'; '.join(map(str, allowed))}" if allowed else text


def _hub_token(config: Config) -> tuple[str | None, ServiceError | None]:
    """The hub's token, or why there is none: what is public can be read without."""
    try:
        return sources.hub_token(config.hf_token_secret), None
    except ServiceError as error:
        return None, error


def _unless_without(why_not: ServiceError | None, found: Check) -> Check:
    """A check that the hub answered: without the token that the job will have, a refusal proves nothing."""
    if found.status != "refused" or why_not is None or why_not.kind in NOT_THERE:
        return found
    text = f"{found.text} The token that the job will have could not be tried: {why_not.message}"
    return Check(name=found.name, status="not checked", text=text, hint=why_not.hint)


def _refusing(source: str) -> frozenset[str]:
    """Which errors refuse: a bucket's may be the caller's alone, the hub's and the web's are everybody's."""
    return NOT_THERE if source.startswith("gs://") else HUB_SAYS_NO


def _data(config: Config, token: str | None, here: bool) -> str:
    load = config.workload
    if not here:
        sources.refuse_unreadable("workload.dataset", load.dataset, local_vertex=on_this_machine())
    sources.check_dataset(load.dataset, token)
    found, needed = count_prompts(config), prompts_needed(config)
    if found is None:
        return f"{load.dataset} is there; {whole(needed)} prompts are needed, and counted when the run begins."
    limits = " before the length limits" if config.tokenizer else ""
    return f"{load.dataset}: {whole(found.kept)} prompts can be used{limits}, {whole(needed)} are needed."


def _tokenizer(config: Config, token: str | None, here: bool) -> str:
    if config.tokenizer is None:
        return "none is set: the servers count the tokens."
    if not here:
        sources.refuse_unreadable("tokenizer", config.tokenizer, local_vertex=on_this_machine())
    sources.check_tokenizer(config.tokenizer, token)
    return f"{config.tokenizer} can be read."


def _hub_model(config: Config, token: str | None) -> str:
    assert config.model is not None
    hugging_face.check_model(config.model, token)
    return f"{config.model} can be read on Hugging Face."


def _deploys(config: Config) -> bool:
    return any(variant.deployed for variant in config.variants)
