"""The documentation's site in a real browser: on a phone, in the dark, with nobody asked for anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chromium import Page, browser

SITE = Path(__file__).parents[2] / "site"
PAGES = ["index.html", "vertex-ai.html", "troubleshooting.html", "reference/config.html", "reference/results.html"]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_a_phone_and_asks_nobody(page: Page, name: str) -> None:
    file = SITE / name
    assert file.is_file(), "the site is not built: `make docs`"
    page.open(file, width=360, height=800, dark=True)
    assert page.size()[0] <= 360
    assert [address for address in page.requests() if not address.startswith(("file:", "data:"))] == []
    assert page.complaints() == []


def test_a_table_of_two_columns_can_be_read_on_a_phone(page: Page) -> None:
    page.open(SITE / "troubleshooting.html", width=390, height=800)
    widths = page.evaluate("[...document.querySelectorAll('td:nth-child(2):last-child')].map(c => c.clientWidth)")
    assert widths
    assert min(widths) >= 150


def test_measured_tables_are_whole_on_a_desk(page: Page) -> None:
    page.open(SITE / "clients.html", width=1280, height=800)
    beyond = page.evaluate(
        "[...document.querySelectorAll('.md-typeset__scrollwrap')].map(w => w.scrollWidth - w.clientWidth)"
    )
    assert beyond
    assert max(beyond) <= 0


def test_from_a_folder_there_is_no_search_that_finds_nothing(page: Page) -> None:
    page.open(SITE / "index.html", width=390, height=800)
    shown = page.evaluate("[...document.querySelectorAll('label[for=__search]')].map(l => getComputedStyle(l).display)")
    assert set(shown) == {"none"}
