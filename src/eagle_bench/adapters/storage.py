"""Files from gs:// addresses.

The client of Google's resumes a download that breaks and checks its checksum; STORAGE_EMULATOR_HOST names another
server, as everywhere with that client.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eagle_bench.errors import InputError, ServiceError

SCHEME = "gs://"
TIMEOUT_S = 60.0


def split(address: str) -> tuple[str, str]:
    """Bucket and object of `gs://bucket/object`.

    Raises:
        InputError: the address has another form.
    """
    bucket, _, name = address.removeprefix(SCHEME).partition("/")
    if not address.startswith(SCHEME) or not bucket:
        raise InputError(f"{address!r} is not an address in Cloud Storage.", hint="Allowed: gs://bucket/object.")
    return bucket, name


def check_file(address: str) -> None:
    """Make sure that an object is there and may be read, without fetching it.

    Raises:
        ServiceError: kind "not-found", "permission", "authentication" or "unavailable".
    """
    bucket, name = split(address)
    with _told(address):
        if name and _client().bucket(bucket).get_blob(name, timeout=TIMEOUT_S) is not None:
            return
    raise _missing(address)


def download_file(address: str, folder: Path) -> Path:
    """Fetch one object into a folder; a file that is there already with the same checksum is kept.

    Raises:
        ServiceError: it is not there, may not be read, or didn't arrive whole.
    """
    bucket, name = split(address)
    with _told(address):
        blob = _client().bucket(bucket).get_blob(name, timeout=TIMEOUT_S) if name else None
        if blob is None:
            raise _missing(address)
        target = folder / Path(name).name
        _download(blob, target)
    return target


def download_folder(address: str, folder: Path, *, wanted: Callable[[str], bool]) -> list[Path]:
    """Fetch the objects directly under `gs://bucket/folder` whose names are wanted.

    Raises:
        ServiceError: there are none, or they may not be read.
    """
    bucket, name = split(address)
    prefix = f"{name.strip('/')}/" if name.strip("/") else ""
    found = []
    with _told(address):
        for blob in _client().list_blobs(bucket, prefix=prefix, timeout=TIMEOUT_S):
            rest = blob.name.removeprefix(prefix)
            if rest and "/" not in rest and wanted(rest):
                found.append(folder / rest)
                _download(blob, found[-1])
    if not found:
        raise ServiceError(
            f"Cloud Storage: {address} holds none of the files that are needed.",
            kind="not-found",
            hint="Check the address: it must name the folder, not a file in it.",
        )
    return found


def download_tree(address: str, folder: Path, *, wanted: Callable[[str], bool]) -> list[Path]:
    """Fetch the wanted objects below `gs://bucket/folder`, at any depth and under the same names; none is fine.

    Args:
        wanted: gets each object's name from the folder on: `task/output`.

    Raises:
        ServiceError: they may not be read, or didn't arrive whole.
    """
    bucket, name = split(address)
    prefix = f"{name.strip('/')}/" if name.strip("/") else ""
    found = []
    with _told(address):
        for blob in _client().list_blobs(bucket, prefix=prefix, timeout=TIMEOUT_S):
            rest = blob.name.removeprefix(prefix)
            target = folder / rest
            if rest and wanted(rest) and target.resolve().is_relative_to(folder.resolve()):
                _download(blob, target)
                found.append(target)
    return found


def read(address: str) -> bytes:
    """The content of one object.

    Raises:
        ServiceError: it is not there, may not be read, or didn't arrive whole.
    """
    with tempfile.TemporaryDirectory() as scratch:
        return download_file(address, Path(scratch)).read_bytes()


def _download(blob: Any, target: Path) -> None:
    """Fetch through a name of its own: a file with the final name is always whole, also with two runs at once."""
    if target.exists() and blob.md5_hash == _md5(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        part = Path(scratch) / target.name
        blob.download_to_filename(str(part), timeout=TIMEOUT_S)  # resumes, and checks MD5 or CRC32C
        part.replace(target)


def _md5(path: Path) -> str:
    """As Cloud Storage writes it: base64."""
    with path.open("rb") as file:
        return base64.b64encode(hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).digest()).decode()


def _client() -> Any:
    from google.cloud import storage

    from eagle_bench.adapters.vertex_address import credentials, on_this_machine

    # Given STORAGE_EMULATOR_HOST, the client sends no credentials by itself; Local Vertex wants them, as Google does.
    return storage.Client(credentials=credentials()) if on_this_machine() else storage.Client()


def _missing(address: str) -> ServiceError:
    return ServiceError(f"Cloud Storage: there is no {address}.", kind="not-found", hint="Check bucket and name.")


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Say what the exceptions of Google's libraries mean for this address."""
    import google.api_core.exceptions as api
    import google.auth.exceptions as auth
    from google.cloud.storage.exceptions import DataCorruption

    try:
        yield
    except api.NotFound:
        raise _missing(address) from None
    except api.Forbidden as error:
        raise ServiceError(
            f"Cloud Storage refuses to read {address}: {error.message}.",
            kind="permission",
            hint="Grant the account roles/storage.objectViewer on the bucket.",
        ) from error
    except (api.Unauthorized, auth.GoogleAuthError) as error:
        raise ServiceError(
            f"Cloud Storage: no valid credentials to read {address}: {error}.",
            kind="authentication",
            hint="Sign in (`gcloud auth application-default login`), or set GOOGLE_APPLICATION_CREDENTIALS.",
        ) from error
    except DataCorruption as error:
        raise ServiceError(
            f"Cloud Storage: {address} didn't arrive whole: its checksum differs.",
            kind="unavailable",
            hint="Try again; the broken file was deleted.",
        ) from error
    except (api.GoogleAPIError, OSError) as error:
        raise ServiceError(
            f"Cloud Storage: {address} can't be read: {error}.",
            kind="unavailable",
            hint="Check the network, then try again.",
        ) from error
