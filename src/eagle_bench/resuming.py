"""Going on with an earlier run: its whole cells are taken as they are, and only the others are measured.

The parameters of the new run say so: each variant has its `levels`, and `earlier` names the cells that were taken,
folder by folder, with the hash of the prompts at each level:

    {"cells": {"gs://…/RUN": ["benchmark_1/cell", …]}, "prompts": {"1": "…", "2": "…"}}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eagle_bench.config import Criteria, Workload
from eagle_bench.damage import damage
from eagle_bench.errors import InputError
from eagle_bench.grid import Key
from eagle_bench.results import CellResult
from eagle_bench.units import conjunction
from eagle_bench.unreadable import reason
from eagle_bench.variants import VariantSpec

# What makes no other measurement: names, secrets, and how machines are had.
_FREE = frozenset(
    {
        "label",
        "levels",
        "api_key_secret",
        "hf_token_secret",
        "serving.accept_eula",
        "serving.deploy_timeout_s",
        "serving.reservation",
        "serving.spot",
    }
)
_FREE_WORKLOAD = frozenset({"store_text"})
_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Kept:
    """A cell of an earlier run, and the file or gs:// address where it lies."""

    address: str
    cell: CellResult


@dataclass(frozen=True)
class EarlierRun:
    """A run that ended: what it was told, and every cell that it left.

    Args:
        equipment: what a machine of its own measured it with (see `runs.equipment`); None where that is not known.
        noted_in: the file that says what it was told; None for a job.
    """

    run_id: str
    parameters: Mapping[str, Any]
    cells: tuple[Kept, ...]
    equipment: Mapping[str, Any] | None = None
    noted_in: str | None = None


def whole(cell: CellResult) -> bool:
    """Whether a cell was measured to its end; one that failed too often, was cut short or damaged, is measured anew."""
    if cell.failure is not None or cell.metrics is None or cell.settings is None or cell.prompts is None:
        return False
    if cell.counts.failed > cell.settings.max_failure_rate * cell.counts.requested:
        return False
    enough = cell.saving is not None or cell.counts.requested >= cell.settings.requests
    return enough and damage(cell) is None


def resume(
    parameters: Mapping[str, Any], earlier: EarlierRun, equipment: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A pipeline's parameters, with what the earlier run has measured taken from it.

    Args:
        equipment: what this machine measures with; None where a service has the machines.

    Raises:
        InputError: the runs differ in something that matters (each such field is named), the earlier one has no
            whole cell of this grid, or it has them all.
    """
    variants = [VariantSpec.model_validate(variant) for variant in parameters["variants"]]
    levels = [int(level) for level in parameters["concurrency"]]
    taken = _taken(earlier.cells, {(spec.id, level) for spec in variants for level in levels})
    if not taken:
        raise InputError(
            f"--resume: {earlier.run_id} has no whole result of these variants and levels.", hint="Run without it."
        )
    if differing := list(_differences(earlier, parameters, equipment, {variant for variant, _ in taken})):
        raise InputError(
            f"--resume: {earlier.run_id} was measured otherwise: {'; '.join(differing)}.",
            hint="Make them equal, or measure everything anew: run without --resume.",
        )
    if len(taken) == len(variants) * len(levels):
        raise InputError(
            f"--resume: nothing is missing in {earlier.run_id}.",
            hint=f"Its results and the answer are in {Path(earlier.noted_in).parent}."
            if earlier.noted_in
            else "`eagle-bench fetch` gets its results and the answer.",
        )
    left = {spec.id: tuple(level for level in levels if (spec.id, level) not in taken) for spec in variants}
    return {
        **parameters,
        "variants": [spec.model_copy(update={"levels": left[spec.id]}).as_parameter() for spec in variants],
        "earlier": {"cells": _by_folder(taken.values()), "prompts": _prompts(earlier.run_id, taken.values())},
    }


def taken_and_left(parameters: Mapping[str, Any]) -> tuple[str, str]:
    """In words, the cells that a resumed run takes and those that it measures, by the parameters that `resume` made."""
    taken: list[str] = []
    left: list[str] = []
    for spec in map(VariantSpec.model_validate, parameters["variants"]):
        planned = [int(level) for level in parameters["concurrency"]]
        measured = spec.levels_of(planned)
        taken += _at(spec.id, [level for level in planned if level not in measured])
        left += _at(spec.id, measured)
    return ", ".join(taken), ", ".join(left)


def _at(variant: str, levels: Sequence[int]) -> list[str]:
    return [f"{variant} at concurrency {conjunction([str(level) for level in levels])}"] if levels else []


def addresses(earlier: Mapping[str, Any]) -> Iterator[str]:
    """The places of the cells that the `earlier` of a run's parameters names."""
    for folder, names in earlier.get("cells", {}).items():
        yield from (f"{folder}/{name}" for name in names)


def _taken(cells: Iterable[Kept], wanted: set[Key]) -> dict[Key, Kept]:
    """Whole cells of the grid. Of two for the same place neither is guessed to be the right one."""
    found: dict[Key, list[Kept]] = defaultdict(list)
    for kept in cells:
        key = kept.cell.variant, kept.cell.concurrency
        if key in wanted and whole(kept.cell):
            found[key].append(kept)
    return {key: ones[0] for key, ones in found.items() if len(ones) == 1}


def _by_folder(taken: Iterable[Kept]) -> dict[str, list[str]]:
    """Addresses in few characters: parameters show in the console, and their size is limited."""
    folders: dict[str, list[str]] = defaultdict(list)
    for kept in taken:
        folder, _, name = kept.address.rpartition("/")
        parent, _, task = folder.rpartition("/")
        folders[parent].append(f"{task}/{name}")
    return {folder: sorted(names) for folder, names in sorted(folders.items())}


def _prompts(run_id: str, taken: Iterable[Kept]) -> dict[str, str]:
    """The hash of the prompts at each level that was taken."""
    found: dict[str, str] = {}
    for kept in taken:
        assert kept.cell.prompts is not None
        level, digest = str(kept.cell.concurrency), kept.cell.prompts.sha256
        if found.setdefault(level, digest) != digest:
            raise InputError(f"--resume: the variants of {run_id} got different prompts at concurrency {level}.")
    return found


def _differences(
    earlier: EarlierRun, now: Mapping[str, Any], equipment: Mapping[str, Any] | None, taken: set[str]
) -> Iterator[str]:
    """Each field that makes another measurement, with both values."""
    try:
        old = _settings(earlier.parameters, taken)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"--resume: {earlier.noted_in or earlier.run_id}: not the parameters of a run: {reason(error)}.",
            hint="Run without --resume.",
        ) from None
    new = _settings(now, taken)
    if equipment is not None:
        if earlier.equipment is None:
            yield "its machine and engines are not known"
        else:
            old |= _of_those(earlier.equipment, taken)
            new |= _of_those(equipment, taken)
    for field in sorted(old.keys() | new.keys()):
        if old.get(field) != new.get(field):
            yield f"`{field}` {_change(old.get(field), new.get(field))}"


def _of_those(equipment: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    """A machine's equipment without the engines of variants that are measured anew."""
    engines = {name: value for name, value in equipment.items() if name.startswith("engines.")}
    wanted = {f"engines.{variant}" for variant in taken}
    return {name: value for name, value in equipment.items() if name not in engines or name in wanted}


def _settings(parameters: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    """What a measurement depends on, by the fields of the config; defaults are filled in."""
    found: dict[str, Any] = {
        "location": parameters["location"],
        "tokenizer": parameters.get("tokenizer") or None,
        # The levels share the prompts out among themselves: others of them would get others.
        "concurrency": [int(level) for level in parameters["concurrency"]],
        "repeats": int(parameters["repeats"]),
    }
    workload = Workload.model_validate(parameters["workload"]).model_dump(exclude=set(_FREE_WORKLOAD))
    found |= {f"workload.{field}": value for field, value in workload.items()}
    slo = Criteria.model_validate(parameters["criteria"]).slo
    found |= {f"slo.{field}": value for field, value in (slo.model_dump() if slo else {}).items()}
    for variant in parameters["variants"]:
        spec = VariantSpec.model_validate(variant)
        if spec.id in taken:
            flat = dict(_flat(spec.model_dump(mode="json")))
            found |= {f"variants.{spec.id}.{field}": value for field, value in flat.items() if field not in _FREE}
    return {field: value for field, value in found.items() if value is not None}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _change(old: object, new: object) -> str:
    """Both values; of two lists of words that have something in common, the words that differ."""
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        gone, come = [word for word in old if word not in new], [word for word in new if word not in old]
        if len(gone) < len(old) and all(isinstance(word, str) for word in (*gone, *come)):
            if gone and come:
                return f"had {conjunction(gone)} and has {conjunction(come)}"
            if gone or come:
                return f"had {conjunction(gone)} and has it no more" if gone else f"had no {conjunction(come)}"
    return f"was {_shown(old)} and is {_shown(new)}"


def _shown(value: object) -> str:
    """A value in few characters: of a long list only that it is one."""
    if value is None:
        return "not set"
    if isinstance(value, Sequence) and not isinstance(value, str):
        words = [str(item) for item in value]
        text = conjunction(words) if words else "empty"
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return repr(value)
