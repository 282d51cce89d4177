"""Files that stand there whole or not at all: a full disk leaves what stood there before."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from eagle_bench.errors import InputError


def write_files(files: Mapping[Path, str]) -> None:
    """Write files that belong together, and the folders that they lie in: all of them, or none.

    Raises:
        InputError: they can't be written; what stood there is as it was.
    """
    try:
        for folder in {path.parent for path in files}:
            folder.mkdir(parents=True, exist_ok=True)
        replace_files(files)
    except OSError as error:
        first = next(iter(files))
        place = first if len(files) == 1 else first.parent
        raise InputError(f"{place}: can't be written: {error.strerror or error}.") from None


def replace_files(files: Mapping[Path, str], *, before: Callable[[], object] = lambda: None) -> None:
    """Write each file aside, in the folder that it will stand in; once all are there, they take their places.

    Args:
        before: done when all are written and none has its place yet.

    Raises:
        OSError: they can't be written; what stood there is as it was.
    """
    written: dict[Path, Path] = {}
    try:
        for path, text in files.items():
            place = Path(os.path.realpath(path))  # a link stays a link
            if place.exists() and not place.is_file():
                place.write_text(text, encoding="utf-8")  # a device or a pipe: nothing stands there
                continue
            aside = place.with_name(f".{os.getpid()}-{len(written)}.partial")
            written[aside] = place
            aside.write_text(text, encoding="utf-8")
        before()
        for aside, place in written.items():
            aside.replace(place)
    finally:
        for aside in written:
            with suppress(OSError):
                aside.unlink()
