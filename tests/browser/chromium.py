"""Headless Chromium over its debugging protocol: what the report's tests need of it, and no more."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import websocket

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*",
)  # fmt: skip
START_S, ANSWER_S = 60, 60


class Page:
    """One tab. Events are kept in the order in which they came."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=ANSWER_S)
        self._last = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer.

        Raises:
            RuntimeError: the browser refused it.
        """
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return dict(message["result"])
            self.events.append(message)

    def open(
        self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False, scripts: bool = True
    ) -> None:
        """Open a file with the network off and wait until it is loaded."""
        self.events.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        self.call("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(json.loads(self._socket.recv()))
        self.call("Page.getLayoutMetrics")

    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself included."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the browser wrote into its console."""
        found = [e["params"]["entry"]["text"] for e in self.events if e["method"] == "Log.entryAdded"]
        found += [
            str(e["params"])
            for e in self.events
            if e["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        ]
        return found

    def size(self) -> tuple[int, int]:
        """Width and height of the content in CSS pixels."""
        content = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return int(content["width"]), int(content["height"])

    def evaluate(self, script: str) -> Any:
        """The value of a script, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one empty tab, gone at the end.

    Raises:
        FileNotFoundError: there is no Chromium on this machine.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise FileNotFoundError("the browser tier needs Chromium: on Debian, `apt-get install chromium`")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with Page(_tab(Path(profile) / "DevToolsActivePort", process)) as page:
                yield page
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _tab(port_file: Path, process: subprocess.Popen[bytes]) -> str:
    """The address of the tab's debugger, once the browser is up."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError, IndexError, StopIteration, ValueError):
            port = port_file.read_text().splitlines()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                return str(next(t for t in json.load(answer) if t["type"] == "page")["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise RuntimeError(f"Chromium did not start (exit status {process.poll()})")
