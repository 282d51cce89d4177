"""What the variants ran with, side by side: their settings, and what their results tell of versions and machines."""

from __future__ import annotations

from eagle_bench.comparison import Comparison
from eagle_bench.report.table import Table
from eagle_bench.units import NOTHING

_OF_CLIENT = ("vllm", "python")  # a server may well run another version of the same


def settings(comparison: Comparison) -> Table | None:
    """The variants' settings side by side; a last column says which differ."""
    plan = comparison.plan
    names = sorted({key for values in plan.settings.values() for key in values})
    if not names:
        return None
    rows = []
    for key in names:
        values = [plan.settings.get(variant, {}).get(key, NOTHING) for variant in comparison.variants]
        rows.append((key, *values, "same" if len(set(values)) == 1 else "differs"))
    return Table("Settings of the variants", ("Setting", *comparison.variants, "Between variants"), tuple(rows))


def environment(comparison: Comparison) -> Table | None:
    """Versions, image and machine as the cells saw them, the variants side by side."""
    seen: dict[str, dict[str, list[str]]] = {}
    for cell in comparison.cells:
        for key, value in cell.environment.items():
            values = seen.setdefault(key, {}).setdefault(cell.variant, [])
            if value not in values:
                values.append(value)
    if not seen:
        return None
    rows = tuple(
        (_called(key), *(", ".join(by_variant.get(variant, [NOTHING])) for variant in comparison.variants))
        for key, by_variant in sorted(seen.items())
    )
    return Table("Environment, as each variant's results tell it", ("", *comparison.variants), rows)


def _called(key: str) -> str:
    return f"{key} (benchmark client, not server)" if key in _OF_CLIENT else key
