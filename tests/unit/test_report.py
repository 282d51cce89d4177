"""The report: golden pages, the same bytes for the same comparison, nothing from outside acts, the text forms."""

from __future__ import annotations

import io
import json
import os
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

import golden_file
from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, Plan, Warning
from eagle_bench.report import cell, charts, html, markdown, scalars, setup_tables, tables, terminal
from eagle_bench.report.tables import measured
from eagle_bench.results import CellResult
from reports import CASES, HOSTILE, hostile, one_level, six_levels_three_variants, variant_failed
from simulated_cells import BASELINE, EAGLE, Engine
from simulated_cells import cell as simulated

GOLDEN = Path(__file__).parent.parent / "golden" / "report"
VOID = {"meta", "br", "img", "link", "hr", "input", "use", "path"}


def saved(name: str) -> Comparison:
    """A case's comparison as it was saved: the page is a function of this file and of nothing else."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CASES[name]().model_dump_json(), encoding="utf-8")
    return Comparison.model_validate_json(path.read_text(encoding="utf-8"))


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["html", "md"])
@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, kind: str) -> None:
    page = {"html": html.render, "md": markdown.render}[kind](saved(name))
    golden_file.check(f"report/{name}.{kind}", page)


@pytest.mark.parametrize("name", CASES)
def test_saved_comparisons_are_what_is_made_today(name: str) -> None:
    """The numbers to what another processor's arithmetic may change; the texts and the structure exactly."""
    today, then = (json.loads(c.model_dump_json()) for c in (CASES[name](), saved(name)))
    for (path, new), (other, old) in zip(flat(today), flat(then), strict=True):
        assert path == other
        assert new == (pytest.approx(old, rel=1e-3, abs=1e-9) if isinstance(old, float) else old), path


def flat(value: object, path: str = "") -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in flat(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [pair for key, inner in enumerate(value) for pair in flat(inner, f"{path}[{key}]")]
    return [(path, value)]


class Page(HTMLParser):
    """Tags, attributes and text of a page, and whether its tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def named(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.mark.parametrize("name", CASES)
def test_a_page_is_whole_and_asks_for_nothing(name: str) -> None:
    page = html.render(saved(name))
    parsed = Page(page)
    assert parsed.open == []
    assert not parsed.named("script", "img", "iframe", "link", "object", "embed", "base", "form", "video", "audio")
    assert (
        "http://" not in page
        and "https://" not in page
        and "//" not in re.sub(r"/\*.*?\*/", "", page).replace("</", "")
    )
    assert "@import" not in page and "xmlns" not in page
    for _, attributes in parsed.tags:
        assert not any(key.startswith("on") for key in attributes)
        assert all(
            value is None or value.startswith("#") for key, value in attributes.items() if key in ("href", "src")
        )
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in parsed.tags:
        if (href := attributes.get("href")) is not None:
            assert href[1:] in ids


@pytest.mark.parametrize("name", CASES)
def test_headings_tables_and_pictures_say_what_they_are(name: str) -> None:
    parsed = Page(html.render(saved(name)))
    order = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch("h[1-6]", tag)]
    assert order[0] == 1 and order.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(order))
    assert len(parsed.named("table")) == len(parsed.named("caption")) > 0
    assert all(head.get("scope") in ("col", "row") for head in parsed.named("th"))
    assert all(
        svg["role"] == "img" and svg["aria-labelledby"] and svg["aria-describedby"] for svg in parsed.named("svg")
    )


def test_pages_are_small_and_the_same_bytes_each_time() -> None:
    comparison = saved("six_levels_three_variants")
    page = html.render(comparison)
    assert len(page.encode()) < 1_000_000
    assert html.render(Comparison.model_validate_json(comparison.model_dump_json())) == page


def test_the_first_screen_answers() -> None:
    page = html.render(saved("six_levels_three_variants"))
    first = page[: page.index("<nav")]
    assert re.search(r"<h1>Turn on eagle3 (up to|at) concurrency \d+\.</h1>", first)
    assert 'id="speedup-title"' in first
    assert "EAGLE-3, 3 steps (eagle3)" in first


def test_all_four_charts_of_the_field_and_the_frontier_are_there() -> None:
    page = html.render(saved("six_levels_three_variants"))
    for name in (
        "tpot-ms",
        "ttft-ms",
        "output-tokens-per-s",
        "requests-per-s",
        "frontier",
        "tpot-spread",
        "acceptance",
    ):
        assert f'id="{name}-title"' in page
    for section in ("levels", "measured", "cost", "answers", "settings", "method"):
        assert f'<section id="{section}"' in page


@pytest.mark.parametrize("name", ["one_level", "six_levels_three_variants"])
def test_what_lies_on_which_side_of_1_is_said_beside_the_picture_and_not_on_its_line(name: str) -> None:
    page = html.render(saved(name))
    picture = page[page.index('aria-labelledby="speedup-title"') :].partition("</svg>")[0]
    line = re.search(r"M \S+ (\S+) \nL (\S+) \1 \n[^>]*stroke: var\(--ink\); stroke-width: 1.2", picture)
    assert line
    words = dict.fromkeys(("faster →", "← slower"))
    for word in words:
        found = re.search(rf"font-size: (\d+)px[^>]*translate\((\S+) (\S+)\) rotate\(-90\)\">{word}", picture)
        assert found, word
        size, x, words[word] = map(float, found.groups())
        assert x - size > float(line[2]), "its left edge is right of where the line ends"
    assert words["faster →"] < float(line[1]) < words["← slower"]


def test_nothing_from_outside_acts_in_the_page() -> None:
    page = html.render(hostile())
    parsed = Page(page)
    assert not parsed.named("img", "script", "b")
    assert "{{ 7*7 }}" in page, "text that looks like a template stays text"
    assert "$x^2$" in page, "text that looks like a formula stays text, in charts too"
    assert HOSTILE in "".join(parsed.text)


def test_nothing_from_outside_acts_in_markdown() -> None:
    page = markdown.render(hostile())
    assert "<" not in page
    assert "</script>" not in page and "&lt;/script" in page
    for line in page.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", _head_of(page, line)))


def _head_of(page: str, line: str) -> str:
    """The head of the table in which a line stands."""
    block = next(block for block in page.split("\n\n") if line in block.splitlines())
    return block.splitlines()[0]


def test_the_tables_of_the_set_up_say_what_they_say_it_of() -> None:
    comparison = six_levels_three_variants()
    settings = setup_tables.settings(comparison)
    assert settings is not None and settings.heads == ("Setting", *comparison.variants, "Between variants")
    assert {row[0]: row[-1] for row in settings.rows}["args"] == "differs"
    given = [simulated("baseline", 1), simulated("eagle3", 1, EAGLE)]
    for one in given:
        one["environment"] = {"vllm": "0.33.0", "machine": "x"}
    cells = tuple(CellResult.model_validate(one) for one in given)
    environment = setup_tables.environment(comparison.model_copy(update={"cells": cells}))
    assert environment is not None
    assert [row[0] for row in environment.rows] == ["machine", "vllm (benchmark client, not server)"]


def test_the_page_of_a_failed_variant_says_so_first() -> None:
    page = html.render(variant_failed())
    assert "<h1>Can&#39;t tell whether eagle3 pays.</h1>" in page
    assert "no capacity: the replica is restarting" in page


def test_the_terminal_holds_the_same_facts() -> None:
    out = io.StringIO()
    comparison = six_levels_three_variants()
    terminal.print_comparison(comparison, Console(file=out, width=500))
    text = out.getvalue()
    for decision in comparison.decisions:
        assert decision.text in text
    for level in comparison.comparisons:
        tpot = level.speedup.tpot
        assert f"{tpot.estimate:.2f}× ({tpot.family_low:.2f}–{tpot.family_high:.2f})" in text


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", [*CASES, "five_variants"])
def test_tables_fit_the_terminal(name: str, width: int) -> None:
    """Columns that have no room stand below the others: no head and no number goes on in another line."""
    comparison = five_variants() if name == "five_variants" else saved(name)
    out = io.StringIO()
    terminal.print_comparison(comparison, Console(file=out, width=width))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    shown = [tables.measured(comparison), tables.verdicts(comparison)]
    shown += filter(None, [tables.costs(comparison), tables.objectives(comparison), tables.failures(comparison)])
    for table in shown:
        for column, head in enumerate(table.heads):
            if head in NOT_IN_80 or len(head) > 40:
                continue
            words = {head, *(row[column] for row in table.rows if column in table.numeric)}
            assert not [word for word in words if not any(word in line for line in lines)], (table.caption, head)


NOT_IN_80 = {"E2E", "TPOT p90", "TTFT p90", "Requests", "TTFT", "Pairs"}


def five_variants() -> Comparison:
    """Names of a good length, all requests of one variant failed, and a price and an objective: the widest tables."""
    dead = Engine(failing=1.0, error=("server-error", 503, "no capacity: the replica is restarting"))
    engines = {f"eagle3-with-{steps}-steps": EAGLE for steps in (3, 4, 5)} | {"ngram-of-five-tokens": dead}
    return compare(
        Plan(
            baseline="baseline",
            variants=("baseline", *engines),
            levels=(1, 128),
            price_per_hour=88.0,
            slo_ttft_ms=250.0,
            slo_tpot_ms=20.0,
        ),
        [
            CellResult.model_validate(simulated(variant, level, engine))
            for variant, engine in {"baseline": BASELINE, **engines}.items()
            for level in (1, 128)
        ],
        resamples=200,
    )


def test_the_terminal_shows_hostile_text_as_text() -> None:
    out = io.StringIO()
    terminal.print_comparison(hostile(), Console(file=out, width=400))
    assert HOSTILE in out.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_scalars_are_finite_and_named_alike(name: str) -> None:
    found = scalars.scalars(saved(name))
    assert all(isinstance(value, float) for value in found.values())
    json.dumps(found, allow_nan=False)
    assert found == scalars.scalars(saved(name))


def test_scalars_by_name() -> None:
    comparison = one_level()
    found = scalars.scalars(comparison)
    assert found["decision.eagle3.turn_on"] == 1.0
    assert found["decision.eagle3.up_to_concurrency"] == 4.0
    assert found["speedup.tpot.eagle3.c4"] == comparison.comparisons[0].speedup.tpot.estimate
    assert found["median_tpot_ms.baseline.c4"] == comparison.cells[0].metrics.tpot_ms.p50


def test_a_failed_cell_has_no_zero_for_what_was_not_measured() -> None:
    comparison = variant_failed()
    found = scalars.scalars(comparison)
    assert found["failed.eagle3.c1"] == 120.0
    assert not any(key.startswith(("median", "speedup", "decision")) and "eagle3" in key for key in found)
    dead = next(c for c in comparison.cells if c.variant == "eagle3")
    assert "median_tpot_ms" not in cell.scalars(dead)
    assert "0 of 120 requests completed, 120 failed." in cell.render(dead)


def test_tokens_a_chunk_are_not_shown_as_an_acceptance_length() -> None:
    comparison = saved("one_level")
    of_chunks = {"length": 1.25, "source": "chunks"}
    cells = [CellResult.model_validate({**one.model_dump(), "acceptance": of_chunks}) for one in comparison.cells]
    table = measured(comparison.model_copy(update={"cells": tuple(cells)}))
    assert {row[table.heads.index("Acceptance")] for row in table.rows} == {"≈ 1.25"}
    assert "no more than a hint" in table.caption
    assert "hint" not in measured(comparison).caption


def test_what_is_typed_is_shown_as_code_and_a_sentence_has_no_needless_escapes() -> None:
    text = "`run --slots 2` or a|b, not `<img>` nor a lone ` one"
    assert markdown.sentence(text) == r"`run --slots 2` or a|b, not \`&lt;img\>\` nor a lone \` one"
    assert html.sentence(text) == "<code>run --slots 2</code> or a|b, not <code>&lt;img&gt;</code> nor a lone ` one"
    page = html.render(saved("one_level"))
    answer = saved("one_level").model_copy(update={"warnings": (Warning(code="client", text=text),)})
    assert "<code>run --slots 2</code> or" in html.render(answer)
    assert "<code>run --slots 2</code> or" not in page


def test_labels_of_variants_at_the_same_place_do_not_cover_each_other() -> None:
    answer = saved("six_levels_three_variants")
    level = [view for view in answer.views if view.concurrency == 4 and view.output_tokens_per_s]
    place = {"user_tokens_per_s": 50.0, "output_tokens_per_s": level[0].output_tokens_per_s}
    same = tuple(view.model_copy(update=place) for view in level)
    chart = charts.frontier(answer.model_copy(update={"views": same}))
    assert chart
    places = re.findall(r"translate\(([^)]*)\)[^>]*>4</text>", chart.svg)
    places += re.findall(r'x="([^"]*" y="[^"]*)"[^>]*>4</text>', chart.svg)
    assert len(same) == len(set(places)) == 3, chart.svg
