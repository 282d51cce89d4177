"""Cloud Storage on loopback: the emulator that the field uses, and a proxy before it that cuts a download short."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from servers.files import FileHandler, Site, serving


@contextmanager
def serving_storage() -> Iterator[str]:
    """Run the emulator in memory on a free port; its address is what STORAGE_EMULATOR_HOST takes."""
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{server._api._httpd.socket.getsockname()[1]}"
    finally:
        server.stop()


@dataclass
class Proxy(Site):
    """Forwards to `upstream`, and cuts the first download after `after` bytes."""

    upstream: str = ""
    after: int = 0


class ProxyHandler(FileHandler):
    site: Proxy

    def do_GET(self) -> None:
        self.note()
        connection = http.client.HTTPConnection(urlsplit(self.site.upstream).netloc, timeout=30)
        connection.request(self.command, self.path, headers=dict(self.headers))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if "json" in answer.getheader("Content-Type", "") and "alt=media" not in self.path:
            body = body.replace(self.site.upstream.encode(), self.site.url.encode())  # links to downloads
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.site.after and "alt=media" in self.path:
            body, self.site.after, self.close_connection = body[: self.site.after], 0, True
        self.wfile.write(body)

    do_HEAD = do_GET


@contextmanager
def cutting(upstream: str, *, after: int) -> Iterator[Proxy]:
    """Run the proxy."""
    proxy = Proxy(upstream=upstream, after=after)
    with serving(ProxyHandler, proxy):
        yield proxy
