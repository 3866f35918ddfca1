"""A running workbench, and a browser, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, Page, program
from tests.support.page_checks import READY, complaints
from tests.support.workbench import Bench, started

MISSING = "Chromium is not installed (Debian: apt-get install chromium)"


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with started() as found:
        yield found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip(MISSING)
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def page(browser: Browser, bench: Bench) -> Iterator[Page]:
    """A tab with the workbench in it, in which nothing may be complained about."""
    browser.events.clear()
    found = browser.page(bench.address)
    found.wait(READY)
    yield found
    assert complaints(found) == []
    found.send("Page.close")
