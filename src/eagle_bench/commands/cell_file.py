"""The file that a result goes into: looked at before anything is measured, written whole, in nobody's place."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import click
from pydantic import ValidationError

from eagle_bench.adapters.earlier_results import set_aside
from eagle_bench.adapters.whole_files import replace_files
from eagle_bench.errors import EagleBenchError, InputError
from eagle_bench.results import CellResult


def place(out: Path, prompts_file: Path) -> Path:
    """Where the result will stand, links followed; nothing is left there but its folder.

    Raises:
        InputError: it can't be written there, or is the file of prompts.
    """
    try:
        found = out.resolve()
        if found == prompts_file.resolve():
            raise InputError(f"--out {out}: is the file of prompts; the result would replace it.")
        found.parent.mkdir(parents=True, exist_ok=True)
        if found.exists() and not stat.S_ISREG(found.stat().st_mode):
            raise InputError(f"--out {out}: is not a file.")
        with tempfile.TemporaryFile(dir=found.parent) as file:
            file.write(b"{}")
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--out {out}: it can't be written: {reason}.") from None
    return found


def held_against_earlier(result: CellResult, out: Path) -> CellResult:
    """The result, with a warning where the one in its place measured the same prompts, and their cache can't be ruled out."""
    try:
        earlier = CellResult.model_validate_json(out.read_bytes())
    except (OSError, ValidationError):
        return result
    told = all(record.cached_tokens is not None for record in result.requests if record.error is None)
    same = earlier.prompts and result.prompts and earlier.prompts.sha256 == result.prompts.sha256
    if told or not same or earlier.variant != result.variant:
        return result
    text = "the result that stood here before measured the same prompts: the server may have answered from its prefix cache"
    return result.model_copy(update={"warnings": (*result.warnings, f"prompts_repeated: {text}")})


def write(result: CellResult, out: Path) -> None:
    """Write the result whole or not at all, and elsewhere where its place has become unusable; what stood there is kept.

    Raises:
        EagleBenchError: it does not stand in its place; says where it was kept, or that it is kept nowhere.
    """
    text = result.model_dump_json()

    def keep_earlier() -> None:
        if out.exists() and out.stat().st_size and (moved := set_aside(out.parent, [out.name])):
            click.echo(f"what stood there was moved to {click.format_filename(moved / out.name)}", err=True)

    try:
        replace_files({out: text}, before=keep_earlier)
    except OSError as error:
        raise EagleBenchError(f"--out {out}: it can't be written: {error.strerror}.", hint=_kept(text)) from None


def _kept(text: str) -> str:
    """Keep a result whole among the temporary files, or nowhere; say which."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="cell-", suffix=".json")
        os.close(descriptor)
    except OSError as error:
        return f"Nor in {tempfile.gettempdir()}: {error.strerror}. The result is lost."
    kept = Path(name)
    try:
        kept.write_text(text, encoding="utf-8")
    except OSError as error:
        with suppress(OSError):
            kept.unlink()
        return f"Nor in {kept.parent}: {error.strerror}. The result is lost."
    return f"The result was kept in {kept}."
