"""The pipeline on this machine: the compiled template, submitted to Local Vertex and watched."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eagle_bench.adapters import pipeline_jobs, running_jobs, submissions, vertex
from eagle_bench.adapters.job_tasks import TaskState
from eagle_bench.adapters.pipeline_template import compile_template, parameters
from eagle_bench.adapters.vertex_address import place_of
from eagle_bench.adapters.whole_files import write_files
from eagle_bench.comparison import Comparison
from eagle_bench.config import Config
from eagle_bench.errors import ServiceError
from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.progress import told
from eagle_bench.report.answer_files import answer_files
from eagle_bench.resuming import EarlierRun, addresses, resume, taken_and_left
from eagle_bench.runs.earlier_runs import bring_together, run_in
from eagle_bench.runs.equipment import equipment, machine
from eagle_bench.runs.gathering import RESULTS, Gathered, gather, make_room, note
from eagle_bench.runs.strangers import Strangers, warned
from eagle_bench.sweep import Sweep
from eagle_bench.variants import VariantSpec, resolve

Say = Callable[[str], None]
WAIT_FOR_CANCEL_S, PATIENCE_S = 60.0, 15.0


@dataclass(frozen=True)
class LocalRun:
    """How a run on this machine ended.

    Args:
        left: could not be deleted, by Local Vertex's word, until it ended itself.
        signal: the name of the one that interrupted it.
    """

    run_id: str
    state: str
    error: str | None
    gathered: Gathered
    left: tuple[vertex.Left, ...] = ()
    tasks: tuple[TaskState, ...] = ()
    signal: str | None = None


def run(
    config: Config,
    settings: Settings,
    out: Path,
    say: Say,
    images: Mapping[str, str] | None = None,
    resumed: Path | None = None,
) -> LocalRun:
    """Run the pipeline through Local Vertex, and bring its results together in `out`.

    Ctrl-C cancels the job, gives everything back and keeps what was measured: the state is CANCELLED then.

    Args:
        images: what the components run in, if `settings.docker` says that they run in containers.
        resumed: folder of an earlier run, whose whole cells are taken.

    Raises:
        InputError: the config can't be used here, or not with the earlier run.
        ServiceError: Local Vertex did not start or refused the job.
    """
    with_what = equipment(resolve(config), settings)
    earlier = run_in(resumed, say) if resumed else None
    values = parameters(config, {})
    if earlier:
        values = resume(values, earlier, with_what)  # refused before anything is moved
        taken = set(addresses(values["earlier"]))
        earlier = replace(earlier, cells=tuple(kept for kept in earlier.cells if kept.address in taken))
    specs = {variant["id"]: VariantSpec.model_validate(variant) for variant in values["variants"]}
    bring_together(out, say)
    moved = make_room(out, say)
    if earlier:
        have, lack = taken_and_left(values)
        away = resumed and resumed.resolve() == out.resolve() and (moved / RESULTS).exists()
        say(f"taken from {moved if away else resumed}: {have}; measured now: {lack}; the results of both go to {out}")
        earlier = _moved(earlier, out.resolve() / RESULTS, moved.resolve() / RESULTS)
    template = out / "pipeline.yaml"
    digest = compile_template(template, images=images)
    say(f"compiled the pipeline: {template} (sha256:{digest[:12]}…)")
    run_id = pipeline_jobs.new_run_id()
    environment = {"machine": machine()}
    with LocalVertex(settings) as server:
        os.environ.update(server.environment)
        assert config.pipeline_root
        artifacts = server.artifacts_folder(config.pipeline_root, run_id)
        if earlier:
            earlier = _in_bucket(earlier, server.bucket_folder(""), artifacts / "earlier")
        job = pipeline_jobs.prepare(config, template, run_id, environment, earlier=earlier)
        told_to_run = pipeline_jobs.parameters_of(job)
        name = submissions.submit(job)
        note(run_id, told_to_run, out, with_what)  # whatever ends this process, `--resume` finds what was measured
        say(f"submitted {run_id} to Local Vertex (logs: {server.job_folder(run_id)})")
        sweep = Sweep({spec.id: spec.levels_of(config.concurrency) for spec in specs.values()})
        strangers = Strangers()
        state, heard = _to_its_end(name, server, sweep, strangers, say)
        # Engines don't outlive it: without it there is nobody to ask and nothing to give back.
        not_deleted = _give_back(config, run_id, say) if server.running else ()
    # The bucket went with Local Vertex: what lies in it is asked for of nobody any more.
    cells = earlier.cells if earlier else ()
    gathered = gather(artifacts, run_id, told_to_run, out, earlier=cells, equipment=with_what)
    # Servers at URLs may run on this machine, too, and containers are no children of ours: nobody could tell them apart.
    if gathered.answer and not settings.docker and all(spec.deployed for spec in specs.values()):
        gathered = replace(gathered, answer=_with_disturbance(gathered.answer, strangers, out))
    return LocalRun(run_id, state.state, state.error, gathered, not_deleted, state.tasks, heard)


def _with_disturbance(answer: Comparison, strangers: Strangers, out: Path) -> Comparison:
    """The answer, written anew if other programs disturbed it."""
    warning = warned(answer, strangers)
    if warning is not answer:
        write_files(answer_files(warning, out))
    return warning


def _to_its_end(
    name: str, server: LocalVertex, sweep: Sweep, strangers: Strangers, say: Say
) -> tuple[running_jobs.JobState, str | None]:
    """Watch a job to its end, or to a signal, which cancels it; the signal's name comes with the last state.

    Without Local Vertex it has ended, too, and what it measured by then is kept.
    """
    heard = None
    try:
        try:
            return _follow(name, server.job_folder(name.rsplit("/", 1)[-1]), sweep, strangers, say), heard
        except KeyboardInterrupt as interrupt:
            heard = str(interrupt) or "SIGINT"
            say("interrupted: cancelling the run and giving everything back")
            return running_jobs.cancel_and_wait(name, timeout_s=WAIT_FOR_CANCEL_S, poll_s=0.5), heard
    except ServiceError as error:
        why = f"Local Vertex lost the run: {error}"
        if not server.running:
            why = f"Local Vertex was ended from outside, and its engines with it (its log: {server.log_file})"
        return running_jobs.JobState(name, "CANCELLED" if heard else "FAILED", why, ()), heard


def _follow(name: str, folder: Path, sweep: Sweep, strangers: Strangers, say: Say) -> running_jobs.JobState:
    """Watch a job to its end, passing on what its tasks tell."""
    lines = _Tail(folder)
    last = None
    for state in running_jobs.watch(name, poll_s=0.5, patience_s=PATIENCE_S):
        for line in lines.new():
            say(sweep.told(line, time.monotonic()))
        strangers.look(time.time())
        last = state
    for line in lines.new():
        say(sweep.told(line, time.monotonic()))
    assert last is not None
    return last


def _moved(earlier: EarlierRun, old: Path, new: Path) -> EarlierRun:
    """The earlier run with the addresses that its cells have once the results of one folder lie in another."""
    cells = (
        replace(kept, address=str(new / Path(kept.address).name)) if Path(kept.address).parent == old else kept
        for kept in earlier.cells
    )
    return replace(earlier, cells=tuple(cells))


def _in_bucket(earlier: EarlierRun, buckets: Path, folder: Path) -> EarlierRun:
    """The earlier run with its cells copied into a bucket, where every task can read them, in a container too."""
    folder.mkdir(parents=True)
    cells = []
    for kept in earlier.cells:
        # Their own names may be one: a task's results are all called alike.
        copy = folder / f"{kept.cell.variant}-c{kept.cell.concurrency}.json"
        shutil.copyfile(kept.address, copy)
        cells.append(replace(kept, address=f"gs://{copy.relative_to(buckets).as_posix()}"))
    return replace(earlier, cells=tuple(cells))


class _Tail:
    """The progress in a job's log files, each line once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[str]:
        for path in sorted(self._folder.glob("*.log")):
            with path.open("rb") as log:
                log.seek(self._read.get(path, 0))
                whole = log.read().rpartition(b"\n")[0]
            if not whole:
                continue
            self._read[path] = self._read.get(path, 0) + len(whole) + 1
            for line in whole.decode(errors="replace").splitlines():
                text = told(line)
                if text:
                    yield text


def _give_back(config: Config, run_id: str, say: Say) -> tuple[vertex.Left, ...]:
    """Do what the pipeline's own teardown could not (no task starts in a cancelled job); what is left comes back."""
    place = place_of(config)
    left: list[vertex.Left] = []
    for spec in resolve(config):
        if spec.deployed:
            report = vertex.teardown(place, run_id, spec.id)
            if report.deleted:
                say(f"{spec.id}: given back: {report.given_back}")
            left += report.left
    for item in left:
        say(f"COULD NOT BE DELETED: {item.said}")
    return tuple(left)
