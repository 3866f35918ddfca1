"""Verification where exact arithmetic gives NaN: nothing is compared there, and that is said."""

import math

import numpy as np

import symad as sa


def test_nan_that_is_right_is_no_error_of_0():
    kernel = sa.compile(lambda x: [np.sin(x) / x, x + 1], 1.0)
    found = sa.verify(kernel, 0.0)
    assert (found.undefined, found.worst_index) == (1, 1)
    assert found.worst_ulp == 0.0
    assert "1 of the results are NaN in exact arithmetic too" in found.statement
    found = sa.verify(sa.compile(lambda x: np.sin(x) / x, 1.0), 0.0)
    assert math.isnan(found.worst_ulp)
    assert "1 entry: no error could be told; the results are NaN in exact arithmetic too" in found.statement
