"""Data sets and tokenizers from the Hugging Face hub; HF_ENDPOINT names another one.

`huggingface_hub` downloads, resumes and keeps its cache; what arrived is checked here against the sizes and hashes
that the hub lists.
"""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from eagle_bench.adapters.hugging_face_errors import Kind, endpoint, told
from eagle_bench.adapters.tokenizer import is_file
from eagle_bench.errors import InputError, ServiceError
from eagle_bench.units import whole

SCHEME = "hf://"
NAME = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
DATASET = re.compile(rf"^hf://(?P<repo>{NAME})(@(?P<revision>[\w.-]+))?(/(?P<file>.+))?$")
MODEL = re.compile(rf"^(?P<repo>{NAME})(@(?P<revision>[\w.-]+))?$")
DATA_FILES = ("*.json", "*.jsonl", "*.csv")


class _File(NamedTuple):
    """A file as the hub lists it. `sha256` for large files, `git_sha1` for small ones."""

    name: str
    size: int | None
    sha256: str | None
    git_sha1: str | None


class _Repo(NamedTuple):
    kind: Kind
    name: str
    commit: str
    files: tuple[_File, ...]


def is_model_id(name: str) -> bool:
    """Whether a text has the form of a model's id: owner/name, or owner/name@revision."""
    return MODEL.match(name) is not None


def check_dataset(address: str, token: str | None) -> None:
    """Make sure that `hf://owner/name[@revision][/file]` is there and may be read, without fetching it.

    Raises:
        InputError: the address has another form, or the data set more than one file that could be meant.
        ServiceError: kind "gated-model", "not-found", "authentication" or "unavailable".
    """
    repo, file = _dataset(address, token)
    _check_access(repo, file, token)


def download_dataset(address: str, token: str | None) -> Path:
    """Fetch the file of `hf://owner/name[@revision][/file]` into the hub's cache. Errors as in `check_dataset`."""
    repo, file = _dataset(address, token)
    return _download(repo, file, token)


def check_model(model: str, token: str | None) -> None:
    """Make sure that a model is there and its files may be read, weights too, fetching none. Errors as in `check_dataset`."""
    match = MODEL.match(model)
    if not match:
        raise InputError(f"{model!r} is not the id of a model on Hugging Face.", hint="Allowed: owner/name.")
    repo = _repo("model", match["repo"], match["revision"], token)
    if repo.files:
        named = {file.name: file for file in repo.files}
        _check_access(repo, named.get("config.json", repo.files[0]), token)


def check_tokenizer(model: str, token: str | None) -> None:
    """Make sure that a model's tokenizer is there and may be read, without fetching it. Errors as in `check_dataset`."""
    repo, files = _tokenizer(model, token)
    _check_access(repo, files[0], token)


def download_tokenizer(model: str, token: str | None, folder: Path) -> None:
    """Fetch a model's tokenizer into a folder: its files only, never weights. Errors as in `check_dataset`."""
    repo, files = _tokenizer(model, token)
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.name).write_bytes(_download(repo, file, token).read_bytes())


def _dataset(address: str, token: str | None) -> tuple[_Repo, _File]:
    match = DATASET.match(address)
    if not match:
        raise InputError(
            f"{address!r} is not a data set of Hugging Face.",
            hint="Allowed: hf://owner/name, hf://owner/name/file or hf://owner/name@revision/file.",
        )
    repo = _repo("dataset", match["repo"], match["revision"], token)
    if match["file"]:
        for file in repo.files:
            if file.name == match["file"]:
                return repo, file
        raise _no_such_file(repo, match["file"])
    data = [file for file in repo.files if any(fnmatch(file.name, pattern) for pattern in DATA_FILES)]
    data = [file for file in data if file.name != "dataset_infos.json"] or data
    if len(data) != 1:
        listed = ", ".join(file.name for file in data[:8]) or ", ".join(file.name for file in repo.files[:8]) or "none"
        raise InputError(
            f"{address}: the data set has {len(data)} files that could be meant (JSON, JSON lines or CSV).",
            hint=f"Name one as {SCHEME}{repo.name}/FILE. Its files: {listed}.",
        )
    return repo, data[0]


def _tokenizer(model: str, token: str | None) -> tuple[_Repo, list[_File]]:
    match = MODEL.match(model)
    if not match:
        raise InputError(f"{model!r} is not the id of a model on Hugging Face.", hint="Allowed: owner/name.")
    repo = _repo("model", match["repo"], match["revision"], token)
    files = [file for file in repo.files if "/" not in file.name and is_file(file.name)]
    files.sort(key=lambda file: file.name not in ("tokenizer.json", "tokenizer.model"))
    if not files or files[0].name not in ("tokenizer.json", "tokenizer.model"):
        raise ServiceError(
            f"Hugging Face: {repo.name} has no tokenizer: neither tokenizer.json nor tokenizer.model is among its files.",
            kind="not-found",
            hint="Name the model that the endpoint serves, not a draft of it or a quantised copy without tokenizer.",
        )
    return repo, files


def _repo(kind: Kind, name: str, revision: str | None, token: str | None) -> _Repo:
    from huggingface_hub import HfApi

    with told(kind, name, token):
        info: Any = HfApi(endpoint=endpoint(), token=token).repo_info(
            name, repo_type=kind, revision=revision, files_metadata=True, timeout=30.0
        )
    files = tuple(
        _File(s.rfilename, s.size, s.lfs.sha256 if s.lfs else None, None if s.lfs else s.blob_id)
        for s in info.siblings or ()
    )
    return _Repo(kind, name, info.sha, files)


def _check_access(repo: _Repo, file: _File, token: str | None) -> None:
    """The list of a gated repository's files is public, the files are not: ask for the head of one."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    with told(repo.kind, repo.name, token, file.name):
        url = hf_hub_url(repo.name, file.name, repo_type=repo.kind, revision=repo.commit, endpoint=endpoint())
        get_hf_file_metadata(url, token=token, timeout=30.0, endpoint=endpoint())


def _download(repo: _Repo, file: _File, token: str | None) -> Path:
    """Fetch a file into the hub's cache and hold it against what the hub lists; a damaged one is fetched again once."""
    from huggingface_hub import hf_hub_download

    problem = None
    for again in (False, True):
        with told(repo.kind, repo.name, token, file.name):
            path = Path(
                hf_hub_download(
                    repo.name,
                    file.name,
                    repo_type=repo.kind,
                    revision=repo.commit,
                    endpoint=endpoint(),
                    token=token,
                    force_download=again,
                )
            )
        problem = _damage(path, file)
        if problem is None:
            return path
    raise ServiceError(
        f"Hugging Face: {file.name} of {repo.name} arrived damaged: {problem}.",
        kind="unavailable",
        hint="Try again; something on the way changes the file.",
    )


def _damage(path: Path, file: _File) -> str | None:
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{whole(size)} bytes in place of {whole(file.size)}"
    if file.sha256:
        with path.open("rb") as content:
            actual = hashlib.file_digest(content, "sha256").hexdigest()
        return None if actual == file.sha256 else f"its sha256 is {actual} in place of {file.sha256}"
    if file.git_sha1:
        # Git's own name of a file's content.
        actual = hashlib.sha1(f"blob {size}\0".encode() + path.read_bytes(), usedforsecurity=False).hexdigest()
        return None if actual == file.git_sha1 else f"its git hash is {actual} in place of {file.git_sha1}"
    return None


def _no_such_file(repo: _Repo, name: str) -> ServiceError:
    listed = ", ".join(file.name for file in repo.files[:8]) or "none"
    return ServiceError(
        f"Hugging Face: {repo.name} has no file {name!r}.", kind="not-found", hint=f"Its files: {listed}."
    )
