"""Checks of a plan that need no account and take seconds: `run` and `submit` make them too, before anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from eagle_bench.adapters.running_servers import Seen, look
from eagle_bench.adapters.vertex_address import on_this_machine
from eagle_bench.adapters.vertex_request import ONLY_WITH_IMAGE, no_image
from eagle_bench.config import Config
from eagle_bench.errors import InputError
from eagle_bench.hosts import host_of, on_one
from eagle_bench.machines import MACHINES
from eagle_bench.nearest import did_you_mean
from eagle_bench.run_plan import Check
from eagle_bench.units import conjunction


def machine_checks(config: Config) -> Iterator[Check]:
    """Whether the machine of what is deployed is known. What it can't hold was refused with the config."""
    if not any(variant.deployed for variant in config.variants):
        return
    name = config.serving.machine_type
    if on_this_machine():
        yield Check(name="machine", status="not needed", text="this machine stands for it.")
        return
    if name in MACHINES:
        yield Check(name="machine", status="ok", text=f"{name} has {MACHINES[name]}.")
        return
    text = f"`machine_type: {name}` is not known to this version.{did_you_mean(name, MACHINES)}"
    yield Check(name="machine", status="warning", text=text, hint="A machine that Google added since may be right.")


def require_image(config: Config) -> None:
    """Make sure that an image is named where anything deployed has settings that only a named one gets.

    Raises:
        InputError: none is, with the field as it stands in the config.
    """
    deployed = {f"variants[{place}]": one for place, one in enumerate(config.variants) if one.deployed}
    if config.serving.image is not None or not deployed:
        return
    for field in ONLY_WITH_IMAGE:
        if getattr(config.serving, field):
            raise no_image(f"serving.{field}")
    for name, variant in deployed.items():
        for field in ("args", "env"):
            if getattr(variant, field):
                raise no_image(f"{name}.{field}")


def server_checks(config: Config, *, reached_from_here: bool) -> Iterator[Check]:
    """Whether the servers that variants name by a URL are there.

    Args:
        reached_from_here: the run will ask them from this machine, so that one that is down is refused. From elsewhere
            it may be otherwise: that is a warning.
    """
    named = {variant.id: variant.url for variant in config.variants if variant.url}
    if not named:
        return
    try:
        found = dict(zip(named, look(list(named.values())), strict=True))
    except InputError as error:
        yield Check(name="servers", status="refused", text=error.message, hint=error.hint)
        return
    if all(seen.up for seen in found.values()):
        yield Check(
            name="servers", status="ok", text=f"{conjunction(list(named))} {'answer' if len(named) > 1 else 'answers'}."
        )
        return
    text = " ".join(f"{name}: {named[name]} {seen.text}" for name, seen in found.items())
    lost = any(seen.up is False for seen in found.values())
    hint = " ".join(_hints(named, found)) if lost else "A run asks again for a while."
    if lost and not reached_from_here:
        hint = f"{hint} Where the run asks from, it may be otherwise."
    yield Check(name="servers", status="refused" if lost and reached_from_here else "warning", text=text, hint=hint)


def host_checks(config: Config) -> Iterator[Check]:
    """Whether variants at URLs share a host: they are measured side by side, and may share a machine there."""
    sharing: dict[str, list[str]] = {}
    for variant in config.variants:
        if variant.url and (host := host_of(variant.url)):
            sharing.setdefault(host, []).append(variant.id)
    shared = [on_one(host, names) for host, names in sharing.items() if len(names) > 1]
    if not shared:
        return
    text = "; ".join(shared)
    hint = "Measure one after the other with `bench` (docs/two-endpoints.md)."
    yield Check(
        name="hosts", status="warning", text=f"{text}: measured side by side they may slow each other.", hint=hint
    )


def _hints(named: Mapping[str, str], found: Mapping[str, Seen]) -> Iterator[str]:
    if moved := [f"`url: {seen.meant}` for {name}" for name, seen in found.items() if seen.meant]:
        yield f"Write {conjunction(moved)}."
    if down := [name for name, seen in found.items() if seen.up is False and not seen.meant]:
        url = named[down[0]].rstrip("/")
        yield f"Start what is down, or mend its `url`: `curl {url}/models` asks the same."


def heed(checks: Iterable[Check], say: Callable[[str], None]) -> None:
    """Go on only where nothing is refused; warnings are said.

    Raises:
        InputError: a check refuses.
    """
    for check in checks:
        if check.status == "refused":
            raise InputError(check.text, hint=check.hint)
        if check.status == "warning":
            say(f"warning: {check.text} {check.hint or ''}".strip())
