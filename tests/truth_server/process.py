"""Starts a truth server in a process of its own and asks it what it knows."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

SERVER = Path(__file__).with_name("server.py")


class TruthServer:
    """`with TruthServer("role-first", tokens_per_chunk=3) as server: … server.url … server.journal()`."""

    def __init__(self, *modes: str, **options: float | str) -> None:
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        arguments += [f"--mode={mode}" for mode in modes]
        self._command = [sys.executable, str(SERVER), *arguments]
        self._certificate = str(options["certificate"]) if "certificate" in options else None
        self._process: subprocess.Popen[str] | None = None
        self._killed = False
        self.root = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"the truth server did not start: {line!r}")
        self.root = ("https://" if self._certificate else "http://") + line.split()[-1]
        return self

    def __exit__(self, *_: object) -> None:
        died = self.died
        self.kill()
        if died:
            raise RuntimeError(died)

    @property
    def died(self) -> str | None:
        """How the server ended, where nobody here ended it. Then its port refuses, and no client is to blame."""
        status = self._process.poll() if self._process is not None and not self._killed else None
        return None if status is None else f"the truth server at {self.root} ended by itself, with status {status}"

    def kill(self) -> None:
        self._killed = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def wait(self) -> None:
        """Until it has ended."""
        assert self._process is not None
        self._process.wait()

    @property
    def url(self) -> str:
        """The base URL, up to and with /v1."""
        return self.root + "/v1"

    def journal(self, containing: str = "") -> list[dict[str, Any]]:
        """The chat requests that the server saw, in order, whose last message has this text."""
        return [entry for entry in self.get("/journal") if containing in entry["content"]]

    def token(self) -> str:
        """A bearer token, valid for as long as the mode says."""
        return str(self.get("/token")["access_token"])

    def get(self, path: str) -> Any:
        tls = ssl.create_default_context(cafile=self._certificate) if self._certificate else None
        try:
            with urllib.request.urlopen(self.root + path, timeout=30, context=tls) as response:
                return json.loads(response.read())
        except OSError as error:
            raise RuntimeError(self.died or f"the truth server runs, but {self.root}{path}: {error}") from error
