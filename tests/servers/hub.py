"""A hub as `huggingface_hub` sees it: the info API, resolve with its headers, large files on another host, gates.

Statuses and headers are those of the public hub: `X-Error-Code` GatedRepo (401 without a token, 403 with one that has
no access), RepoNotFound (401), EntryNotFound and RevisionNotFound (404).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from servers.files import File, FileHandler, Site, serving

COMMIT = "c0ffee" + "0" * 34
ROUTE = re.compile(r"^/(?P<datasets>datasets/)?(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>[^?]+)")
INFO = re.compile(r"^/api/(?P<kind>models|datasets)/(?P<repo>[^/]+/[^/?]+)(/revision/(?P<revision>[^/?]+))?")


@dataclass
class Repo:
    """A repository: its files by name; names in `large` are kept on the other host, under their sha256."""

    files: dict[str, bytes]
    large: frozenset[str] = frozenset()
    gated: bool = False
    listed_sizes: dict[str, int] = field(default_factory=dict)


@dataclass
class Hub(Site):
    """`repos` by "models/owner/name" or "datasets/owner/name"; tokens by who they let in."""

    repos: dict[str, Repo] = field(default_factory=dict)
    known_tokens: set[str] = field(default_factory=set)
    admitted_tokens: set[str] = field(default_factory=set)
    cdn: Site = field(default_factory=Site)

    def downloads(self) -> list[str]:
        """Names of the files whose content was asked for, in order."""
        return [m["file"] for r in self.seen if r.method == "GET" and (m := ROUTE.match(r.path))]


class HubHandler(FileHandler):
    site: Hub

    def do_GET(self) -> None:
        self.note()
        token = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
        if token and token not in self.site.known_tokens:
            return self.refuse(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
        if match := INFO.match(self.path):
            return self._info(f"{match['kind']}/{match['repo']}", match["revision"])
        if match := ROUTE.match(self.path):
            kind = "datasets" if match["datasets"] else "models"
            return self._resolve(f"{kind}/{match['repo']}", match["revision"], match["file"], token)
        return self.refuse(404)

    do_HEAD = do_GET

    def _info(self, key: str, revision: str | None) -> None:
        repo = self.site.repos.get(key)
        if repo is None:
            return self.refuse(401, {"X-Error-Code": "RepoNotFound"})
        if revision not in (None, "main", COMMIT):
            return self.refuse(404, {"X-Error-Code": "RevisionNotFound"})
        siblings = []
        for name, content in repo.files.items():
            size = repo.listed_sizes.get(name, len(content))
            entry: dict[str, object] = {"rfilename": name, "size": size, "blobId": blob_id(content)}
            if name in repo.large:
                entry["lfs"] = {"size": size, "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}
            siblings.append(entry)
        name = key.partition("/")[2]
        body = json.dumps(
            {
                "id": name,
                "modelId": name,
                "sha": COMMIT,
                "gated": "manual" if repo.gated else False,
                "siblings": siblings,
            }
        ).encode()
        return self.send_file(File(body, etag=None, headers={"Content-Type": "application/json"}))

    def _resolve(self, key: str, revision: str, name: str, token: str | None) -> None:
        repo = self.site.repos.get(key)
        if repo is None:
            return self.refuse(401, {"X-Error-Code": "RepoNotFound"})
        if repo.gated and token not in self.site.admitted_tokens:
            return self.refuse(403 if token else 401, {"X-Error-Code": "GatedRepo"})
        if revision not in ("main", COMMIT):
            return self.refuse(404, {"X-Error-Code": "RevisionNotFound"})
        if name not in repo.files:
            return self.refuse(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        content = repo.files[name]
        if name not in repo.large:
            return self.send_file(File(content, etag=f'"{blob_id(content)}"', headers={"X-Repo-Commit": COMMIT}))
        sha256 = hashlib.sha256(content).hexdigest()
        self.site.cdn.files.setdefault(f"/{sha256}", File(content, etag=f'"{sha256}"'))
        where = self.site.cdn.url.replace("127.0.0.1", "localhost")  # another host, as the real one
        linked = {"X-Repo-Commit": COMMIT, "X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(len(content))}
        return self.send_file(File(b"", headers=linked, redirect=f"{where}/{sha256}"))


def blob_id(content: bytes) -> str:
    """Git's name of a content, as `git hash-object` prints it."""
    return hashlib.sha1(b"blob %d\x00" % len(content) + content).hexdigest()


@contextmanager
def serving_hub() -> Iterator[Hub]:
    """Run a hub and its host for large files."""
    hub = Hub()
    with ExitStack() as stack:
        stack.enter_context(serving(FileHandler, hub.cdn))
        stack.enter_context(serving(HubHandler, hub))
        yield hub
