"""Follows the job of a trial: what it says, its processes, and the moments to act at."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eagle_bench.adapters import running_jobs
from eagle_bench.errors import ServiceError
from eagle_bench.progress import told
from faults.secret_search import SecretSearch, task_of
from faults.trial import SIGNALS, Row, Trial
from leftover_processes import command_of, descendants

if TYPE_CHECKING:
    from faults.lab import Lab

POLL_S = 0.25


class Watch:
    """Follows a job: its words, its processes, the moments to act at."""

    def __init__(self, lab: Lab, trial: Trial, search: SecretSearch) -> None:
        self._lab, self._trial, self._search = lab, trial, search
        self._seen: set[tuple[object, ...]] = set()
        self.waiting = [row for row in trial.rows if row.act]
        self._held = [row for row in trial.rows if row.until]
        self.lines: list[str] = []
        self.leaks: set[str] = set()

    @property
    def finished(self) -> list[str]:
        """Variants whose cell was said to be done."""
        return [line.partition(":")[0] for line in self.lines if ": c=1 done" in line]

    def follow(self, name: str) -> running_jobs.JobState:
        while True:
            try:
                state = running_jobs.state_of(name)
            except ServiceError as error:
                if not running_jobs.passing(error):
                    return running_jobs.JobState(name, "LOST", str(error), ())
            else:
                self._listen()
                if state.ended:
                    return state
            self._look(name)
            time.sleep(POLL_S)

    def _listen(self) -> None:
        logs = sorted(self._lab.server.job_folder(self._trial.id).glob("*.log"))
        lines = (told(line) for log in logs for line in log.read_text(errors="replace").splitlines())
        self.lines = [line for line in lines if line]

    def _look(self, name: str) -> None:
        tasks = []
        for pid in descendants(self._lab.server.pid):
            words = command_of(pid)
            if (pid, *words) not in self._seen:
                self._seen.add((pid, *words))
                self.leaks.update(self._search.in_process(words, _environment(pid)))
            if words[1:3] == ["-m", "kfp.dsl.executor_main"] and (task := task_of(words)):
                tasks.append(_Task(pid, task, words))
        for row in tuple(self._held):
            if any(row.until in line for line in self.lines):
                self._held.remove(row)
                self._lab.clear_faults()
        for row in tuple(self.waiting):
            found = [task for task in tasks if self._is_at(row, task)]
            if found:
                self.waiting.remove(row)
                self._act(row, found[0], name)

    def _is_at(self, row: Row, task: _Task) -> bool:
        at, run_id = row.at, self._trial.id
        assert at
        return (
            task.function == at.task
            and task.variant in {None, row.id}
            and any(at.line.format(row.id) in line for line in (*self.lines, ""))
            and (not at.asked or self._lab.engine_log(run_id, row.id).count("POST") >= at.asked)
        )

    def _act(self, row: Row, task: _Task, name: str) -> None:
        if row.act in SIGNALS:
            with contextlib.suppress(ProcessLookupError):
                os.kill(task.pid, SIGNALS[row.act])
        elif row.act == "cancel":
            running_jobs.cancel(name)
        elif row.act == "restart":
            self._lab.restart()
        elif row.act == "disk-full":
            path = task.output("cell")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to("/dev/full")
        elif row.act == "order":
            self._lab.clear_faults()
            self._lab.order(self._trial, row, row.then)


@dataclass(frozen=True)
class _Task:
    """A process that runs a component."""

    pid: int
    function: str
    words: list[str]

    @property
    def _input(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.words[self.words.index("--executor_input") + 1])
        return found

    @property
    def variant(self) -> str | None:
        """The id of its variant; None for one that serves all."""
        given = self._input["inputs"].get("parameterValues", {}).get("variant")
        return given["id"] if given else None

    def output(self, name: str) -> Path:
        (artifact,) = self._input["outputs"]["artifacts"][name]["artifacts"]
        return Path(artifact["uri"])


def _environment(pid: int) -> dict[str, str]:
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
