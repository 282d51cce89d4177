"""Ids and labels: always valid, never the same for two."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from eagle_bench.adapters.vertex_names import endpoint_id, label_value, labels

ANY = st.text(max_size=140)
RUN = st.from_regex(r"[a-z][a-z0-9-]{0,127}", fullmatch=True)
VARIANT = st.from_regex(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)


@given(ANY, ANY)
def test_an_id_is_one_that_vertex_takes(run, variant):
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])", endpoint_id(run, variant))


@given(RUN, VARIANT)
def test_an_id_depends_on_nothing_else(run, variant):
    assert endpoint_id(run, variant) == endpoint_id(run, variant)


@given(st.lists(st.tuples(ANY, ANY), unique=True, min_size=2, max_size=20))
def test_no_two_variants_share_an_id(pairs):
    assert len({endpoint_id(*pair) for pair in pairs}) == len(pairs)


def test_cut_and_joined_ids_still_differ():
    long = "r" * 128
    ids = [endpoint_id(long, "v1"), endpoint_id(long, "v2"), endpoint_id("a-b", "c"), endpoint_id("a", "b-c")]
    assert len(set(ids)) == 4


def test_an_id_can_be_read_and_stays_what_it_was():
    # Runs of earlier versions are cleaned up by these ids: a change here strands what they left.
    assert endpoint_id("eagle-benchmark-20260102030405", "eagle3") == (
        "eb-eagle-benchmark-20260102030405-eagle3-b2f03fb5e64424"
    )


@given(ANY)
def test_a_label_is_one_that_vertex_takes(text):
    assert re.fullmatch(r"[a-z0-9_-]{0,63}", label_value(text))


def test_labels_name_run_and_variant():
    assert labels("run-1", "base") == {"eagle-bench-run": "run-1", "eagle-bench-variant": "base"}
    assert label_value("x" * 64) != label_value("x" * 65)
