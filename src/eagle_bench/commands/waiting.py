"""Following a submitted job at the terminal, and what Ctrl-C does to it."""

from __future__ import annotations

import sys
from datetime import datetime
from functools import partial

import click

from eagle_bench.adapters import running_jobs
from eagle_bench.adapters.vertex_address import Place
from eagle_bench.adapters.vertex_machines import machine_awaited
from eagle_bench.commands.interrupts import obey_signals, status_of
from eagle_bench.commands.job_lines import JobLines
from eagle_bench.commands.states import failures, in_words, unusable
from eagle_bench.errors import EagleBenchError, NoUsableResult, ServiceError
from eagle_bench.plain_text import plain_line

PATIENCE_S = 3600.0
QUESTION = "leave it running, cancel it and give everything back, or go on waiting?"


def wait(name: str) -> int:
    """Follow a job to its end, or to Ctrl-C; the exit status comes back. TERM and HUP ask nothing: the job runs on.

    Raises:
        NoUsableResult: it did not succeed.
        ServiceError: the same, but it has an answer: what failed is what came after, its teardown.
        ServiceError: it can't be looked up any more, and runs on; or it is gone.
    """
    obey_signals()
    lines, folder = JobLines(partial(machine_awaited, name)), running_jobs.artifacts_folder(name)
    while True:
        try:
            state = _follow(name, lines, folder)
            break
        except KeyboardInterrupt as interrupt:
            status = status_of(str(interrupt))
            choice = _choice() if status == status_of("SIGINT") else "leave"
        if choice == "wait":
            continue
        if choice == "cancel":
            return _cancel(name)
        click.echo(f"{_runs_on(name)}\n{_how_to_end(name)}", err=True)
        return status
    return _end(name, state)


def _follow(name: str, lines: JobLines, folder: str | None) -> running_jobs.JobState:
    state: running_jobs.JobState | None = None
    try:
        for now in running_jobs.watch(name, patience_s=PATIENCE_S, on_trouble=_trouble):
            state = now
            for line in lines.of(state, datetime.now().astimezone()):
                _say(line)
    except ServiceError as error:
        if state is not None and error.kind == "not-found":
            raise _gone(name, folder) from None
        error.hint = f"{error.hint or ''} {_runs_on(name)} {_how_to_end(name)}".strip()
        raise
    assert state is not None
    return state


def _end(name: str, state: running_jobs.JobState) -> int:
    """Say how a job ended, and its answer if it has one."""
    succeeded = state.state == "SUCCEEDED"
    answered = any(task.name.startswith("conclude") and task.state == "SUCCEEDED" for task in state.tasks)
    if succeeded:
        _say("the job is done")
    if succeeded or answered:
        _show_answer(name)
    if not succeeded:
        link = running_jobs.console_link(name)
        raise (ServiceError if answered else NoUsableResult)(
            _ending(state, answered),
            hint=f"{f'{link} – what' if link else 'What'} there is: eagle-bench fetch {name}",
        )
    click.echo(f"report and results: eagle-bench fetch {name}")
    return 0


def _show_answer(name: str) -> None:
    """Print the decisions. That they can't be read from here says nothing of the job, so it is only told."""
    from rich.console import Console

    from eagle_bench.adapters.job_results import answer_of
    from eagle_bench.report.terminal import print_decisions

    try:
        answer = answer_of(name)
    except EagleBenchError as error:
        click.echo(f"its answer can't be read from here: {plain_line(str(error))}", err=True)
        return
    if answer is not None:
        print_decisions(answer, Console())


def _gone(name: str, folder: str | None) -> ServiceError:
    """The error for a job that was there and is not any more.

    Args:
        folder: of its results, where it ran on this machine.
    """
    if folder:
        return ServiceError(
            f"the job {name} is gone: Local Vertex was started anew, and its jobs and engines ended with it.",
            kind="not-found",
            hint=f"What it had measured is there: eagle-bench compare $(find {folder} -name cell) --baseline ID",
        )
    return ServiceError(f"the job {name} is gone: it was deleted.", kind="not-found", hint=_how_to_end(name))


def _ending(state: running_jobs.JobState, answered: bool) -> str:
    """How a job ended that did not succeed, and why."""
    why = "; ".join(failures(state.tasks, state.error) or filter(None, [unusable(state.tasks)]))
    told = (
        f"the job {'failed' if state.state == 'FAILED' else f'is {in_words(state.state)}'}{f': {why}' if why else ''}"
    )
    return f"{told}; its answer is there all the same." if answered else f"{told}."


def _choice() -> str:
    """What is to become of the job: asked at a terminal; without one it is left running."""
    if not sys.stdin.isatty():
        return "leave"
    click.echo()
    try:
        return str(click.prompt(QUESTION, type=click.Choice(["leave", "cancel", "wait"]), default="leave", err=True))
    except click.Abort:  # Ctrl-C again, or the terminal is gone
        return "leave"


def _cancel(name: str) -> int:
    """Cancel it and give everything back; Ctrl-C ends the waiting for that too, and says what is left to do."""
    _say("cancelling the job; what it deployed is deleted when its tasks have ended")
    try:
        state = running_jobs.cancel_and_give_back(name, _say)
    except KeyboardInterrupt as interrupt:
        click.echo(f"not waited for. {_how_to_end(name)}", err=True)
        return status_of(str(interrupt))
    _say(f"the job is {in_words(state.state)}, and nothing of it is left; what it measured: eagle-bench fetch {name}")
    return status_of("SIGINT")


def _runs_on(name: str) -> str:
    link = running_jobs.console_link(name)
    return f"The job runs on: {link}" if link else "The job runs on."


def _how_to_end(name: str) -> str:
    place, run_id = Place.of(name), name.rsplit("/", 1)[-1]
    where = f"--project {place.project} --location {place.location}"
    return f"To cancel it and give everything back: eagle-bench cleanup {run_id} {where} --cancel --yes"


def _trouble(error: ServiceError) -> None:
    _say(f"no answer, trying again: {error.message}")


def _say(text: str) -> None:
    click.echo(plain_line(f"{datetime.now():%H:%M:%S} {text}"))
