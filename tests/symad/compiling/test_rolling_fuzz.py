"""Some of the random functions of tests/support/rolling_fuzz.py, always the same."""

from __future__ import annotations

import numpy as np
import pytest

import codegen.loops.find.chains
import codegen.loops.find.cover
import codegen.loops.roll
from tests.support.rolling_fuzz import check


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Loops are taken where they are not worth it, too."""
    monkeypatch.setattr(codegen.loops.roll, "FEWEST_ROWS", 0)
    monkeypatch.setattr(codegen.loops.find.cover, "OPERATIONS", 12)
    monkeypatch.setattr(codegen.loops.find.chains, "LEAST_OPERATIONS", 12)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_functions(first):
    with np.errstate(all="ignore"):
        found = [check(seed) for seed in range(first, first + 10)]
    assert sum(map(bool, found)) >= 4


def test_random_functions_as_kernels():
    with np.errstate(all="ignore"):
        assert sum(check(seed, native=True) for seed in (2, 5, 7)) >= 3
