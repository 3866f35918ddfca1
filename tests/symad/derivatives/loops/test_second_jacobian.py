"""Jacobians of rolled programs against those of the same programs in straight lines."""

import numpy as np
import pytest

from symad.derivatives.loops.loop_jacobian import jacobian
from tests.support.second_cases import MAPS, SCALARS, flat_jacobian, numbers_of, points_of

CASES = SCALARS | MAPS


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_formats(name):
    rolled = CASES[name]()
    points = points_of(rolled)
    right = flat_jacobian(rolled, 0, points)
    for format in ("regions", "coo", "csr", "csc"):
        found = jacobian(rolled, 0, True, format)
        pattern = found.outputs[0].pattern
        places = list(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))
        assert (pattern.format, set(places)) == (format, set(right))
        assert pattern.shape == (sum(output.size for output in rolled.outputs), rolled.inputs[0].size)
        (data,) = numbers_of(found, points)
        np.testing.assert_allclose(data, [right[place] for place in places], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_dense(name):
    rolled = CASES[name]()
    points = points_of(rolled)
    found = jacobian(rolled, 0, False)
    matrix = np.zeros((sum(output.size for output in rolled.outputs), rolled.inputs[0].size))
    for place, value in flat_jacobian(rolled, 0, points).items():
        matrix[place] = value
    data = numbers_of(found, points)
    assert [array.shape for array in data] == [output.shape + rolled.inputs[0].shape for output in rolled.outputs]
    joined = np.concatenate([array.reshape(-1, rolled.inputs[0].size) for array in data])
    np.testing.assert_allclose(joined, matrix, rtol=1e-11, atol=1e-12)
