"""A web server for files: ranges, entity tags, digests, and transfers that break on order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class File:
    """What stands at a path. `breaks` and `refusals` are used up, one a request, before all goes well."""

    content: bytes
    etag: str | None = '"v1"'
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    redirect: str | None = None


@dataclass(frozen=True)
class Seen:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Site:
    """The files of a server by path, and the requests it got."""

    files: dict[str, File] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def ranges(self) -> list[str | None]:
        """The `Range` of each GET, in order."""
        return [request.headers.get("range") for request in self.seen if request.method == "GET"]


class FileHandler(BaseHTTPRequestHandler):
    """Serves `site`."""

    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.note()
        file = self.site.files.get(self.path.partition("?")[0])
        self.refuse(404) if file is None else self.send_file(file)

    do_HEAD = do_GET

    def note(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.site.seen.append(Seen(self.command, self.path, headers))

    def refuse(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_file(self, file: File) -> None:
        if self.command == "GET" and file.refusals:
            return self.refuse(file.refusals.pop(0))
        if file.redirect:
            return self.refuse(302, {"Location": file.redirect, **file.headers})
        if file.etag and self.headers.get("If-None-Match") == file.etag:
            return self.refuse(304)
        start, end, size = 0, len(file.content), len(file.content)
        wanted = self.headers.get("Range") if file.ranges else None
        condition = self.headers.get("If-Range")
        partial = wanted is not None and (condition is None or condition == file.etag)
        if partial and wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1, size) if last else size
            if start >= size:
                return self.refuse(416, {"Content-Range": f"bytes */{size}"})
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if file.etag:
            self.send_header("ETag", file.etag)
        for name, value in file.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if self.command == "HEAD":
            return None
        if file.breaks and end - start > 1:
            self.wfile.write(file.content[start : start + file.breaks.pop(0)])
            self.close_connection = True  # with bytes still owed
            return None
        self.wfile.write(file.content[start:end])
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: type[FileHandler], site: Site) -> Iterator[Site]:
    """Run a server on a free port; `site.url` is its address."""
    bound = type("Bound", (handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), bound) as server:
        server.daemon_threads = True
        site.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
