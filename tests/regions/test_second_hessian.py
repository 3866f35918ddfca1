"""Hessians of rolled programs against those of the same programs in straight lines."""

import numpy as np
import pytest

from symad.regions.hessian import hessian
from tests.regions.second_cases import SCALARS, flat_hessian, numbers_of, points_of


def places_of(pattern):
    return list(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))


def triangle_of(lower, triangle):
    upper = {(column, row): value for (row, column), value in lower.items()}
    return {"lower": lower, "upper": upper, "full": lower | upper}[triangle]


@pytest.mark.parametrize("name", SCALARS)
def test_triangles_and_formats(name):
    rolled = SCALARS[name]()
    points = points_of(rolled)
    lower = flat_hessian(rolled, 0, points)
    for triangle in ("lower", "upper", "full"):
        right = triangle_of(lower, triangle)
        for format in ("regions", "coo", "csr", "csc"):
            found = hessian(rolled, 0, triangle, format)
            pattern = found.outputs[0].pattern
            assert (pattern.format, set(places_of(pattern))) == (format, set(right))
            (data,) = numbers_of(found, points)
            wanted = [right[place] for place in places_of(pattern)]
            np.testing.assert_allclose(data, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", SCALARS)
def test_dense(name):
    rolled = SCALARS[name]()
    points = points_of(rolled)
    found = hessian(rolled, 0, None)
    shape = rolled.inputs[0].shape
    assert found.outputs[0].shape == shape + shape
    matrix = np.zeros((rolled.inputs[0].size,) * 2)
    for (row, column), value in flat_hessian(rolled, 0, points).items():
        matrix[row, column] = matrix[column, row] = value
    (data,) = numbers_of(found, points)
    np.testing.assert_allclose(data, matrix.reshape(shape + shape), rtol=1e-11, atol=1e-12)
