"""In what a variant differs from the baseline beyond speculation: any gain of that would be taken for EAGLE's.

A setting is known by a key: the flag of an argument without its dashes (`max-num-seqs`), the name of an environment
variable (`env.OMP_NUM_THREADS`), or a field of `serving` (`image`, `machine_type`, `accelerator`, …).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pydantic import Field

from eagle_bench.config import Config, Serving
from eagle_bench.errors import InputError
from eagle_bench.results import Record
from eagle_bench.variants import VariantSpec, resolve

# How engines spell it: --speculative-algo, --speculative_config, --num-speculative-tokens, --spec-…, --speculate, -sc.
SPECULATION = re.compile(
    r"(^|[-_.])(spec|speculate|speculative|speculation|eagle\d?|medusa)([-_.]|$)|^sc$", re.IGNORECASE
)
FIELDS = (
    "image",
    "machine_type",
    "accelerator",
    "command",
    "port",
    "health_route",
    "predict_route",
    "shared_memory_mb",
    "spot",
    "reservation",
    "dedicated_endpoint",
)
LONGEST_SHOWN = 60


class Difference(Record):
    """One setting in which a variant is not as the baseline; null where it isn't set."""

    key: str = Field(description="flag of an argument, `env.NAME`, or a field of `serving`")
    baseline: str | None = Field(description="as the baseline has it")
    variant: str | None = Field(description="as the variant has it")
    allowed: bool = Field(False, description="the config's `allow_difference` names it")

    def __str__(self) -> str:
        return f"{self.key} ({_shown(self.baseline)} and {_shown(self.variant)})"


def differences(baseline: VariantSpec, other: VariantSpec, allowed: Iterable[str] = ()) -> tuple[Difference, ...]:
    """What differs between two deployed variants but for speculation, by key.

    Args:
        allowed: keys of the config's `allow_difference`; `max_num_seqs` and `--max-num-seqs` are the same one.
    """
    if baseline.serving is None or other.serving is None:
        return ()
    mine, theirs = settings_of(baseline), settings_of(other)
    known = {_plain(key) for key in allowed}
    return tuple(
        Difference(key=key, baseline=mine.get(key), variant=theirs.get(key), allowed=_plain(key) in known)
        for key in sorted(mine.keys() | theirs.keys())
        if mine.get(key) != theirs.get(key) and not is_speculation(key)
    )


def by_variant(
    specs: Sequence[VariantSpec], baseline: str, allowed: Sequence[str] = ()
) -> dict[str, tuple[Difference, ...]]:
    """The differences of each variant from the baseline, for those that have any."""
    first = next((spec for spec in specs if spec.id == baseline), None)
    if first is None:
        return {}
    found = {spec.id: differences(first, spec, allowed) for spec in specs if spec is not first}
    return {name: some for name, some in found.items() if some}


def speculation(spec: VariantSpec) -> dict[str, str]:
    """The settings of a deployed variant that turn speculation on, by key."""
    return {key: value for key, value in settings_of(spec).items() if is_speculation(key)}


def is_speculation(key: str) -> bool:
    """Whether a key is one of those that set speculation, in any engine's spelling."""
    return bool(SPECULATION.search(key.removeprefix("env.")))


def settings_of(spec: VariantSpec) -> dict[str, str]:
    """All settings of a deployed variant by key, as text; what isn't set is not there."""
    serving = spec.serving
    if serving is None:
        return {}
    found = dict(_arguments(serving.args))
    found |= {f"env.{name}": value for name, value in serving.env.items()}
    found |= {key: text for key in FIELDS if (text := _field(serving, key)) is not None}
    if spec.model:
        found["model-id"] = spec.model
    return found


def require_equal(config: Config) -> None:
    """Refuse a config whose variants differ in more than speculation and what it allows.

    Raises:
        InputError: which settings of which variant.
    """
    baseline, *others = resolve(config)
    for spec in others:
        found = [one for one in differences(baseline, spec, config.allow_difference) if not one.allowed]
        if found:
            raise InputError(
                f"`variants`: {spec.id} differs from {baseline.id} in more than speculation: "
                f"{'; '.join(str(one) for one in found)}.",
                hint=how_to_allow(one.key for one in found),
            )


def how_to_allow(keys: Iterable[str]) -> str:
    """What to do about differences that aren't allowed."""
    return f"Make them equal, or say that they are meant with `allow_difference: [{', '.join(keys)}]`."


def _arguments(args: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Pairs of flag and value, as engines read them: `--flag=value`, `--flag value`, `--flag`; words without a flag."""
    flag: str | None = None
    for arg in args:
        if re.match(r"--?[A-Za-z]", arg):
            if flag is not None:
                yield flag, ""
            name, equals, value = arg.partition("=")
            flag = _plain(name)
            if equals:
                yield flag, value
                flag = None
        elif flag is not None:
            yield flag, arg
            flag = None
        else:
            yield f"word {arg}", arg
    if flag is not None:
        yield flag, ""


def _field(serving: Serving, key: str) -> str | None:
    value = getattr(serving, key)
    if value is None or value is False or value == ():
        return None
    if key == "accelerator":
        return f"{serving.accelerator.count} × {serving.accelerator.type}" if serving.accelerator else None
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _plain(key: str) -> str:
    """A key as it is compared: without dashes before it, underscores as dashes."""
    return key if key.startswith("env.") else key.lstrip("-").replace("_", "-")


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    return (value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}…") or "set"
