"""A `submit` that is cut short tells of what it may have made."""

from __future__ import annotations

import os
import signal

import pytest

from eagle_bench.adapters.vertex_address import Place
from eagle_bench.commands.job_whereabouts import job_may_be, schedule_may_be, told_if_interrupted

JOB = "projects/p/locations/us-central1/pipelineJobs/eagle-bench-1"


@pytest.fixture(autouse=True)
def _handlers_come_back():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_it_names_the_job_and_what_ends_it(number, status, capsys):
    with pytest.raises(SystemExit) as ended, told_if_interrupted(job_may_be(JOB)):
        os.kill(os.getpid(), number)
    assert ended.value.code == status
    shown = capsys.readouterr().err
    assert f"{JOB} may have been made" in shown
    assert "eagle-bench cleanup eagle-bench-1 --project p --location us-central1 --cancel --yes" in shown


def test_it_names_the_schedule(capsys):
    told = schedule_may_be("eagle-bench speed", Place("p", "us-central1"))
    with pytest.raises(SystemExit), told_if_interrupted(told):
        os.kill(os.getpid(), signal.SIGTERM)
    assert (
        "The schedule 'eagle-bench speed' in projects/p/locations/us-central1 may have been made"
        in capsys.readouterr().err
    )
