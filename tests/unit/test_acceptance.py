"""Acceptance from its three sources, on golden pages and on known numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagle_bench.acceptance import decoded, from_chunks, from_pages, from_responses, read_page
from eagle_bench.results import RequestError, RequestRecord

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
BEFORE = (GOLDEN / "vllm-0.33.0-before.txt").read_text()
AFTER = (GOLDEN / "vllm-0.33.0-after.txt").read_text()
SGLANG = (GOLDEN / "sglang-0.5.txt").read_text()


def test_vllms_counters_are_summed_over_engines_and_taken_from_before_to_after() -> None:
    found = from_pages(read_page(BEFORE), read_page(AFTER))
    assert found is not None
    assert (found.drafts, found.drafted_tokens, found.accepted_tokens) == (200, 600, 240)
    assert found.length == pytest.approx(1 + 240 / 200)
    assert found.by_position == pytest.approx((140 / 200, 65 / 200, 35 / 200))
    assert found.source == "metrics"


def test_steps_without_a_draft_are_steps_too() -> None:
    """N-gram speculation drafts only where it finds something to copy: 1 + accepted / drafts would flatter it."""
    answers = [RequestRecord(prompt_id="p", round=0, start_s=0, output_tokens=1 + 100) for _ in range(10)]
    found = from_pages(read_page(BEFORE), read_page(AFTER), decoded(answers))
    assert found is not None
    assert (found.steps, found.drafts) == (1000 - 240, 200)
    assert found.length == pytest.approx(1000 / 760)
    assert found.length_of_drafted == pytest.approx(1 + 240 / 200)


def test_an_engine_never_makes_fewer_steps_than_it_has_drafts() -> None:
    found = from_pages(read_page(BEFORE), read_page(AFTER), 430)
    assert found is not None
    assert (found.steps, found.length) == (200, pytest.approx(1 + 240 / 200))


def test_tokens_that_are_not_all_known_count_no_steps() -> None:
    whole = RequestRecord(prompt_id="p", round=0, start_s=0, output_tokens=5)
    failed = whole.model_copy(update={"error": RequestError(kind="overload")})
    assert decoded([whole]) == 4
    assert decoded([whole, failed]) is None
    assert decoded([whole.model_copy(update={"output_tokens": None})]) is None


def test_an_engine_that_drafted_nothing_has_no_acceptance_length() -> None:
    assert from_pages(read_page(AFTER), read_page(AFTER)) is None
    assert from_pages(read_page(""), read_page("vllm:num_requests_running 1.0\n")) is None


def test_an_engine_that_was_restarted_in_between_is_not_measured_backwards() -> None:
    assert from_pages(read_page(AFTER), read_page(BEFORE)) is None


@pytest.mark.parametrize("value", ["+Inf", "1.7e308"])
def test_what_is_no_count_gives_no_acceptance(value: str) -> None:
    name = "vllm:spec_decode_num_accepted_tokens_total"
    odd = read_page(AFTER + f'{name}{{engine="8"}} {value}\n{name}{{engine="9"}} {value}\n')
    assert (odd.uncountable, odd.missing) == ((name,), ())
    assert from_pages(read_page(BEFORE), odd) is None
    assert from_pages(odd, read_page(AFTER)) is None


def test_sglangs_gauge_is_taken_as_it_is() -> None:
    found = from_pages(read_page(SGLANG), read_page(SGLANG))
    assert found is not None
    assert found.length == 2.75
    assert found.drafts is None
    assert from_pages(read_page(""), read_page('sglang:spec_accept_length{tp_rank="0"} 0.0')) is None


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (
            AFTER.replace("num_accepted_tokens_total", "num_taken_tokens_total"),
            "vllm:spec_decode_num_accepted_tokens_total",
        ),
        (AFTER.replace("num_drafts_total", "num_rounds_total"), "vllm:spec_decode_num_drafts_total"),
        (SGLANG.replace("spec_accept_length", "spec_mean_length"), "sglang:spec_accept_length"),
    ],
)
def test_a_name_that_vanished_is_named_and_no_zero(page: str, name: str) -> None:
    assert read_page(page).missing == (name,)
    assert from_pages(read_page(BEFORE), read_page(page)) is None


def test_whole_pages_miss_nothing_and_an_engine_without_speculation_need_not_have_the_names() -> None:
    assert read_page(AFTER).missing == ()
    assert read_page(SGLANG).missing == ()
    assert read_page("vllm:num_requests_running 1.0\n").missing == ()


def test_lines_that_are_no_samples_are_passed_over() -> None:
    assert (
        read_page("# HELP x\nvllm:spec_decode_num_drafts_total\n<html>\nvllm:spec_decode_num_drafts_total x\n").totals
        == {}
    )


def test_vllms_responses_are_added_up() -> None:
    first = {
        "num_spec_steps": 10,
        "num_accepted_draft_tokens": 15,
        "num_draft_tokens": 30,
        "acceptance_histogram": [2, 3, 3, 2],
    }
    second = {
        "num_spec_steps": 10,
        "num_accepted_draft_tokens": 5,
        "num_draft_tokens": 30,
        "acceptance_histogram": [6, 3, 1, 0],
    }
    found = from_responses([first, second])
    assert found is not None
    assert found.length == 2.0
    assert found.source == "response"
    assert (found.drafts, found.drafted_tokens, found.accepted_tokens) == (20, 60, 20)
    assert found.by_position == pytest.approx((12 / 20, 6 / 20, 2 / 20))


def test_sglangs_responses_are_added_up() -> None:
    found = from_responses(
        [{"spec_verify_ct": 20, "completion_tokens": 50}, {"spec_verify_ct": 20, "spec_accept_token_num": 10}]
    )
    assert found is not None
    assert found.length == 2.0
    assert found.drafted_tokens is None


@pytest.mark.parametrize("report", [{}, {"num_spec_steps": 0, "num_accepted_draft_tokens": 0}, {"queue_time_ms": 3.0}])
def test_responses_without_steps_say_nothing(report: dict[str, object]) -> None:
    assert from_responses([report]) is None


def chunked(tokens: int | None, chunks: int, **more: object) -> RequestRecord:
    return RequestRecord.model_validate(
        {"prompt_id": "p", "round": 0, "start_s": 0.0, "output_tokens": tokens, "chunks": chunks, **more}
    )


def test_chunks_are_a_proxy_that_leaves_the_first_one_out() -> None:
    found = from_chunks([chunked(31, 11), chunked(61, 21)])
    assert found is not None
    assert found.length == 3.0
    assert found.source == "chunks"
    bundled = from_chunks([chunked(33, 11, first_chunk_tokens=3)])
    assert bundled is not None
    assert bundled.length == 3.0


def test_chunks_that_say_nothing_are_none() -> None:
    assert from_chunks([chunked(None, 5), chunked(1, 1), chunked(9, 3, error={"kind": "empty"})]) is None
