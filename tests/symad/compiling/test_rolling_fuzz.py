"""Some of the random functions of tests/support/rolling_fuzz.py, always the same."""

from __future__ import annotations

import pytest

from tests.support.draws import seeded
from tests.support.rolling_fuzz import check, make


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_functions(first):
    found = [check(make(seeded(seed))) for seed in range(first, first + 10)]
    assert found.count("as loops") >= 4


def test_random_functions_as_kernels():
    assert [check(make(seeded(seed)), native=True) for seed in (2, 5, 7)] == ["as loops"] * 3
