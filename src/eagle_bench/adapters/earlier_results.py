"""Results are never written over: what stands where new ones go is moved into `earlier/`, by the time it was written."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

EARLIER = "earlier"


def set_aside(folder: Path, names: Iterable[str]) -> Path | None:
    """Move these files and folders, where they are there, into a folder of their own below `earlier/`.

    Returns:
        The folder; None where there was nothing to move.

    Raises:
        OSError: they can't be moved.
    """
    found = [folder / name for name in names if (folder / name).exists()]
    if not found:
        return None
    written = datetime.fromtimestamp(max(path.stat().st_mtime for path in found))
    place, number = folder / EARLIER / f"{written:%Y%m%d-%H%M%S}", 1
    while any((place / path.name).exists() for path in found):
        number += 1
        place = folder / EARLIER / f"{written:%Y%m%d-%H%M%S}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    for path in found:
        path.rename(place / path.name)
    return place


def set_aside_in(path: Path, below: Path) -> bool:
    """Whether a file below a folder is one that was moved away."""
    return EARLIER in path.relative_to(below).parts[:-1]
