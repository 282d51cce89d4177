"""Downloads from web addresses, against a server with ranges, entity tags and transfers that break."""

from __future__ import annotations

import base64
import hashlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eagle_bench.adapters.downloads import ATTEMPTS, check_file, download_file
from eagle_bench.errors import InputError, ServiceError
from servers.files import File, FileHandler, Site, serving

CONTENT = bytes(range(256)) * 4096  # 1 MB


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(FileHandler, Site()) as site:
        yield site


def fetch(address: str, folder: Path) -> Path:
    return download_file(address, folder, pause_s=0.0)


def test_a_transfer_that_breaks_twice_is_resumed_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT, breaks=[300_000, 500_000])
    path = fetch(f"{site.url}/data.json?v=1", tmp_path)
    assert path == tmp_path / "data.json"
    assert path.read_bytes() == CONTENT
    assert site.ranges() == [None, "bytes=300000-", "bytes=800000-"]
    assert {request.headers.get("if-range") for request in site.seen[1:]} == {'"v1"'}
    assert not list(tmp_path.glob("*.part"))


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT, breaks=[300_000], refusals=[])
    site.files["/data.json"].breaks += [0] * ATTEMPTS
    with pytest.raises(ServiceError, match=r"300\u202f000 of 1\u202f048\u202f576 bytes|goes on") as gave_up:
        fetch(f"{site.url}/data.json", tmp_path)
    assert gave_up.value.kind == "unavailable"
    site.files["/data.json"].breaks.clear()
    site.seen.clear()
    assert fetch(f"{site.url}/data.json", tmp_path).read_bytes() == CONTENT
    assert site.ranges() == ["bytes=300000-"]


def test_a_file_that_changed_in_between_is_fetched_anew(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT, breaks=[300_000] + [0] * ATTEMPTS)
    with pytest.raises(ServiceError):
        fetch(f"{site.url}/data.json", tmp_path)
    newer = CONTENT[::-1]
    site.files["/data.json"] = File(newer, etag='"v2"')
    assert fetch(f"{site.url}/data.json", tmp_path).read_bytes() == newer


@pytest.mark.parametrize("file", [File(CONTENT, ranges=False, breaks=[1000]), File(CONTENT, etag=None, breaks=[1000])])
def test_without_ranges_or_a_version_a_broken_file_is_fetched_anew(site: Site, tmp_path: Path, file: File) -> None:
    site.files["/data.json"] = file
    assert fetch(f"{site.url}/data.json", tmp_path).read_bytes() == CONTENT


def test_an_unchanged_file_is_not_fetched_twice(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT)
    first = fetch(f"{site.url}/data.json", tmp_path)
    assert fetch(f"{site.url}/data.json", tmp_path) == first
    assert site.seen[1].headers["if-none-match"] == '"v1"'
    assert len(site.seen) == 2
    site.files["/data.json"] = File(b"new", etag='"v2"')
    assert fetch(f"{site.url}/data.json", tmp_path).read_bytes() == b"new"


def test_a_server_that_is_busy_is_asked_again(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT, refusals=[503, 429])
    assert fetch(f"{site.url}/data.json", tmp_path).read_bytes() == CONTENT


def test_the_hash_in_the_address_is_checked(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert fetch(f"{site.url}/data.json#sha256={digest}", tmp_path / "right").read_bytes() == CONTENT
    wrong = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    with pytest.raises(ServiceError, match=rf"its sha256 is {digest}, and should be {wrong}"):
        fetch(f"{site.url}/data.json#sha256={wrong}", tmp_path / "wrong")
    assert list((tmp_path / "wrong").glob("data.json")) == list((tmp_path / "wrong").glob("*.part")) == []


@pytest.mark.parametrize(
    "header",
    [
        {"Repr-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(b'other').digest()).decode()}:"},
        {"x-goog-hash": f"crc32c=AAAAAA==,md5={base64.b64encode(hashlib.md5(b'other').digest()).decode()}"},
    ],
)
def test_a_hash_that_the_server_gives_is_checked(site: Site, tmp_path: Path, header: dict[str, str]) -> None:
    site.files["/data.json"] = File(CONTENT, headers=header)
    with pytest.raises(ServiceError, match="should be"):
        fetch(f"{site.url}/data.json", tmp_path)


def test_redirects_are_followed(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT)
    site.files["/latest"] = File(b"", redirect="/data.json")
    assert fetch(f"{site.url}/latest", tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "address", ["ftp://host/file", "file:///etc/passwd", "https://", "host/file", "https://h/f#md5=1"]
)
def test_only_web_addresses_are_taken(tmp_path: Path, address: str) -> None:
    for ask in (check_file, lambda a: fetch(a, tmp_path)):
        with pytest.raises(InputError):
            ask(address)


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "not-found"), (403, "permission"), (400, "other"), (503, "unavailable")]
)
def test_refusals_say_what_they_are_before_anything_is_fetched(site: Site, status: int, kind: str) -> None:
    site.files["/data.json"] = File(CONTENT, refusals=[status])
    with pytest.raises(ServiceError, match=str(status)) as refused:
        check_file(f"{site.url}/data.json")
    assert refused.value.kind == kind
    check_file(f"{site.url}/data.json")
    assert site.ranges()[-1] == "bytes=0-0"


def test_a_host_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/data.json"
        for ask in (check_file, lambda a: fetch(a, tmp_path)):
            with pytest.raises(ServiceError) as refused:
                ask(address)
            assert refused.value.kind == "unavailable"


class PartsUnasked(FileHandler):
    """Sends the second half of a file, whatever is asked for."""

    def do_GET(self) -> None:
        self.note()
        self.send_response(206)
        self.send_header("Content-Range", "bytes 5-9/10")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"56789")


def test_a_part_that_nobody_asked_for_is_not_put_together(tmp_path: Path) -> None:
    with (
        serving(PartsUnasked, Site()) as site,
        pytest.raises(ServiceError, match=r"a part that nobody asked for.*bytes 5-9/10"),
    ):
        fetch(f"{site.url}/data.json", tmp_path)
    assert not list(tmp_path.glob("data*"))


def test_a_name_that_no_file_system_takes_is_cut(site: Site, tmp_path: Path) -> None:
    site.files[f"/{'n' * 400}.json"] = File(b"x")
    assert fetch(f"{site.url}/{'n' * 400}.json", tmp_path).name.endswith("n.json")


def test_a_name_in_the_address_cannot_leave_the_folder(site: Site, tmp_path: Path) -> None:
    for path, name in (("/..%2F..%2Fevil", "_.._evil"), ("/", "download"), ("/a%20b.json", "a_b.json")):
        site.files[path] = File(b"x")
        fetched = fetch(site.url + path, tmp_path)
        assert fetched.parent == tmp_path
        assert fetched.name.endswith(name) or fetched.name == name


def test_two_downloads_at_once_do_not_ruin_each_other(site: Site, tmp_path: Path) -> None:
    site.files["/data.json"] = File(CONTENT, breaks=[300_000, 500_000])
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch(f"{site.url}/data.json", tmp_path), range(4)))
    assert {path.read_bytes() == CONTENT for path in paths} == {True}
    assert len(site.seen) == 3 + 3, "three requests for the first, and one each for those that find it there"
