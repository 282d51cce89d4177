"""Files from web addresses: resumed where they broke, checked by size and by hash where one is given.

A hash comes from the address (`https://host/file.json#sha256=…`) or from the server (`Repr-Digest` of RFC 9530, or
Cloud Storage's `x-goog-hash`).
"""

from __future__ import annotations

import fcntl
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from eagle_bench.adapters.digests import hash_of, named_digests, verify
from eagle_bench.errors import InputError, ServiceError, because
from eagle_bench.units import whole

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 60.0
ATTEMPTS = 5  # in a row without a new byte
PAUSE_S = 1.0


class _Target(NamedTuple):
    url: str
    sha256: str | None


class _Interrupted(Exception):
    """The transfer broke in a way that another attempt may cure."""


def check_file(address: str) -> None:
    """Make sure that an address answers, without fetching the file.

    Raises:
        InputError: the address is none of http or https.
        ServiceError: kind "not-found", "permission" or "unavailable".
    """
    import httpx

    target = _target(address)
    try:
        # One byte with GET: not every server answers HEAD.
        with _client() as client, client.stream("GET", target.url, headers={"Range": "bytes=0-0"}) as response:
            _refuse(response, address)
    except (httpx.HTTPError, _Interrupted) as error:
        raise ServiceError(
            because(f"{address} can't be reached", error),
            kind="unavailable",
            hint="Check the network and the address.",
        ) from error


def download_file(address: str, folder: Path, *, pause_s: float = PAUSE_S) -> Path:
    """Fetch a file into a folder and return its path; one that is there already and unchanged is kept.

    What a broken attempt left in `NAME.part` is continued, also by a later call, as long as the server has the same
    version of it (`ETag`, or else `Last-Modified`); otherwise the file is fetched anew.

    Args:
        pause_s: rest before another attempt, doubled each time.

    Raises:
        InputError: the address is none of http or https.
        ServiceError: it is not there, may not be read, keeps breaking, or has another size or hash than was said.
    """
    target = _target(address)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder), _client() as client:
        return _download(client, target, address, folder / _name(target.url), pause_s)


def _download(client: httpx.Client, target: _Target, address: str, file: Path, pause_s: float) -> Path:
    import httpx

    part = file.with_name(f"{file.name}.part")
    if file.exists() and _unchanged(client, target, file):
        return file
    failures, reason = 0, "nothing arrived"
    while failures < ATTEMPTS:
        before = _size(part)
        try:
            digests = _attempt(client, target.url, address, part)
        except (httpx.HTTPError, _Interrupted) as error:
            reason = str(error) or type(error).__name__
            failures = 0 if _size(part) > before else failures + 1
            time.sleep(pause_s * 2 ** max(0, failures - 1))
            continue
        if target.sha256:
            digests["sha256"] = target.sha256
        verify(part, digests, address)
        return part.replace(file)
    raise ServiceError(
        f"{address} can't be fetched: {reason} ({ATTEMPTS} attempts in a row).",
        kind="unavailable",
        hint="Check the network and the address; the next attempt goes on from where this one broke.",
    )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One download into a folder at a time: two that append to one file would ruin it."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unchanged(client: httpx.Client, target: _Target, file: Path) -> bool:
    """Whether a file that was fetched before is still the one at the address."""
    if target.sha256:
        return hash_of(file, "sha256") == target.sha256
    if not _version(file).exists():
        return False
    import httpx

    try:
        headers = {"If-None-Match": _version(file).read_text()}
        with client.stream("GET", target.url, headers=headers) as response:
            return response.status_code == 304
    except httpx.HTTPError:
        return False  # the attempt that follows says what is wrong


def _attempt(client: httpx.Client, url: str, address: str, part: Path) -> dict[str, str]:
    """One request, from the end of what is there. Returns the hashes that the server names."""
    start = _size(part)
    version = _version(part).read_text() if start and _version(part).exists() else None
    # Identity: the size and the ranges are then those of the file, not of a compressed transfer.
    headers = {"Accept-Encoding": "identity"}
    if version:
        headers |= {"Range": f"bytes={start}-", "If-Range": version}
    with client.stream("GET", url, headers=headers) as response:
        total = _total(response)
        if response.status_code == 416 and total == start:
            return {}  # all of it was there already
        if response.status_code == 416:
            part.unlink(missing_ok=True)
            raise _Interrupted("the server has another version of the file")
        _refuse(response, address)
        part_from = response.headers.get("content-range", "bytes 0-") if response.status_code == 206 else "bytes 0-"
        resumed = version is not None and part_from.startswith(f"bytes {start}-")
        if not resumed:
            part.unlink(missing_ok=True)
            if not part_from.startswith("bytes 0-"):
                raise _Interrupted(f"the server sent a part that nobody asked for ({part_from})")
        _remember_version(part, response)
        with part.open("ab") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
        if total is not None and _size(part) != total:
            raise _Interrupted(f"{whole(_size(part))} of {whole(total)} bytes arrived")
        return named_digests(response)


def _client() -> httpx.Client:
    import httpx

    return httpx.Client(follow_redirects=True, timeout=TIMEOUT_S)


def _target(address: str) -> _Target:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{address!r} is not a web address.", hint="Allowed: https://… and http://….")
    sha256 = None
    if parts.fragment:
        match = re.fullmatch(r"sha256=([0-9a-fA-F]{64})", parts.fragment)
        if not match:
            raise InputError(f"{address!r}: after `#` only `sha256=` and 64 hexadecimal digits may stand.")
        sha256 = match[1].lower()
    return _Target(urlunsplit(parts._replace(fragment="")), sha256)


def _name(url: str) -> str:
    """The file's name in the address, without what a file system would trip over."""
    name = re.sub(r"[^\w.-]", "_", unquote(Path(urlsplit(url).path).name))
    return name.lstrip(".")[-100:] or "download"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _version(path: Path) -> Path:
    """Where the server's name for the version of a file, whole or in part, is kept."""
    return path.with_name(f"{path.name.removesuffix('.part')}.version")


def _remember_version(part: Path, response: httpx.Response) -> None:
    etag = response.headers.get("etag", "")
    version = etag if etag and not etag.startswith("W/") else response.headers.get("last-modified")
    if version:
        _version(part).write_text(version)
    else:
        _version(part).unlink(missing_ok=True)


def _total(response: httpx.Response) -> int | None:
    """Size of the whole file, None where the server doesn't say."""
    if response.status_code in (206, 416):
        total = response.headers.get("content-range", "").rpartition("/")[2]
        return int(total) if total.isdigit() else None
    length = response.headers.get("content-length", "")
    return int(length) if length.isdigit() and "content-encoding" not in response.headers else None


def _refuse(response: httpx.Response, address: str) -> None:
    """Raise for an answer without the file: at once for what won't change, to try again for what may."""
    status = response.status_code
    if status in (200, 206):
        return
    said = f"{address}: the server answered {status} {response.reason_phrase}."
    if status in (404, 410):
        raise ServiceError(said, kind="not-found", hint="Check the address.")
    if status in (401, 403):
        raise ServiceError(said, kind="permission", hint="Addresses that need a login can't be used: copy the file.")
    if status == 429 or status >= 500:
        raise _Interrupted(f"the server answered {status} {response.reason_phrase}")
    raise ServiceError(said, kind="other", hint="Check the address.")
