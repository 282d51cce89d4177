"""Tasks of a pipeline in containers, as on Vertex AI: each in the image that the template names, run by Docker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LABEL = "eagle-bench-job"


@dataclass(frozen=True)
class Containers:
    """How the containers of one job are run.

    The job's folder of artifacts lies in them where it lies on this machine, for writing; `readable` are files and
    folders to read. They share this machine's network, where Local Vertex listens.
    """

    job_id: str
    docker: tuple[str, ...]
    artifacts: Path
    readable: tuple[Path, ...]
    environment: Mapping[str, str]

    def argv(self, image: str, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command that runs one task, as this user, and ends with the task's own exit status."""
        own = f"{os.getuid()}:{os.getgid()}"
        options = ["--rm", "--network=host", f"--user={own}", f"--label={LABEL}={self.job_id}"]
        options += ["--init", "--env=TINI_KILL_PROCESS_GROUP=1"]  # TERM reaches the component behind its shell
        options.append(f"--volume={self.artifacts}:{self.artifacts}")
        options += [f"--volume={path}:{path}:ro" for path in self.readable]
        options += [f"--env={name}={value}" for name, value in {**self.environment, **environment}.items()]
        # The first word of the command takes an ENTRYPOINT's place, as Vertex AI does it.
        return [*self.docker, "run", *options, f"--entrypoint={command[0]}", image, *command[1:]]

    def remove_all(self) -> None:
        """End what is left of the job: a container outlives the `docker run` that was killed."""
        listing = [*self.docker, "ps", "--all", "--quiet", f"--filter=label={LABEL}={self.job_id}"]
        left = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.split()
        if left:
            subprocess.run([*self.docker, "rm", "--force", *left], capture_output=True, check=False)
