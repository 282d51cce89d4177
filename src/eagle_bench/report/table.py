"""A table of a report as text cells, however it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Table:
    """A table with its heads; `numeric` columns stand to the right, the first `keys` columns say what a row is about."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = field(default_factory=frozenset)
    keys: int = 1

    def only(self, *heads: str) -> Table:
        """The table with some of its columns, the keys among them, for where there is little room."""
        return self.columns([place for place, head in enumerate(self.heads) if head in heads])

    def columns(self, places: Sequence[int]) -> Table:
        """The table with the columns at these places, the keys among them."""
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        numeric = frozenset(new for new, place in enumerate(places) if place in self.numeric)
        return replace(self, heads=tuple(self.heads[place] for place in places), rows=rows, numeric=numeric)
