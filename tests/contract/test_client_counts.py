"""Counts are exact, whatever the server does. The truth server's journal is the oracle."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from contract.client_runs import MARK, cell
from truth_server import oracle
from truth_server.process import TruthServer

# The truth server's faults, and the kind that the client must call them.
KINDS = {
    "503": "overload",
    "429": "quota",
    "500": "server-error",
    "empty": "empty",
    "blank": "empty",
    "cut": "dropped-stream",
    "cut-clean": "dropped-stream",
    "error-event": "server-error",
    "not-sse": "malformed-stream",
    "broken-json": "malformed-stream",
    "hang": "timeout",
}

MODES = [
    (),
    ("role-first",),
    ("usage-with-content",),
    ("usage-each", "role-first"),
    ("usage-always", "vertex"),
    ("new-limit",),
    ("floats",),
    ("split", "role-first"),
    ("until-close",),
    ("close",),
    ("close-header",),
    ("empty:24",),
    ("blank:2",),
    ("503:1",),
    ("503:8",),
    ("429:3", "503:4"),
    ("500:5", "cut:3"),
    ("cut-clean:4", "error-event:3"),
    ("not-sse:3", "broken-json:4"),
    ("slow:60", "empty:5"),
]


@pytest.mark.parametrize("modes", MODES, ids="+".join)
@pytest.mark.parametrize("k", [1, 3])
def test_counts_tokens_and_kinds_are_the_servers(modes: tuple[str, ...], k: int) -> None:
    with TruthServer(*modes, only=MARK, tokens=24, tokens_per_chunk=k, first_ms=5, token_ms=0.5) as server:
        found = cell(server, rounds=2)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == oracle.counts(journal)
    assert Counter(r.error.kind for r in found.requests if r.error) == _kinds(journal)
    assert [r.prompt_id for r in found.requests] == [f"p{i}" for i in range(24)]
    assert not any(warning.startswith("vllm_disagrees") for warning in found.warnings)
    sent = {entry["content"]: entry for entry in journal}
    for record in found.requests:
        if record.error is None:
            entry = sent[f"{MARK} {record.prompt_id[1:]}] why?"]
            assert record.output_tokens == entry["tokens"]
            assert record.chunks == len(oracle.contents_s(entry))
            assert record.text == "".join(f"w{i} " for i in range(24))
    if oracle.counts(journal)["completed"] == 0:
        assert found.metrics is None
        assert found.failure is not None
        assert "no replica is ready" in found.failure.message
    else:
        assert found.metrics is not None
        assert found.token_source == "usage"


def test_a_cell_ends_at_its_deadline_and_keeps_what_there_is() -> None:
    with TruthServer("hang:5", only=MARK, tokens=24, first_ms=5, token_ms=0.5) as server:
        found = cell(server, deadline_s=time.time() + 2)
    assert any(warning.startswith("budget:") for warning in found.warnings)
    assert found.counts.requested < 24
    assert found.counts.failed == 0


def _kinds(journal: list[oracle.Entry]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for fault, number in oracle.faults(journal).items():
        kinds[KINDS[fault]] += number
    return kinds


def test_a_request_that_is_never_answered_fails_alone() -> None:
    with TruthServer("hang:6", only=MARK, tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server, timeout_s=3.0)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == oracle.counts(journal)
    assert {r.error.kind for r in found.requests if r.error} == {"timeout"}


def test_the_bodies_of_errors_are_kept_with_their_status() -> None:
    with TruthServer("503:8", only=MARK, tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server)
    errors = [r.error for r in found.requests if r.error]
    assert len(errors) == 3
    assert {e.status for e in errors} == {503}
    assert all("no replica is ready" in e.body for e in errors)


def test_a_server_that_dies_in_a_round_leaves_what_was_measured() -> None:
    with TruthServer(only=MARK, tokens=8, first_ms=1, token_ms=0.2) as server:

        class KillAfterFirstRound(list):  # type: ignore[type-arg]
            def append(self, progress: object) -> None:
                if getattr(progress, "done", 0) >= 12 and getattr(progress, "round", -1) == 0:
                    server.kill()

        found = cell(server, rounds=2, progress=KillAfterFirstRound())
    assert found.counts.requested == 24
    assert found.counts.completed == 12
    assert {r.error.kind for r in found.requests if r.error} <= {"connection", "dropped-stream"}
    assert found.metrics is not None


def test_warm_up_goes_first_with_prompts_of_its_own_and_is_thrown_away() -> None:
    with TruthServer(tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server)
        journal = server.journal()
    kinds = ["measured" if e["content"].startswith(MARK) else e["content"][:5] for e in journal]
    assert kinds[1:9] == ["[warm"] * 8
    assert kinds[9:] == ["measured"] * 24
    assert len(found.requests) == 24


def test_messages_go_as_they_are_and_the_rest_is_equal_for_all() -> None:
    with TruthServer(tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server, model="m")
        journal = server.journal(MARK)
    bodies = [entry["body"] for entry in journal]
    assert {body["messages"][0]["content"] for body in bodies} == {"Be brief."}
    rest = [{k: v for k, v in body.items() if k != "messages"} for body in bodies]
    assert all(r == rest[0] for r in rest)
    assert rest[0]["temperature"] == 0
    assert rest[0]["max_tokens"] == 64
    assert rest[0]["model"] == "m"
    assert found.settings is not None
    assert found.settings.payload_sha256
    assert found.prompts is not None
    assert found.prompts.count == 24


def test_endpoints_that_spell_the_same_request_differently_were_asked_the_same() -> None:
    hashes, bodies = set(), set()
    for modes in ((), ("vertex", "usage-always"), ("new-limit",)):
        with TruthServer(*modes, tokens=8, first_ms=1, token_ms=0.2) as server:
            found = cell(server)
            bodies |= {tuple(sorted(entry["body"])) for entry in server.journal(MARK)}
        assert found.settings is not None
        hashes.add(found.settings.payload_sha256)
    assert (len(hashes), len(bodies)) == (1, 3)
    with TruthServer(tokens=8, first_ms=1, token_ms=0.2) as server:
        other = cell(server, settings={"ignore_eos": True})
    assert other.settings is not None
    assert other.settings.payload_sha256 not in hashes


@pytest.mark.parametrize(
    ("modes", "limit", "options"),
    [
        ((), "max_tokens", True),
        (("vertex", "usage-always"), "max_tokens", False),
        (("new-limit",), "max_completion_tokens", True),
    ],
)
def test_one_request_before_the_cell_finds_what_the_endpoint_takes(
    modes: tuple[str, ...], limit: str, options: bool
) -> None:
    with TruthServer(*modes, tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server)
        journal = server.journal(MARK)
    assert found.capabilities is not None
    assert found.capabilities.usage_in_stream
    assert found.capabilities.token_limit_field == limit
    assert found.capabilities.stream_options is options
    assert all((limit in e["body"]) and ("stream_options" in e["body"]) is options for e in journal)
    assert found.counts.failed == 0


def test_a_cell_that_knows_enough_ends_after_a_whole_round_and_says_what_it_saved() -> None:
    with TruthServer(only=MARK, tokens=12, first_ms=2, token_ms=1) as server:
        found = cell(server, concurrency=2, count=120, rounds=6, settings={"precision": 0.95})
        journal = server.journal(MARK)
    assert found.saving is not None
    assert found.counts.requested == len(journal) == 120 - found.saving.requests
    assert {r.round for r in found.requests} == set(range(6 - found.saving.rounds))
    assert found.counts.requested >= 50
    assert found.counts.failed == 0


def test_a_cell_that_can_give_no_answer_is_ended_and_says_so() -> None:
    with TruthServer("hang:1", only=MARK, tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server, concurrency=1, count=60, timeout_s=1.0)
        journal = server.journal(MARK)
    assert found.metrics is None
    assert 4 <= found.counts.requested == found.counts.failed == len(journal) < 60
    assert found.failure is not None
    assert found.failure.kind == "timeout"
    assert any(warning.startswith("stopped_early") for warning in found.warnings)
