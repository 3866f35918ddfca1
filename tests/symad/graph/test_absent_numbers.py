"""Absent numbers: what is done with many at once is what their definitions say, element by element, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from codegen.evaluation.bitwise_choice import FEW, select
from codegen.evaluation.column_functions import FUNCTIONS
from symad.graph.absent_numbers import ABSENT, present_where, settled, shares, there, times

RANDOM = np.random.default_rng(11)
ODD = np.array([1.5, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, ABSENT])


def odd(*shape):
    return RANDOM.choice(ODD, size=shape)


def same(found, expected):
    assert np.shape(found) == np.shape(expected)
    one, other = np.asarray(found), np.asarray(expected)
    marked = ~there(other)
    np.testing.assert_array_equal(there(one), there(other))
    np.testing.assert_array_equal(one[~marked], other[~marked])
    np.testing.assert_array_equal(np.signbit(one[~np.isnan(one)]), np.signbit(other[~np.isnan(other)]))


@pytest.mark.parametrize("size", [8, 3 * FEW])
@pytest.mark.parametrize("shapes", [((), ()), ((), (1,)), ((1,), (1,)), ((1,), ())])
def test_select_is_where(size, shapes):
    holds = RANDOM.random(size) < 0.3
    one, other = (odd(*shape) if shape == () else odd(size) for shape in shapes)
    for values in ((one, other), (one, np.float64(0.0)), (one, -0.0)):
        found, expected = select(holds, *values), np.where(holds, *values)
        np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))


@pytest.mark.parametrize(
    "shapes", [((90, 100), (1, 1), (1, 100)), ((90, 1), (90, 100), ()), ((1, 100), (90, 1), (90, 100))]
)
def test_select_of_shapes(shapes):
    holds, one, other = (RANDOM.normal(size=shape) for shape in shapes)
    np.testing.assert_array_equal(select(holds > 0, one, other), np.where(holds > 0, one, other))
    np.testing.assert_array_equal(select(holds > 0, one > 0, other), np.where(holds > 0, one > 0, other))


@pytest.mark.parametrize("shapes", [((6000,), (6000,)), ((60, 100), (1, 100)), ((), (6000,)), ((3,), (3,))])
def test_a_product_is_absent_where_a_factor_is(shapes):
    for left, right in ((odd(*shapes[0]), odd(*shapes[1])), (RANDOM.normal(size=shapes[0]), odd(*shapes[1]))):
        with np.errstate(invalid="ignore"):
            expected = np.where(there(left) & there(right), np.multiply(left, right), ABSENT)
            same(times(left, right), expected)
            same(times(right, left), expected)


def test_what_is_absent_is_settled_as_zero():
    values = odd(5000)
    np.testing.assert_array_equal(settled(values), np.where(there(values), values, 0.0))
    same(present_where(values > 0, values), np.where(values > 0, values, ABSENT))


@pytest.mark.parametrize("number", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [7, 4000])
def test_shares_of_equal_terms(number, size):
    terms = RANDOM.integers(0, 3, size=(number, size)).astype(float)
    best = terms.max(axis=0)
    expected = np.full(terms.shape, ABSENT)
    for column in range(size):
        equal = np.flatnonzero(terms[:, column] == best[column])
        for k, row in enumerate(equal):  # each takes half of those before it
            expected[row, column] = 0.5 ** (len(equal) - max(k, 1)) if len(equal) > 1 else 1.0
    same(shares(terms, best), expected)


def test_a_choice_that_ends_in_any_case():
    a, b, holds = RANDOM.normal(size=(3, 5000))
    piecewise = FUNCTIONS[sp.Piecewise]
    np.testing.assert_array_equal(piecewise(a, holds > 0, b, True), np.where(holds > 0, a, b))
    np.testing.assert_array_equal(
        piecewise(a, holds > 0, b, holds > -1), np.where(holds > 0, a, np.where(holds > -1, b, np.nan))
    )
    found = piecewise(2.0, True, a, holds > 0)
    np.testing.assert_array_equal(found, np.where(True, 2.0, a))
    assert piecewise(a, holds > 0, 1, True).dtype == np.float64
