"""Whether the variants were served and asked alike, but for speculation. The part of `checks` about settings."""

from __future__ import annotations

from collections.abc import Iterator

from eagle_bench.comparison import Warning
from eagle_bench.grid import Grid
from eagle_bench.hosts import host_of, on_one
from eagle_bench.results import CellResult

# What may differ between variants: everything else in these two places is a difference of the experiment.
_FREE_SETTINGS = frozenset({"args", "arguments", "env", "endpoint", "url", "label", "served model", "api_key_secret"})
_WORK = ("max_output_tokens", "temperature", "ignore_eos")  # what makes another answer of the same prompt
_ENVIRONMENT_EQUAL = (
    "image", "machine_type", "accelerator", "replicas", "region", "location", "client_version",
    "model_id", "tokenizer_id", "backend", "request_rate",  # as files of `vllm bench serve` tell them
)  # fmt: skip


def _free(setting: str) -> bool:
    """Whether a setting may differ between variants: it is where speculation is set, or only an address."""
    return setting in _FREE_SETTINGS or setting.startswith("environment ")


def unequal_settings(grid: Grid) -> Iterator[Warning]:
    """Settings, environments and request bodies that differ where only speculation should."""
    yield from _beyond_speculation(grid)
    settings = grid.plan.settings
    before = settings.get(grid.plan.baseline, {})
    for variant in grid.plan.variants:
        after = settings.get(variant, {})
        differing = [
            f"{name} ({before.get(name, 'not set')} and {after.get(name, 'not set')})"
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name) and not _free(name)
        ]
        if settings and differing and variant in settings:
            text = (
                f"differs from {grid.plan.baseline} in more than speculation: {'; '.join(differing)}. Make them equal."
            )
            yield Warning(code="unequal_settings", variant=variant, text=text)
    for baseline, cell in grid.against_baseline():
        differing = [
            f"{name} ({baseline.environment[name]} and {cell.environment[name]})"
            for name in _ENVIRONMENT_EQUAL
            if name in baseline.environment
            and cell.environment.get(name, baseline.environment[name]) != baseline.environment[name]
        ]
        if baseline.settings and cell.settings:
            one, other = baseline.settings.model_dump(), cell.settings.model_dump()
            differing += [f"{name} ({one[name]} and {other[name]})" for name in one if one[name] != other[name]]
        if differing:
            yield Warning(
                code="unequal_settings",
                variant=cell.variant,
                concurrency=cell.concurrency,
                text=f"measured under other conditions than the baseline: {'; '.join(differing)}.",
            )


def _beyond_speculation(grid: Grid) -> Iterator[Warning]:
    """Arguments and variables that differ besides those that set speculation, and what the config allows of that."""
    for variant, found in grid.plan.differences.items():
        refused = [str(one) for one in found if not one.allowed]
        allowed = [str(one) for one in found if one.allowed]
        if refused:
            text = f"differs from {grid.plan.baseline} in more than speculation: {'; '.join(refused)}. Make them equal."
            yield Warning(code="unequal_settings", variant=variant, text=text)
        if allowed:
            text = (
                f"differs from {grid.plan.baseline} also in {'; '.join(allowed)}, as the config allows: "
                "a speed-up is of both, not of speculation alone."
            )
            yield Warning(code="allowed_difference", variant=variant, text=text)


def shared_host(grid: Grid) -> Iterator[Warning]:
    """Variants at URLs of one host that a run measured: it measures them side by side."""
    sharing: dict[tuple[str, str | None], dict[str, None]] = {}  # (host, run) -> variants
    for cell in grid.good():
        url = grid.plan.settings.get(cell.variant, {}).get("url")
        if url and (host := host_of(url)):
            sharing.setdefault((host, cell.run_id), {})[cell.variant] = None
    for said in dict.fromkeys(on_one(host, list(names)) for (host, _), names in sharing.items() if len(names) > 1):
        text = (
            f"{said} and were measured side by side: if that is one machine, they may have slowed each other. Measure one "
            "after the other with `bench`."
        )
        yield Warning(code="shared_host", text=text)


def changed_work(one: CellResult, other: CellResult) -> list[tuple[str, object, object]]:
    """Settings that make another answer of the same prompt and differ: the name, and both values."""
    if one.settings is None or other.settings is None:
        return []
    both = [(name, getattr(one.settings, name), getattr(other.settings, name)) for name in _WORK]
    return [(name, mine, theirs) for name, mine, theirs in both if mine != theirs]


def unequal_work(one: CellResult, other: CellResult) -> list[str]:
    """In what two cells were asked for different work, in words: a speed-up between them would be of that, too."""
    if one.settings is None or other.settings is None:
        return []
    differing = [
        f"{name} is {mine} for {one.variant} and {theirs} for {other.variant}"
        for name, mine, theirs in changed_work(one, other)
    ]
    hashes = [settings.payload_sha256 for settings in (one.settings, other.settings)]
    if not differing and all(hashes) and hashes[0] != hashes[1]:
        differing.append(f"the request bodies of {one.variant} and {other.variant} differ (payload_sha256)")
    return differing
