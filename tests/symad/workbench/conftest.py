"""A running workbench, and a browser, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, program
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
