"""Starting and stopping Local Vertex from Python: `with LocalVertex(settings) as server: …`."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from eagle_bench.errors import ServiceError
from eagle_bench.local_vertex.environment import client_environment, key_file_of
from eagle_bench.local_vertex.settings import Settings

START_TIMEOUT_S = 60.0


class LocalVertex:
    """A server in a process of its own; jobs and engines end with it, and it ends with this process.

    The process runs in a session of its own: Ctrl-C on the terminal is for the caller to handle.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._url: str | None = None

    def __enter__(self) -> LocalVertex:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address, such as http://127.0.0.1:8080."""
        return self._running()[1]

    @property
    def pid(self) -> int:
        return self._running()[0].pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended, by itself or by somebody else's hand."""
        return self._process is not None and self._process.poll() is None

    @property
    def key_file(self) -> Path:
        """The service account's key, for GOOGLE_APPLICATION_CREDENTIALS."""
        return key_file_of(self.settings)

    @property
    def environment(self) -> dict[str, str]:
        """What a process that talks to this server needs in its environment."""
        return client_environment(self.settings, self.url)

    @property
    def log_file(self) -> Path:
        return self.settings.state_dir / "logs" / "server.log"

    def engine_log(self, endpoint_id: str) -> Path:
        """What the engine behind an endpoint wrote."""
        return self.settings.state_dir / "logs" / "engines" / f"{endpoint_id}.log"

    def job_folder(self, job_id: str) -> Path:
        """A job's folder: `job.log`, a log file per task (`NN-task.log`), `tasks.jsonl`."""
        return self.settings.state_dir / "jobs" / job_id

    def bucket_folder(self, address: str) -> Path:
        """Where the objects of a gs:// folder lie."""
        return self.settings.state_dir / "buckets" / address.removeprefix("gs://")

    def artifacts_folder(self, pipeline_root: str, job_id: str) -> Path:
        """Where the artifacts of one job lie: `ROOT/PROJECT_NUMBER/JOB_ID`, as on Vertex AI."""
        return self.bucket_folder(pipeline_root) / str(self.settings.project_number) / job_id

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            ServiceError: it did not start; its log says why.
        """
        settings_file = self.settings.state_dir / "settings.json"
        try:
            self.log_file.parent.mkdir(parents=True, exist_ok=True)
            settings_file.write_text(self.settings.model_dump_json(indent=2))
        except OSError as error:
            raise ServiceError(
                f"Local Vertex did not start: {error.filename} can't be written: {error.strerror}.",
                hint="It needs a folder of its own; give another one.",
            ) from None
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "eagle_bench.local_vertex", "--settings", str(settings_file)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            out = self._process.stdout
        ready = out and select.select([out], [], [], START_TIMEOUT_S)[0]
        line = out.readline() if out and ready else b""
        settings_file.unlink(missing_ok=True)  # it was read, and an engine's environment may hold a secret
        if not line:
            self.stop()
            reason = self.log_file.read_text(errors="replace").strip().rsplit("\n", 1)[-1]
            raise ServiceError(f"Local Vertex did not start: {reason} (see {self.log_file}).", kind="unavailable")
        self._url = json.loads(line)["url"]

    def stop(self) -> None:
        """End the server, its jobs and its engines; returns when all of them are gone."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=self.settings.stop_grace_s * 2 + 30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()

    def _running(self) -> tuple[subprocess.Popen[bytes], str]:
        if self._process is None or self._url is None:
            raise RuntimeError("Local Vertex is not running: use it in a `with` block, or call `start` first.")
        return self._process, self._url
