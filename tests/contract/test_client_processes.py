"""Several processes for one cell: one measurement in the end, and nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from contract.client_runs import MARK, cell, staged
from eagle_bench.adapters.vllm_client import Progress
from eagle_bench.adapters.vllm_client.crew import processes_for, share
from eagle_bench.adapters.vllm_client.sender import Part
from eagle_bench.results import CellResult
from leftover_processes import descendants
from truth_server import oracle
from truth_server.process import TruthServer


@pytest.mark.parametrize(
    ("concurrency", "cores", "expected"),
    [(1, 8, 1), (128, 8, 1), (129, 8, 2), (512, 8, 4), (512, 4, 3), (512, 2, 1), (512, 1, 1)],
)
def test_a_process_for_each_128_streams_and_a_core_left_over(
    concurrency: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert processes_for(concurrency) == expected


@pytest.mark.parametrize(("concurrency", "prompts", "count"), [(4, 24, 2), (7, 50, 3), (5, 3, 2), (2, 9, 3)])
def test_shares_are_the_whole_in_streams_and_prompts(concurrency: int, prompts: int, count: int) -> None:
    whole = Part(staged(prompts, concurrency), concurrency, 0, 0.0)
    shares = share(whole, count)
    assert sum(part.concurrency for part in shares) == concurrency
    assert sorted(p.id for part in shares for p in part.prompts) == sorted(p.id for p in whole.prompts)
    most = max(len(part.prompts) / part.concurrency for part in shares if part.concurrency)
    assert all(len(part.prompts) > (most - 2) * part.concurrency for part in shares if part.concurrency)


def test_two_processes_measure_one_cell_with_tokens_that_expire() -> None:
    told: list[Progress] = []
    given: list[str] = []
    with TruthServer("token:1.5", "role-first", tokens=30, first_ms=60, token_ms=5) as server:

        def supplier() -> str:
            given.append(server.token())
            return given[-1]

        found = cell(server, concurrency=5, count=50, rounds=2, processes=2, progress=told, token=supplier)
        journal = server.journal()
    measured = [entry for entry in journal if entry["content"].startswith(MARK)]
    assert found.counts.model_dump() == oracle.counts(measured)
    assert found.counts.completed == 50
    assert Counter(entry["content"] for entry in measured) == Counter(f"{MARK} {i}] why?" for i in range(50))
    assert [r.prompt_id for r in found.requests] == [f"p{i}" for i in range(50)]
    assert sum(entry["content"].startswith("[warm") for entry in journal) == 10
    assert len(set(given)) > 2
    assert not any(token in found.model_dump_json() for token in given)
    assert found.client is not None
    assert found.client.processes == 2
    assert found.client.loop_lag_ms_p99 is not None
    assert found.client.cpu_fraction is not None
    assert told[-1].done == told[-1].total == 50
    assert not [w for w in found.warnings if w.startswith("vllm_disagrees")]


def test_the_records_of_both_stand_on_one_clock_and_the_level_is_held() -> None:
    with TruthServer(tokens=20, first_ms=40, token_ms=5) as server:
        found = cell(server, concurrency=4, count=24, processes=2)
        journal = server.journal(MARK)
    entries = {entry["content"]: entry for entry in journal}
    offsets = []
    for record in found.requests:
        entry = entries[f"{MARK} {record.prompt_id[1:]}] why?"]
        assert record.ttft_ms is not None
        assert record.e2e_ms is not None
        assert record.ttft_ms >= oracle.ttft_ms(entry)
        assert record.e2e_ms >= oracle.e2e_ms(entry)
        # Sent before the server had it, read after it was sent: that bounds where the cell's start may lie.
        content = oracle.contents_s(entry)
        offsets.append((content[-1] - record.start_s - record.e2e_ms / 1000, entry["received_s"] - record.start_s))
    assert max(low for low, _ in offsets) <= min(high for _, high in offsets)
    moments = sorted(m for e in journal for m in ((e["received_s"], 1), (e["sent"][-1]["at_s"], -1)))
    flying = most = 0
    for _, change in moments:
        flying += change
        most = max(most, flying)
    assert most == 4
    assert found.rounds[0].output_tokens_per_s is not None


def test_a_cell_that_can_give_no_answer_is_ended_in_all_processes() -> None:
    with TruthServer("hang:1", only=MARK, tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server, concurrency=2, count=200, timeout_s=1.0, processes=2)
        journal = server.journal(MARK)
    assert found.metrics is None
    # What was in flight when the cell was ended is dropped, as everywhere.
    assert found.counts.requested == found.counts.failed <= len(journal) <= found.counts.requested + 2
    assert len(journal) < 200
    assert any(warning.startswith("stopped_early") for warning in found.warnings)


def test_a_process_that_is_lost_is_not_hidden() -> None:
    with TruthServer(only=MARK, tokens=20, first_ms=20, token_ms=2) as server:

        class KillOne(list):  # type: ignore[type-arg]
            def append(self, progress: object) -> None:
                if getattr(progress, "round", -1) == 0 and not self:
                    super().append(progress)
                    workers = [pid for nursery in descendants(os.getpid()) for pid in descendants(nursery)]
                    os.kill(min(workers), signal.SIGKILL)

        found = cell(server, concurrency=4, count=600, processes=2, progress=KillOne())
    assert found.counts.requested == 600
    assert found.counts.completed == found.counts.failed == 300
    assert {r.error.body for r in found.requests if r.error} == {
        "The process of the client that was to send this ended before it told what came of it."
    }


PROGRAM = """
    import sys
    from contract.client_runs import staged, warm
    from eagle_bench.adapters.vllm_client import Target, measure
    from eagle_bench.results import CellSettings
    settings = CellSettings(max_output_tokens=64, requests=400, rounds=1, warmup_requests=4, request_timeout_s=60)
    found = measure(Target(sys.argv[1]), warm(4), staged(400, 4), variant="v", concurrency=4, settings=settings, processes=2)
    print(found.model_dump_json())
"""


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=["SIGTERM", "SIGINT", "SIGKILL"]
)
def test_a_signal_ends_all_processes_and_keeps_what_was_measured(number: signal.Signals) -> None:
    with TruthServer(tokens=20, first_ms=50, token_ms=10) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), server.url],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        )
        while len(server.journal(MARK)) < 12 and process.poll() is None:
            time.sleep(0.2)
        theirs = descendants(process.pid)
        process.send_signal(number)
        out, _ = process.communicate(timeout=120)
    assert len(theirs) == 3
    end = time.monotonic() + 60  # far above what it takes: only processes that stay meet it
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in theirs):
        assert time.monotonic() < end
        time.sleep(0.05)
    if number is signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        return
    found = CellResult.model_validate_json(out)
    assert 0 < found.counts.completed < 400
    assert found.counts.failed == 0
    assert any(warning.startswith("interrupted") for warning in found.warnings)
