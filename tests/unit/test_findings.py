"""What is said of several levels is said once, and no number of any level is lost for it."""

from __future__ import annotations

import pytest

from eagle_bench.analysis import compare
from eagle_bench.comparison import Plan
from eagle_bench.report import html, markdown
from eagle_bench.report.findings import Finding, grouped, together
from eagle_bench.results import CellResult
from simulated_cells import cell


def at(*texts: str, kind: str = "k", variant: str | None = "eagle3") -> list[Finding]:
    return [Finding(kind, variant, level, text) for level, text in zip((1, 2, 4), texts, strict=False)]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("it broke.", "it broke.", "it broke."), [("eagle3 at concurrency 1, 2 and 4", "it broke.")]),
        (("it broke.",), [("eagle3 at concurrency 1", "it broke.")]),
        (
            ("9 of 50 requests failed (18 %).", "10 of 50 requests failed (20 %).", "9 of 50 requests failed (18 %)."),
            [("eagle3 at concurrency 1, 2 and 4", "9, 10 and 9 of 50 requests failed (18, 20 and 18 %).")],
        ),
        (("1\u202f200 tokens", "900 tokens"), [("eagle3 at concurrency 1 and 2", "1\u202f200 and 900 tokens")]),
        (
            ("lost v1-a", "lost v2-a", "lost v1-a"),  # names are no numbers
            [("eagle3 at concurrency 1 and 4", "lost v1-a"), ("eagle3 at concurrency 2", "lost v2-a")],
        ),
    ],
)
def test_levels_with_one_finding_are_one(texts: tuple[str, ...], said: list[tuple[str, str]]) -> None:
    assert together(at(*texts)) == said


def test_what_is_not_of_one_kind_variant_or_place_stays_apart() -> None:
    apart = [*at("it broke."), *at("it broke.", kind="other"), *at("it broke.", variant="ngram")]
    everywhere = [Finding("k", None, None, "3 rounds."), Finding("k", None, None, "4 rounds.")]
    assert together([*apart, *everywhere]) == [
        ("eagle3 at concurrency 1", "it broke."),
        ("eagle3 at concurrency 1", "it broke."),
        ("ngram at concurrency 1", "it broke."),
        ("", "3 rounds."),
        ("", "4 rounds."),
    ]


def test_report_and_summary_say_a_warning_of_all_levels_once() -> None:
    plan = Plan(baseline="baseline", variants=("baseline", "eagle3"), levels=(1, 2, 4))
    answer = compare(plan, [CellResult.model_validate(cell("baseline", level)) for level in plan.levels], resamples=200)
    assert [warning.concurrency for warning in answer.warnings if warning.code == "missing_cell"] == [1, 2, 4]
    where, text = "eagle3 at concurrency 1, 2 and 4", "was planned and did not come in"
    assert [(place, text in said) for place, said in grouped(answer)].count((where, True)) == 1
    assert markdown.render(answer).partition("## What to check")[2].count(text) == 1
    page = html.render(answer)
    assert page.partition('id="check"')[2].count(text) == 1
    assert f"<strong>{where}</strong>" in page
