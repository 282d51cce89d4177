"""Conversations out of the forms that people keep them in, as a stream.

| form  | what it looks like                                                             |
|-------|--------------------------------------------------------------------------------|
| JSON  | an array of objects, as ShareGPT; read as a stream, whatever its size          |
| JSONL | an object a line                                                               |
| CSV   | a header, and a column that holds the prompt                                   |

An object is one of

    {"conversations": [{"from": "human", "value": …}, …]}        ShareGPT
    {"messages": [{"role": "user", "content": …}, …]}            OpenAI
    {"prompt": …, "output_tokens": …}                            plain

each with `id` and `kind` where the source has them. The form is read off the content, never off the file's name.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from eagle_bench.errors import InputError
from eagle_bench.workload.conversations import ALLOWED, LFS_POINTER, NESTED, Entry, entry_of, excerpt

BOM = b"\xef\xbb\xbf"
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16, and of UTF-32
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")  # gzip, zip, bzip2, xz, zstd
DEEPEST = 500  # levels of a JSON array
LARGEST_LOCATED_BYTES = 64 * 2**20
csv.field_size_limit(2**27)


def read(path: Path, *, prompt_column: str | None = None, name: str | None = None) -> Iterator[Entry]:
    """Stream the entries of a file in their order; `name` stands for it in errors.

    Memory does not grow with the file: one entry is held at a time.

    Raises:
        InputError: the file is missing or in no known form; names file, line or entry, what was found, what is allowed.
    """
    shown = name or str(path)
    pipe = InputError(f"{shown}: is a pipe, which can be read only once.", hint="Write it to a file first.")
    try:
        if path.is_fifo():  # to open it would wait for somebody who writes
            raise pipe
        with path.open("rb") as file:
            start = file.read(65536)
            if not file.seekable():
                raise pipe
            file.seek(len(BOM) if start.startswith(BOM) else 0)
            head = start.removeprefix(BOM).lstrip()
            _refuse_what_is_none(head, shown)
            if head.startswith(b"["):
                yield from _array(file, path, shown)
            elif head.startswith(b"{"):
                yield from _lines(file, shown)
            else:
                yield from _table(file, shown, prompt_column)
    except FileNotFoundError:
        raise InputError(f"{shown}: there is no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{shown}: is a folder, not a file.") from None
    except OSError as error:
        raise InputError(f"{shown}: can't be read: {error.strerror or error}.") from None


def _refuse_what_is_none(head: bytes, shown: str) -> None:
    """What a file's beginning shows to be no text of prompts.

    Raises:
        InputError: it is that.
    """
    if not head:
        raise InputError(f"{shown}: is empty. It must hold {ALLOWED}.")
    if head.startswith(WIDE_BOMS):
        raise InputError(
            f"{shown}: is text in UTF-16 or UTF-32. The encoding must be UTF-8.",
            hint="Save it as UTF-8, as with `iconv -f UTF-16 -t UTF-8`.",
        )
    if head[:15].lower().startswith((b"<!doctype html", b"<html")):
        raise InputError(f"{shown}: is a web page. It must hold {ALLOWED}.", hint="Is a login asked for there?")
    if head.startswith(LFS_POINTER):
        raise InputError(f"{shown}: stands for the file in Git LFS, and is not it.", hint="`git lfs pull` fetches it.")
    if head.startswith(COMPRESSED):
        raise InputError(f"{shown}: is compressed. It must hold {ALLOWED}.", hint="Unpack it first.")
    if head.startswith(b"PAR1") or b"\0" in head:
        raise InputError(f"{shown}: is a binary file. It must hold {ALLOWED}, in UTF-8.")


def _array(file: BinaryIO, path: Path, shown: str) -> Iterator[Entry]:
    import ijson

    def shallow() -> Iterator[tuple[str, object]]:
        """The parser's events: with the names of all levels, the memory grows with the square of their depth."""
        depth = 0
        for event, value in ijson.basic_parse(file, use_float=True):
            depth += event.startswith("start_") - event.startswith("end_")
            if depth > DEEPEST:
                raise InputError(f"{shown}, entry {number + 1}: {NESTED}.")
            yield event, value

    number = 0
    try:
        for item in ijson.items(ijson.parse(shallow()), "item"):
            number += 1
            yield entry_of(item, shown=shown, place=f"entry {number}", number=number)
    except (ijson.JSONError, ValueError) as error:
        raise InputError(f"{shown}, {_broken_at(path, number)}: not JSON: {_first_line(error)}.") from None
    if number == 0:
        raise InputError(f"{shown}: is an empty array. It must hold {ALLOWED}.")


def _broken_at(path: Path, entries: int) -> str:
    """Where a JSON array breaks: its line, or in a file too large to hold, the entry before."""
    if path.stat().st_size <= LARGEST_LOCATED_BYTES:
        try:
            json.loads(path.read_bytes())
        except json.JSONDecodeError as error:
            return f"line {error.lineno}, column {error.colno}"
        except (ValueError, RecursionError):
            pass
    return f"after entry {entries}"


def _first_line(error: Exception) -> str:
    text = error.args[0] if error.args else error
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return str(text).strip().splitlines()[0].rstrip(". ") if str(text).strip() else type(error).__name__


def _lines(file: BinaryIO, shown: str) -> Iterator[Entry]:
    number = 0
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else f"{error}"
            if isinstance(error, RecursionError):
                why = NESTED
            raise InputError(
                f"{shown}, line {number}: not a JSON object on one line: {why}: {excerpt(line.decode(errors='replace').strip())}.",
                hint=f"The file must hold {ALLOWED}.",
            ) from None
        yield entry_of(item, shown=shown, place=f"line {number}", number=number)


def _table(file: BinaryIO, shown: str, column: str | None) -> Iterator[Entry]:
    text, begins = io.TextIOWrapper(file, encoding="utf-8", newline=""), 1
    try:
        # Strict: an unclosed quote would swallow the rows behind it without a word.
        rows = csv.DictReader(text, strict=True)
        columns = list(rows.fieldnames or ())
        wanted = column or "prompt"
        if wanted not in columns:
            asked = f"there is no column {wanted!r}" if column else "no column is named"
            raise InputError(
                f"{shown}, line 1: read as CSV, {asked}; the columns are {excerpt(', '.join(columns))}.",
                hint=f"Name one of them with `--prompt-column` (`prompt_column` in a configuration). Other forms: {ALLOWED}.",
            )
        if columns.count(wanted) > 1:
            raise InputError(f"{shown}, line 1: {columns.count(wanted)} columns are named {wanted!r}.")
        number = 0
        for number, row in enumerate(rows, 1):
            # The line of a row's end: cells may hold line breaks.
            place = f"line {rows.line_num}"
            if any(beyond := row.get(None, ())):  # cells that have no column
                raise InputError(
                    f"{shown}, the row that begins in line {begins}: has {len(columns) + len(beyond)} cells, and the "
                    f"header {len(columns)}. Is there a comma in a cell without quotes?",
                    hint="A cell with a comma stands in quotes; without, the prompt would end there.",
                )
            begins = rows.line_num + 1
            item = {"prompt": row[wanted] or "", "id": row.get("id"), "kind": row.get("kind")}
            if row.get("output_tokens"):
                item["output_tokens"] = row["output_tokens"]
            yield entry_of(item, shown=shown, place=place, number=number)
        if number == 0:
            raise InputError(f"{shown}: has no rows below its header.")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown}: is not UTF-8 text: {error}. The encoding must be UTF-8. It must hold {ALLOWED}."
        ) from None
    except csv.Error as error:
        raise InputError(
            f"{shown}, the row that begins in line {begins}: can't be read as CSV: {error}. Is a quote not closed there?",
            hint=f"A quote inside a quoted cell is written twice. The file must hold {ALLOWED}.",
        ) from None
    finally:
        text.detach()
