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
