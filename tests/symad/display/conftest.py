"""The browser of the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, program


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found
