"""Programs that a fuzzer once found wrong, replayed; those of `tests/regressions` that are still open say why."""

from __future__ import annotations

import pytest

from tests.support.fuzzers import FUZZERS
from tests.support.fuzzing import Regression, regressions


def marked(known: Regression) -> object:
    """A regression as a parameter of the test."""
    marks = [pytest.mark.xfail(strict=True, reason=known.open)] if known.open else []
    return pytest.param(known, id=known.name, marks=marks)


@pytest.mark.parametrize("known", [marked(known) for known in regressions()])
@pytest.mark.wide_rows("arrays-large_036b6f13")
def test_what_was_wrong_once(known: Regression) -> None:
    fuzzer = FUZZERS[known.fuzzer]
    fuzzer.check(fuzzer.read(known.text))
