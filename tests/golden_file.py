"""Golden files: the run that writes them fails, so that nobody takes it for a test."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def check(name: str, text: str, *, folder: Path = GOLDEN) -> None:
    """Compare with a golden file, or write it when UPDATE_GOLDEN is set, and fail."""
    path = folder / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        raise AssertionError(f"{path} was written; look at the difference, then run the tests without UPDATE_GOLDEN")
    assert path.is_file(), f"{path} is missing: `make golden` writes it"
    assert text == path.read_text(encoding="utf-8"), (
        f"differs from {path}; if it should, `make golden` writes it afresh"
    )
