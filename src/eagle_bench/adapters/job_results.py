"""What a job was told and what it left: its parameters, and the artifacts of its tasks in Cloud Storage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eagle_bench.adapters import storage
from eagle_bench.adapters.result_files import read_comparison
from eagle_bench.adapters.running_jobs import JobState, client_of, job_state
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S
from eagle_bench.comparison import Comparison
from eagle_bench.errors import ServiceError

# As the pipeline's tasks name them; Vertex AI puts each task's number behind its name.
WANTED = re.compile(r"(.*/)?(benchmark[^/]*/cell|smoke-test[^/]*/checked|compare[^/]*/(comparison|report|summary))")
COMPARED = re.compile(r"(.*/)?compare[^/]*/comparison")


@dataclass(frozen=True)
class JobResults:
    """A job as it stands, the parameters it was given, and the gs:// folders that hold its artifacts."""

    state: JobState
    parameters: dict[str, Any]
    folders: tuple[str, ...]

    @property
    def run_id(self) -> str:
        return self.state.name.rsplit("/", 1)[-1]


def look_up(job_name: str) -> JobResults:
    """A job and where its artifacts are.

    Raises:
        ServiceError: it can't be looked up.
    """
    from google.protobuf import json_format

    try:
        with told(f"look up {job_name}"):
            job = client_of(job_name).get_pipeline_job(name=job_name, timeout=CALL_TIMEOUT_S)
    except ServiceError as error:
        if error.kind != "not-found":
            raise
        _, project, _, location, _, job_id = job_name.split("/")
        raise ServiceError(
            f"there is no job {job_id} in {project}, {location}.",
            kind=error.kind,
            hint="Check its id, the project and the region.",
        ) from error
    runtime = json_format.MessageToDict(job.runtime_config._pb)
    return JobResults(job_state(job, job_name), runtime.get("parameterValues", {}), _folders(job))


def answer_of(job_name: str) -> Comparison | None:
    """The comparison that a job wrote; None where it did not come to that.

    Raises:
        ServiceError: the job can't be looked up, or its results may not be read.
        InputError: what lies there is no comparison that can be read.
    """
    with TemporaryDirectory() as scratch:
        found = download(look_up(job_name), Path(scratch), COMPARED)
        return read_comparison(next(iter(found))) if found else None


def download(results: JobResults, folder: Path, wanted: re.Pattern[str] = WANTED) -> dict[Path, str]:
    """Fetch what a job's tasks wrote of cells, comparison and report; each file with the address that it came from.

    Args:
        wanted: the names of what is fetched, from the job's folder on.

    Raises:
        ServiceError: it may not be read, or didn't arrive whole.
    """
    found: dict[Path, str] = {}
    for number, address in enumerate(results.folders):
        target = folder / str(number)
        for path in storage.download_tree(address, target, wanted=lambda name: wanted.fullmatch(name) is not None):
            found[path] = f"{address}/{path.relative_to(target).as_posix()}"
    return found


def _folders(job: Any) -> tuple[str, ...]:
    """Folders of a job's artifacts: from its tasks, and where Vertex AI puts them, for a job without a finished task."""
    run_id, root = str(job.name).rsplit("/", 1)[-1], str(job.runtime_config.gcs_output_directory).rstrip("/")
    found = {
        f"{artifact.uri.split(f'/{run_id}/', 1)[0]}/{run_id}"
        for task in job.job_detail.task_details
        for output in task.outputs.values()
        for artifact in output.artifacts
        if artifact.uri.startswith(storage.SCHEME) and f"/{run_id}/" in artifact.uri
    }
    number = str(job.name).split("/")[1]
    if number.isdecimal() and root:
        found.add(f"{root}/{number}/{run_id}")
    return tuple(sorted(found))
