"""Bearer tokens: asked for again and again, never shown, never sent as `None`. And who counts the output tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract.client_runs import MARK, cell, staged, warm
from contract.test_client_bad_answers import canned, content, stream, usage, whole
from eagle_bench.adapters.vllm_client import Target, measure
from eagle_bench.commands.bench_server import named
from eagle_bench.errors import InputError, ServiceError
from eagle_bench.results import CellResult, CellSettings
from eagle_bench.tasks.targets import target_of
from eagle_bench.variants import VariantSpec
from truth_server import oracle
from truth_server.process import TruthServer


def test_tokens_that_expire_within_a_cell_are_renewed() -> None:
    with TruthServer("token:1.5", tokens=40, first_ms=100, token_ms=5) as server:
        given: list[str] = []

        def supplier() -> str:
            given.append(server.token())
            return given[-1]

        found = cell(server, concurrency=2, count=24, token=supplier)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == {"requested": 24, "completed": 24, "failed": 0, "empty": 0}
    assert all(entry["status"] == 200 for entry in journal)
    assert len(set(given)) > 2
    assert not any(token in found.model_dump_json() for token in given)


def test_a_token_that_ran_out_fails_as_authentication_and_is_not_shown() -> None:
    with TruthServer("token:0.4", tokens=20, first_ms=60, token_ms=4) as server:
        stale = server.token()
        found = cell(server, concurrency=2, count=24, token=lambda: stale)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == oracle.counts(journal)
    refused = [r.error for r in found.requests if r.error]
    assert refused
    assert {(e.kind, e.status) for e in refused} == {("authentication", 401)}
    assert all("The token is not valid" in e.body for e in refused)
    assert stale not in found.model_dump_json()


KEY = "sk-SECRETabc/12345678901234567890"
REPEATED = {
    "escaped": whole(KEY.replace("/", r"\/").encode(), "401 Unauthorized"),
    "in a URL": whole(KEY.replace("/", "%2f").encode(), "400 Bad Request"),
    "at the cut": whole(b"x" * 1985 + KEY.encode(), "400 Bad Request"),
    "cut by the server": whole(KEY[:14].encode(), "400 Bad Request"),
    "in the status line": b"HTTP/1.1 2x0 " + b"y" * 55 + KEY.encode() + b"\r\n\r\n",
    "in an event": stream(content("x"), json.dumps({"error": {"message": "z" * 1980 + KEY}})),
    "in the model": stream(content("x"), json.dumps({"model": f"m-{KEY}"}), usage("2")),
    "in the text": stream(content("you sent sk-SEC"), content(KEY[6:]), usage("2")),
}


@pytest.mark.parametrize("reply", REPEATED.values(), ids=REPEATED)
def test_a_token_that_a_server_repeats_is_in_nothing_that_is_kept(reply: bytes) -> None:
    with canned(lambda *_: reply) as url:
        found = measure(
            Target(url, token=lambda: KEY),
            warm(1),
            staged(2, 1),
            variant="v",
            concurrency=1,
            settings=CellSettings(
                max_output_tokens=64, requests=2, rounds=1, warmup_requests=1, request_timeout_s=30, max_failure_rate=1
            ),
            processes=1,
        )
    kept = found.model_dump_json()
    assert KEY[:12] not in kept
    assert "[token]" in kept


class Supplier:
    """Keeps a token until it hears that it was refused, as `TokenSupplier` does."""

    def __init__(self, server: TruthServer, *, works: bool = True) -> None:
        self._server, self._works = server, works
        self.given: list[str] = []

    def __call__(self) -> str:
        if not self.given:
            self.given.append(self._server.token())
        return self.given[-1]

    def refused(self, token: str) -> None:
        if token == self.given[-1]:
            self.given.append(self._server.token() if self._works else "tok-of-another-server")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_token_that_is_revoked_costs_the_requests_that_carried_it_and_no_other(processes: int) -> None:
    with TruthServer("token:3600", "revoke:10", tokens=20, first_ms=40, token_ms=2, only=MARK) as server:
        supplier = Supplier(server)
        found = cell(server, concurrency=2, count=40, token=supplier, processes=processes)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == oracle.counts(journal)
    assert len(journal) == found.counts.requested == 40, "a refused request was sent again"
    failed = [record for record in found.requests if record.error]
    assert {(r.error.kind, r.error.status) for r in failed if r.error} == {("authentication", 401)}
    assert 1 <= len(failed) <= 4
    assert len(supplier.given) == 2
    (said,) = [text for text in found.warnings if text.startswith("token_renewed:")]
    assert f"{len(failed)} request" in said
    assert not any(token in found.model_dump_json() for token in supplier.given)


def test_a_new_token_that_is_refused_too_is_the_last_one() -> None:
    with TruthServer("token:3600", "revoke:4", tokens=8, first_ms=1, token_ms=0.2, only=MARK) as server:
        supplier = Supplier(server, works=False)
        found = cell(server, concurrency=2, count=24, token=supplier)
        journal = server.journal(MARK)
    assert found.counts.model_dump() == oracle.counts(journal)
    assert found.counts.completed == 4
    assert len(supplier.given) == 2


@pytest.mark.parametrize("nothing", ["", "  ", None, "a\r\nX-Evil: 1"])
def test_what_is_no_token_is_never_sent(nothing: str | None) -> None:
    with TruthServer(tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server, token=lambda: nothing)
        journal = server.journal()
    assert journal == []
    assert found.metrics is None
    assert found.failure is not None
    assert found.failure.kind == "authentication"
    assert "No access token" in found.failure.message


def test_why_there_is_no_token_is_said() -> None:
    def supplier() -> str:
        raise ServiceError("the metadata server did not answer.", kind="authentication")

    with TruthServer(tokens=8, first_ms=1, token_ms=0.2) as server:
        found = cell(server, token=supplier)
        journal = server.journal()
    assert journal == []
    assert found.counts.failed == found.counts.requested == 24
    assert found.failure is not None
    assert "the metadata server did not answer" in found.failure.message


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A tokenizer of whole words: the truth server's tokens are its tokens."""
    vocabulary = {"[UNK]": 0} | {f"w{i}": i + 1 for i in range(100)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    settings = {"version": "1.0", "model": model, "pre_tokenizer": {"type": "WhitespaceSplit"}, "added_tokens": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    return tmp_path


@pytest.mark.parametrize("k", [1, 3])
def test_the_tokenizer_counts_where_the_server_sends_no_usage(tokenizer: Path, k: int) -> None:
    with TruthServer("usage-never", tokens=30, tokens_per_chunk=k, first_ms=5, token_ms=1) as server:
        found = cell(server, tokenizer=tokenizer)
        journal = server.journal(MARK)
    assert found.token_source == "tokenizer"
    assert [r.output_tokens for r in found.requests] == [entry["tokens"] for entry in journal]
    assert {r.first_chunk_tokens for r in found.requests} == {k}


def counts_with(url: str, tokenizer: Path | None) -> CellResult:
    return cell_of(Target(url), tokenizer)


def cell_of(target: Target, tokenizer: Path | None = None) -> CellResult:
    return measure(
        target,
        warm(1),
        staged(8, 1),
        variant="v",
        concurrency=1,
        settings=CellSettings(max_output_tokens=64, requests=8, rounds=1, warmup_requests=1, request_timeout_s=30),
        tokenizer=tokenizer,
        processes=1,
    )


ANSWER = [content("w1 "), content("w2 w3")]


def test_who_counted_is_said_by_the_measured_answers_not_by_the_probes(tokenizer: Path) -> None:
    """The probe gets usage, the measured requests do not."""
    plain, counted = stream(*ANSWER), stream(*ANSWER, usage("3"))
    with canned(lambda _, body: plain if MARK.encode() in body else counted) as url:
        found = counts_with(url, tokenizer)
    assert found.capabilities is not None
    assert found.capabilities.usage_in_stream
    assert found.token_source == "tokenizer"
    assert {record.output_tokens for record in found.requests} == {3}


def test_tokens_that_were_counted_in_two_ways_are_named(tokenizer: Path) -> None:
    plain, counted = stream(*ANSWER), stream(*ANSWER, usage("3"))
    with canned(lambda _, body: plain if b"[measured 5]" in body else counted) as url:
        found = counts_with(url, tokenizer)
    assert found.token_source == "mixed"
    assert any(text.startswith("mixed_counts: the tokens of 1 of 8 answers") for text in found.warnings)


def test_the_servers_own_count_goes_before_the_tokenizers(tokenizer: Path) -> None:
    with TruthServer(tokens=30, first_ms=5, token_ms=1) as server:
        found = cell(server, tokenizer=tokenizer)
    assert found.token_source == "usage"


def test_tokens_that_nobody_counts_are_refused_before_anything_is_measured() -> None:
    with TruthServer("usage-never", tokens=30, first_ms=5, token_ms=1) as server:
        with pytest.raises(InputError, match="no usage"):
            cell(server)
        assert server.journal(MARK) == []


@pytest.mark.parametrize("mode", [("spec",), ("spec", "token:60")])
def test_acceptance_comes_from_the_engines_metrics_of_this_cell_alone(mode: tuple[str, ...]) -> None:
    with TruthServer(*mode, tokens=30, tokens_per_chunk=3, first_ms=5, token_ms=1) as server:
        found = cell(server, token=server.token, metrics_url=server.root + "/metrics")
    assert found.capabilities is not None
    assert found.capabilities.metrics
    assert found.acceptance is not None
    assert found.acceptance.source == "metrics"
    assert found.acceptance.length == 3.0
    assert found.acceptance.drafts == 24 * 10


NOT_THERE = whole(b"", "404 Not Found")


def test_a_variant_at_a_url_is_asked_for_its_metrics_as_bench_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variant's key, which goes to the same host alone."""
    with TruthServer("spec", "token:60", tokens=30, tokens_per_chunk=3, first_ms=5, token_ms=1) as server:
        monkeypatch.setattr("eagle_bench.adapters.vertex_traffic.read_secret", lambda _: server.token())
        spec = VariantSpec(id="v", url=server.url, api_key_secret="projects/p/secrets/key/versions/1")
        target = target_of(spec, endpoint=None)
        assert target.metrics_url == named(server.url, None).metrics_url == server.root + "/metrics"
        found = cell(server, token=target.token, metrics_url=target.metrics_url)
    assert found.capabilities is not None
    assert found.capabilities.metrics
    assert found.acceptance is not None
    assert (found.acceptance.source, found.acceptance.length) == ("metrics", 3.0)


def test_a_server_without_metrics_costs_the_exact_acceptance_and_no_warning() -> None:
    asked: list[str] = []

    def reply(path: str, _: bytes) -> bytes:
        asked.append(path)
        return stream(content("yes"), content(" no"), usage("5")) if path.endswith("/completions") else NOT_THERE

    with canned(reply) as url:
        found = cell_of(target_of(VariantSpec(id="v", url=url), endpoint=None))
    assert "/metrics" in asked
    assert found.capabilities is not None
    assert not found.capabilities.metrics
    assert found.acceptance is not None
    assert found.acceptance.source == "chunks"
    assert not any("metrics" in text for text in found.warnings)
