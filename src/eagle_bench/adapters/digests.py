"""Hashes of files that were fetched: those that a server names, and whether the file has them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from eagle_bench.errors import ServiceError

if TYPE_CHECKING:
    import httpx


def named_digests(response: httpx.Response) -> dict[str, str]:
    """Hexadecimal hashes of the whole file, by algorithm, as far as the server names any that we know."""
    found = {}
    for header, pattern, algorithm in (
        ("repr-digest", r"sha-256=:([A-Za-z0-9+/=]+):", "sha256"),
        ("x-goog-hash", r"md5=([A-Za-z0-9+/=]+)", "md5"),
    ):
        match = re.search(pattern, response.headers.get(header, ""))
        if match:
            try:
                found[algorithm] = base64.b64decode(match[1], validate=True).hex()
            except binascii.Error:
                continue
    return found


def verify(part: Path, digests: dict[str, str], address: str) -> None:
    for algorithm, expected in digests.items():
        actual = hash_of(part, algorithm)
        if actual != expected:
            part.unlink()
            raise ServiceError(
                f"{address}: its {algorithm} is {actual}, and should be {expected}.",
                kind="other",
                hint="The file was changed or damaged on its way; it was deleted. Check the hash, or try again.",
            )


def hash_of(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
