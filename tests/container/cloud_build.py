"""Cloud Build on this machine: a config checked by the API's own definition, its steps run by Docker.

It is not the service: no metadata server (credentials are given to the steps named), nothing pushed that a step
doesn't push, `images` must exist at the end.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from google.cloud.devtools.cloudbuild_v1.types import Build, BuildOptions
from google.protobuf import json_format

BUILT_IN = frozenset({"PROJECT_ID", "PROJECT_NUMBER", "BUILD_ID", "LOCATION"})
OF_TRIGGERS = frozenset(
    {"COMMIT_SHA", "REVISION_ID", "SHORT_SHA", "REPO_NAME", "BRANCH_NAME", "TAG_NAME", "TRIGGER_NAME"}
)
REFERENCE = re.compile(r"\$\$|\$(?:([A-Z_][A-Z0-9_]*)|\{([A-Z_][A-Z0-9_]*)\})")
IN_SCRIPT = re.compile(r"\$\{?([A-Z_][A-Z0-9_]*)")
PINNED = re.compile(r"@sha256:[0-9a-f]{64}$|:\d+\.\d+\.\d+$")
ROOT = "/workspace"


def load(path: Path) -> Any:
    """The config as the API takes it.

    Raises:
        json_format.ParseError: a field that the API doesn't know, or a value of another type.
    """
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Build(json_format.ParseDict(data, Build.pb()(), ignore_unknown_fields=False))


def problems(build: Any) -> Iterator[str]:
    """What the API would take and a person would regret."""
    declared = dict(build.substitutions)
    known = declared.keys() | BUILT_IN | OF_TRIGGERS
    used: set[str] = set()
    seen: list[str] = []
    for step in build.steps:
        texts = [step.name, step.entrypoint, step.dir_, *step.args, *step.env]
        used |= {name for text in texts for name in references(text)}
        used |= {name for name in IN_SCRIPT.findall(step.script) if name.startswith("_")}
        if step.script and (step.args or step.entrypoint):
            yield f"{step.id}: `script` excludes `args` and `entrypoint`"
        if step.script and not step.script.startswith("#!"):
            yield f"{step.id}: the script does not say what runs it"
        if step.id in seen or not step.id:
            yield f"{step.id!r}: an id is missing or given twice"
        for before in step.wait_for:
            if before not in {*seen, "-"}:
                yield f"{step.id}: waits for {before}, which is no earlier step"
        if not step.wait_for:
            yield f"{step.id}: `waitFor` is missing, so it waits for everything before it"
        if not step.timeout:
            yield f"{step.id}: has no time-out"
        if "$" not in step.name and not PINNED.search(step.name):
            yield f"{step.id}: the builder {step.name} is not pinned"
        seen.append(step.id)
    used |= {name for text in (*build.images, *build.tags, build.service_account) for name in references(text)}
    used |= {name for value in declared.values() for name in references(value)}
    if any(references(value) for value in declared.values()) and not build.options.dynamic_substitutions:
        yield "substitutions name others: that needs `dynamicSubstitutions`"
    if any(step.script for step in build.steps) and not build.options.automap_substitutions:
        yield "scripts see no substitutions without `automapSubstitutions`"
    yield from (f"${name} is neither built in nor declared" for name in sorted(used - known))
    yield from (f"the substitution {name} is never used" for name in sorted(declared.keys() - used))
    yield from (
        f"the substitution {name} has no name that can be one"
        for name in declared
        if not re.fullmatch(r"_[A-Z0-9_]{1,99}", name)
    )
    if not build.timeout:
        yield "the build has no time-out"
    if not build.service_account or build.options.logging != BuildOptions.LoggingMode.CLOUD_LOGGING_ONLY:
        yield "an account of its own is missing, or its logs: that needs `serviceAccount` and CLOUD_LOGGING_ONLY"
    if not build.images or build.options.requested_verify_option != BuildOptions.VerifyOption.VERIFIED:
        yield "`images` and `requestedVerifyOption: VERIFIED` give images their provenance"


def references(text: str) -> set[str]:
    """Names of the substitutions in a text."""
    return {match[1] or match[2] for match in REFERENCE.finditer(text) if match[0] != "$$"}


def substituted(text: str, values: Mapping[str, str]) -> str:
    """A text with its substitutions made; what is unknown is empty, as in a triggered build."""
    return REFERENCE.sub(lambda match: "$" if match[0] == "$$" else values.get(match[1] or match[2], ""), text)


@dataclass
class Run:
    """One build on this machine."""

    build: Any
    workspace: Path
    values: dict[str, str]
    network: str = "host"
    credentials: Mapping[str, str] = field(default_factory=dict)  # what the metadata server would give, by variable
    mounts: Sequence[Path] = ()
    with_credentials: frozenset[str] = frozenset()
    statuses: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = {"PROJECT_ID": "local-project", "PROJECT_NUMBER": "1", "BUILD_ID": "local-build", "LOCATION": "global"}
        values |= dict(self.build.substitutions) | self.values
        for _ in range(4):  # substitutions that name others
            values = {name: substituted(value, values) for name, value in values.items()}
        self.values = values

    def execute(self, *, only: Iterable[str] = ()) -> bool:
        """Run the steps (or some of them), each as soon as those are done that it waits for; True if all went well."""
        waiting = {step.id: step for step in self.build.steps if not only or step.id in only}
        planned = set(waiting)
        running: dict[Future[int], str] = {}
        with ThreadPoolExecutor(len(waiting)) as pool:
            while waiting or running:
                ready = [
                    name
                    for name, step in waiting.items()
                    if all(self.statuses.get(before) == 0 for before in step.wait_for if before in planned)
                ]
                running |= {pool.submit(self.step, waiting.pop(name)): name for name in ready}
                if not running:  # a step failed, and the rest waits for it
                    return False
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    self.statuses[running.pop(done)] = done.result()
        return not any(self.statuses.values())

    @property
    def images(self) -> list[str]:
        return [substituted(image, self.values) for image in self.build.images]

    def step(self, step: Any) -> int:
        """One step in its container; what it said is kept."""
        started = time.monotonic()
        done = subprocess.run(
            self.argv(step),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=step.timeout.total_seconds(),
        )
        self.outputs[step.id], self.seconds[step.id] = done.stdout, time.monotonic() - started
        print(
            f"--- {step.id}: exit status {done.returncode} after {self.seconds[step.id]:.1f} s\n{done.stdout}",
            flush=True,
        )
        return done.returncode

    def argv(self, step: Any) -> list[str]:
        home = self.workspace.parent / "home"
        home.mkdir(exist_ok=True)
        home.chmod(0o777)  # for images that do not run as root
        socket = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        words = ["docker", "run", "--rm", f"--network={self.network}", f"--workdir={ROOT}/{step.dir_}"]
        words += [f"--volume={self.workspace}:{ROOT}", f"--volume={home}:/builder/home", "--env=HOME=/builder/home"]
        words += [f"--volume={socket}:/var/run/docker.sock"]
        environment = [*self.build.options.env, *step.env]
        if step.id in self.with_credentials:
            environment += [f"{name}={value}" for name, value in self.credentials.items()]
            words += [f"--volume={path}:{path}:ro" for path in self.mounts]
        words += [f"--env={substituted(text, self.values)}" for text in environment]
        if not step.script:
            entrypoint = [f"--entrypoint={step.entrypoint}"] if step.entrypoint else []
            return [
                *words,
                *entrypoint,
                substituted(step.name, self.values),
                *(substituted(arg, self.values) for arg in step.args),
            ]
        script = self.workspace.parent / f"script-{step.id}"
        script.write_text(step.script)
        script.chmod(0o755)
        words += [f"--env={name}={value}" for name, value in self.values.items()]  # automapSubstitutions
        words += [f"--volume={script}:/builder/script:ro", "--entrypoint=/builder/script"]
        return [*words, substituted(step.name, self.values)]
