"""The report in a real browser: offline and without scripts, on a phone, in the dark, for a screen reader."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chromium import Page, browser

GOLDEN = Path(__file__).parent.parent / "golden" / "report"
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
A4_PX = 703  # the width of a page within margins of 12 mm
PAGES = sorted(GOLDEN.glob("*.html"))


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


def test_there_are_pages() -> None:
    assert len(PAGES) == 5


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_it_is_complete_offline_without_scripts(page: Page, file: Path) -> None:
    page.open(file, scripts=False)
    assert page.requests() == [file.as_uri()]
    assert page.complaints() == []
    assert page.size()[1] > 900


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_nothing_overflows(page: Page, file: Path, width: int) -> None:
    page.open(file, width=width, height=800, scripts=False)
    assert page.size()[0] <= width


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_nothing_is_cut_in_print(page: Page, file: Path) -> None:
    page.open(file, width=A4_PX, height=1000)
    page.call("Emulation.setEmulatedMedia", media="print")
    wider = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60))"
    try:
        assert page.evaluate(wider) == []
    finally:
        page.call("Emulation.setEmulatedMedia", media="")


def test_a_phone_shows_the_verdicts_with_their_numbers(page: Page) -> None:
    page.open(GOLDEN / "six_levels_three_variants.html", width=390, height=800)
    ends = page.evaluate(
        "[...document.querySelectorAll('#levels tbody tr')].map(row => row.cells[3].getBoundingClientRect().right)"
    )
    assert len(ends) == 12
    assert max(ends) <= 390
    assert page.evaluate("document.querySelector('#levels caption span').getBoundingClientRect().right") <= 390


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_axe_finds_nothing(page: Page, file: Path, dark: bool) -> None:
    assert AXE.is_file(), "the accessibility checker is missing: `npm ci --prefix tests/browser`"
    page.open(file, dark=dark)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 120))]))"
    )
    assert found == []


def test_the_answer_and_its_picture_are_on_the_first_screen(page: Page) -> None:
    page.open(GOLDEN / "six_levels_three_variants.html", width=1280, height=900)
    bottoms = page.evaluate(
        "[...document.querySelectorAll('h1, .first figure, .facts')].slice(0, 3).map(e => e.getBoundingClientRect().bottom)"
    )
    assert max(bottoms) <= 900


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_take_the_colours_of_the_page(page: Page, dark: bool) -> None:
    """Text of a chart has the colour of the page's text, in light and in dark."""
    page.open(GOLDEN / "one_level.html", dark=dark)
    colours = page.evaluate(
        "[getComputedStyle(document.querySelector('svg text')).fill, getComputedStyle(document.body).color]"
    )
    assert colours[0] == colours[1]


def test_tables_can_be_scrolled_by_keyboard(page: Page) -> None:
    page.open(GOLDEN / "six_levels_three_variants.html", width=360, height=800)
    inside = page.evaluate(
        "[...document.querySelectorAll('table')].every(t => t.closest('.scroll[tabindex=\"0\"]'))"
        " && [...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)"
    )
    assert inside is True


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_an_edge_beyond_which_there_is_more_lies_in_a_shade(page: Page, dark: bool) -> None:
    def edge(side: str) -> str:
        """A strip of the caption's height at an edge of the settings, in which nothing is written."""
        script = "(r => [r.left, r.right, r.top + scrollY])(document.querySelector('[aria-labelledby=t-settings]').getBoundingClientRect())"
        left, right, top = page.evaluate(script)
        clip = {"x": left + 2 if side == "left" else right - 6, "y": top + 14, "width": 4, "height": 12, "scale": 1}
        return str(page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"])

    page.open(GOLDEN / "six_levels_three_variants.html", width=390, height=800, dark=dark, scripts=False)
    at_first = {side: edge(side) for side in ("left", "right")}
    page.evaluate("document.querySelector('[aria-labelledby=t-settings]').scrollLeft = 9999")
    at_the_end = {side: edge(side) for side in ("left", "right")}
    assert at_first["left"] != at_first["right"]
    assert at_the_end["left"] != at_the_end["right"]
    assert at_first["left"] != at_the_end["left"]
    assert at_first["right"] != at_the_end["right"]


def test_scripts_in_texts_do_not_run(page: Page) -> None:
    page.open(GOLDEN / "hostile.html")
    page.evaluate("window.alert = () => { window.ran = true }")
    assert page.evaluate("document.images.length + document.scripts.length") == 0
    assert not any(event["method"] == "Page.javascriptDialogOpening" for event in page.events)
