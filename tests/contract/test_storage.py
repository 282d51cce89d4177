"""gs:// addresses through Google's own client, against the storage emulator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eagle_bench.adapters import storage
from eagle_bench.adapters.tokenizer import is_file
from eagle_bench.errors import InputError, ServiceError
from servers.storage import serving_storage

CONTENT = os.urandom(3_000_000)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with serving_storage() as url:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        from google.cloud.storage import Client

        yield Client().create_bucket("prompts")


def test_a_file_arrives_whole_and_is_kept(bucket: Any, tmp_path: Path) -> None:
    bucket.blob("sets/mine.json").upload_from_string(CONTENT)
    path = storage.download_file("gs://prompts/sets/mine.json", tmp_path)
    assert path == tmp_path / "mine.json"
    assert path.read_bytes() == CONTENT
    before = path.stat().st_ino
    assert storage.download_file("gs://prompts/sets/mine.json", tmp_path).stat().st_ino == before
    bucket.blob("sets/mine.json").upload_from_string(b"new")
    assert storage.download_file("gs://prompts/sets/mine.json", tmp_path).read_bytes() == b"new"


def test_a_check_fetches_nothing_and_finds_what_is_missing(bucket: Any) -> None:
    bucket.blob("mine.json").upload_from_string(b"[]")
    storage.check_file("gs://prompts/mine.json")
    for address in ("gs://prompts/other.json", "gs://nowhere/mine.json", "gs://prompts"):
        with pytest.raises(ServiceError, match=f"there is no {address}") as missing:
            storage.check_file(address)
        assert missing.value.kind == "not-found"


def test_a_folder_gives_a_tokenizer_and_no_weights(bucket: Any, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors", "old/tokenizer.json"):
        bucket.blob(f"models/m/{name}").upload_from_string(name)
    found = storage.download_folder("gs://prompts/models/m/", tmp_path, wanted=is_file)
    assert sorted(path.name for path in found) == ["tokenizer.json", "tokenizer_config.json"]
    assert (tmp_path / "tokenizer.json").read_text() == "tokenizer.json"
    with pytest.raises(ServiceError, match="holds none of the files") as missing:
        storage.download_folder("gs://prompts/models/none", tmp_path, wanted=is_file)
    assert missing.value.kind == "not-found"


def test_a_broken_transfer_is_resumed_by_the_client(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.blob("mine.json").upload_from_string(CONTENT)
    from servers.storage import cutting

    with cutting(os.environ["STORAGE_EMULATOR_HOST"], after=1_000_000) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        assert storage.download_file("gs://prompts/mine.json", tmp_path).read_bytes() == CONTENT
    downloads = [request for request in proxy.seen if "alt=media" in request.path]
    assert len(downloads) == 2
    assert downloads[1].headers["range"].startswith("bytes=")


@pytest.mark.parametrize("address", ["gs://", "gs:///x", "s3://bucket/x"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="gs://bucket/object"):
        storage.split(address)
