"""Mixed partials by interpolation (Griewank, Utke, Walther): the system, its condition, the exact route beside it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.derivatives.interpolation import interpolation_matrix, multi_indices
from symad.errors import LimitError


def f(x):
    return np.exp(x[0] * x[1]) * np.sin(x[2])


POINT = np.array([0.3, -0.7, 1.1])


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_both_routes_against_sympy_at_50_digits(order):
    symbols = sp.symbols("x0:3", real=True)
    formula = sp.exp(symbols[0] * symbols[1]) * sp.sin(symbols[2])
    at = dict(zip(symbols, (sp.Float(float(v), 50) for v in POINT), strict=True))
    found = sa.partials(f, order, mode="interpolation")(POINT)
    wanted = [
        float(formula.diff(*((s, k) for s, k in zip(symbols, index, strict=True))).subs(at).evalf(50))
        for index in found.multi_indices
    ]
    largest = max(map(abs, wanted))
    assert np.max(np.abs(found.exact - wanted)) <= 1e-14 * largest
    assert np.max(np.abs(found.interpolated - wanted)) <= 1e-15 * found.condition * largest
    assert found.matrix @ wanted == pytest.approx(found.coefficients, rel=1e-11, abs=1e-11)


def test_the_condition_number_grows_and_the_error_with_it():
    """The seed's "unavoidably large": from one order to the next the system is worse, the exact route is not."""
    found = [sa.partials(f, order, mode="interpolation")(POINT) for order in (2, 5, 8, 12)]
    conditions = [result.condition for result in found]
    assert all(after > 10 * before for before, after in pairwise(conditions))
    assert conditions[-1] > 1e4
    assert found[-1].error > 100 * found[0].error
    assert found[-1].error < 1e-15 * conditions[-1]


def test_directions_are_the_multi_indices_and_the_system_is_regular():
    indices = multi_indices(3, 4)
    assert len(indices) == math.comb(6, 4)
    assert all(sum(index) == 4 for index in indices)
    assert np.linalg.matrix_rank(interpolation_matrix(indices)) == len(indices)
    assert np.array_equal(sa.partials(f, 4, mode="interpolation")(POINT).directions, indices)


def test_both_routes_compile_and_nest():
    kernel = sa.compile(
        lambda x: (lambda m: (m.interpolated, m.exact))(sa.partials(f, 3, mode="interpolation")(x)), POINT
    )
    interpolated, exact = kernel(POINT)
    found = sa.partials(f, 3, mode="interpolation")(POINT)
    assert exact == pytest.approx(found.exact, rel=1e-13)
    assert interpolated == pytest.approx(found.interpolated, rel=1e-10, abs=1e-12)
    slope = sa.jacfwd(lambda x: sa.partials(f, 2, mode="interpolation")(x).interpolated)(POINT)
    tensor = sa.partials(f, 3)(POINT)
    assert slope[1] == pytest.approx(tensor[0, 1], rel=1e-12)  # the second multi-index is (1, 1, 0)
    result = sa.compile(lambda x: sa.partials(f, 2, mode="interpolation")(x), POINT)(POINT)
    assert result.exact == pytest.approx(sa.partials(f, 2, mode="interpolation")(POINT).exact, rel=1e-13)


def test_the_speelpenning_product_at_zeros():
    found = sa.partials(np.prod, 2, mode="interpolation")(np.array([0.0, 2.0, 0.0, 3.0, 4.0]))
    exact = dict(zip(found.multi_indices, found.exact, strict=True))
    assert exact.pop((1, 0, 1, 0, 0)) == 24
    assert set(exact.values()) == {0.0}
    assert found.error < 1e-14


def test_operations_of_both_routes_are_in_the_result():
    found = sa.partials(f, 4, mode="interpolation")(POINT)
    assert 0 < found.operations["tensor"] < found.operations["interpolation"]
    assert "condition number" in repr(found)
    assert repr(sa.partials(np.prod, 3, mode="interpolation")(np.ones(1))).startswith("<MixedPartials: 1 of order 3")


def test_a_system_that_is_too_large_is_refused():
    with pytest.raises(LimitError, match="use another mode"):
        sa.partials(np.prod, 4, mode="interpolation")(np.ones(30))
