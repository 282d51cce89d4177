"""Where prompts and tokenizers come from: a path, gs://, https://, Hugging Face, or the package itself.

Each has a check, for before any machine is paid for, and a fetch.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from eagle_bench.adapters import downloads, hugging_face, storage
from eagle_bench.adapters.tokenizer import is_file, load
from eagle_bench.errors import InputError
from eagle_bench.nearest import did_you_mean
from eagle_bench.workload.slices import BUILTIN
from eagle_bench.workload.synthetic import shape_of

NAMED = {
    "sharegpt": "hf://anon8231489123/ShareGPT_Vicuna_unfiltered/ShareGPT_V3_unfiltered_cleaned_split.json",
}
WEB = ("https://", "http://")
NO_PATHS = {BUILTIN, *NAMED}  # whatever file of that name is at hand


def hub_token(secret: str | None) -> str | None:
    """The Hugging Face token out of Secret Manager, kept in memory; None leaves it to HF_TOKEN in the environment.

    Raises:
        ServiceError: the secret is not there, or may not be read.
    """
    if not secret:
        return None
    from eagle_bench.adapters.vertex_secrets import read_secret

    return read_secret(secret)


def at_hand(name: str) -> Path | None:
    """What a name leads to on this machine; None where there is nothing, or it can be no file's name."""
    try:
        path = Path(name).expanduser()
        return path if name and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, not to be looked at, or in the home of nobody
        return None


def refuse_unreadable(field: str, name: str, *, local_vertex: bool) -> None:
    """Refuse a path of this machine that a job can't read: on Vertex AI any, on Local Vertex a relative one.

    Raises:
        InputError: it is such a path.
    """
    path = None if name in NO_PATHS else at_hand(name)
    if path and not local_vertex:
        raise InputError(
            f"`{field}`: {name!r} lies on this machine; a job on Vertex AI can't read it.",
            hint="Copy it to a bucket and give its gs:// address.",
        )
    if path and not path.is_absolute():
        raise InputError(
            f"`{field}`: {name!r} is looked for in another folder by a job of Local Vertex.",
            hint=f"Give the whole path, {str(path.absolute())!r}.",
        )


def whole_path(name: str) -> str:
    """A path of this machine as any process of it finds it; every other name as it is."""
    path = None if name in NO_PATHS else at_hand(name)
    return str(path.absolute()) if path else name


def is_elsewhere(dataset: str) -> bool:
    """Whether a data set has to be asked for over the network."""
    return NAMED.get(dataset, dataset).startswith((hugging_face.SCHEME, storage.SCHEME, *WEB))


def is_tokenizer_elsewhere(tokenizer: str) -> bool:
    """Whether a tokenizer has to be asked for over the network. A folder that is not there has the form of no id."""
    there = at_hand(tokenizer)
    return not (there and there.is_dir()) and (
        tokenizer.startswith(storage.SCHEME) or hugging_face.is_model_id(tokenizer)
    )


def check_dataset(dataset: str, token: str | None) -> None:
    """Make sure that a data set (`workload.dataset`) can be had, without fetching it.

    Raises:
        InputError, ServiceError: as `fetch_dataset`.
    """
    address = NAMED.get(dataset, dataset)
    if address == BUILTIN or shape_of(address):
        return
    if address.startswith(hugging_face.SCHEME):
        hugging_face.check_dataset(address, token)
    elif address.startswith(storage.SCHEME):
        storage.check_file(address)
    elif address.startswith(WEB):
        downloads.check_file(address)
    else:
        _local_file(dataset)


def fetch_dataset(dataset: str, token: str | None) -> Path | None:
    """The file of a data set; None for what needs no file: the built-in set and synthetic shapes.

    Raises:
        InputError: the name or address is none that is known, or names no file.
        ServiceError: the source has no such file, refuses it, or can't be reached.
    """
    address = NAMED.get(dataset, dataset)
    if address == BUILTIN or shape_of(address):
        return None
    if address.startswith(hugging_face.SCHEME):
        return hugging_face.download_dataset(address, token)
    if address.startswith(storage.SCHEME):
        return storage.download_file(address, _cache(address))
    if address.startswith(WEB):
        return downloads.download_file(address, _cache(address))
    return _local_file(dataset)


def check_tokenizer(tokenizer: str, token: str | None) -> None:
    """Make sure that a tokenizer can be had, without fetching one from the hub.

    Raises:
        InputError, ServiceError: as `fetch_tokenizer`.
    """
    folder = at_hand(tokenizer)
    if folder and folder.is_dir():
        load(folder)
    elif tokenizer.startswith(storage.SCHEME):
        fetch_tokenizer(tokenizer, token)  # a few megabytes, and only loading it shows that it works
    elif hugging_face.is_model_id(tokenizer):
        hugging_face.check_tokenizer(tokenizer, token)
    else:
        raise _no_tokenizer(tokenizer)


def fetch_tokenizer(tokenizer: str, token: str | None, folder: Path | None = None) -> Path:
    """The folder of a tokenizer: the given one, or `folder` (by default one in the user's cache) filled from
    gs:// or the hub.

    Raises:
        InputError: the name has no known form, or the files are no tokenizer.
        ServiceError: the source has no such files, refuses them, or can't be reached.
    """
    local = at_hand(tokenizer)
    if local and local.is_dir():
        load(local)
        return local
    folder = folder or _cache(tokenizer)
    if tokenizer.startswith(storage.SCHEME):
        storage.download_folder(tokenizer, folder, wanted=is_file)
    elif hugging_face.is_model_id(tokenizer):
        hugging_face.download_tokenizer(tokenizer, token, folder)
    else:
        raise _no_tokenizer(tokenizer)
    load(folder)
    return folder


def _local_file(dataset: str) -> Path:
    path = at_hand(dataset)
    if path is None or not path.is_file():
        named = ", ".join(f"`{name}`" for name in (BUILTIN, *NAMED))
        raise InputError(
            f"`workload.dataset`: there is no file {dataset!r}.{did_you_mean(dataset, (BUILTIN, *NAMED))}",
            hint=f"Allowed: a path, a gs:// or https:// address, hf://owner/name[/file], {named}, or a shape such as "
            "synthetic:512x128.",
        )
    return path


def _no_tokenizer(tokenizer: str) -> InputError:
    return InputError(
        f"`tokenizer`: {tokenizer!r} is neither a folder nor a name.",
        hint="Allowed: a Hugging Face id (owner/name), a gs:// folder, or a folder that exists.",
    )


def _cache(address: str) -> Path:
    """A folder of its own for each address, so that files of one name don't meet and a later run finds them."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "eagle-bench" / "downloads" / hashlib.sha256(address.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # an account without a home, as in some containers
        return Path(tempfile.mkdtemp(prefix="eagle-bench-"))
    return folder
