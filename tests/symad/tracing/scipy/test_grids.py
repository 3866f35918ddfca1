"""Interpolants of SciPy's whose points were set after they were made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import interp1d

import symad as sa


@pytest.mark.parametrize("kind", ["linear", "nearest", "nearest-up", "previous", "next", "cubic"])
@pytest.mark.parametrize("attribute", ["y", "x", "_y"])
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_attributes_that_are_set_count_as_they_do_for_numbers(kind: Any, attribute: str, shape: Any) -> None:
    line = interp1d(np.arange(5.0), np.random.default_rng(0).normal(size=shape), kind, 0)
    setattr(line, attribute, 1.7 * getattr(line, attribute) + 0.01)
    for x in (0.3, 2.6, 3.7):
        value, slope = sa.value_and_grad(lambda x: np.sum(line(x)))(x)
        assert np.isclose(value, np.sum(line(x)), rtol=1e-14)
        assert np.isclose(slope, np.sum(line(x + 1e-6) - line(x - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-6)
