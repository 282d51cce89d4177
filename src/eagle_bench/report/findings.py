"""What is said of several levels in the same words is said once: "eagle3 at concurrency 1, 2 and 4: …"."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from eagle_bench.comparison import Comparison
from eagle_bench.units import NARROW_SPACE, conjunction

CODE = re.compile(r"`([^`\n]+)`")  # what is typed, in a sentence
# One that stands alone: not part of a name, of a date, of an id.
_NUMBER = re.compile(rf"(?<![\w.-])(\d[\d.,{NARROW_SPACE}]*\d|\d)(?![\w-])")


@dataclass(frozen=True)
class Finding:
    """A sentence about a variant at a level; None where it is about all of them.

    `kind`: findings of different kinds are never one.
    """

    kind: Hashable
    variant: str | None
    concurrency: int | None
    text: str


def grouped(comparison: Comparison) -> list[tuple[str, str]]:
    """The warnings as (where, text), in their order, those that differ in level and numbers only as one."""
    return together(
        Finding(warning.code, warning.variant, warning.concurrency, warning.text) for warning in comparison.warnings
    )


def together(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Findings as (where, text); where texts differ in numbers, the numbers stand in the order of the levels."""
    groups: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        words = _NUMBER.split(finding.text)[::2] if finding.concurrency is not None else finding.text
        groups.setdefault((finding.kind, finding.variant, tuple(words)), []).append(finding)
    return [(_where(group), _text([finding.text for finding in group])) for group in groups.values()]


def _where(group: Sequence[Finding]) -> str:
    levels = [str(finding.concurrency) for finding in group if finding.concurrency is not None]
    at = [f"at concurrency {conjunction(levels)}"] if levels else []
    return " ".join([*filter(None, [group[0].variant]), *at])


def _text(texts: Sequence[str]) -> str:
    """The words that all have, with each number that differs as the numbers of all."""
    columns = zip(*(_NUMBER.split(text) for text in texts), strict=True)
    return "".join(said[0] if len(set(said)) == 1 else conjunction(list(said)) for said in columns)
