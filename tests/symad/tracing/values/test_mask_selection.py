"""What a mask without values picks: computed with, summed up, stored where the mask picks; anything else is refused."""

import math

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

X = np.array([0.7, -0.4, 1.9, 0.2, -2.5, 0.9])
POINTS = [X, -X, np.abs(X), -np.abs(X), np.roll(X, 1) * 3]
DATA = np.arange(6.0)


def pieces(x):
    y = np.zeros_like(x)
    positive = x > 0
    y[positive] = np.sqrt(x[positive]) * x[positive] + 1 / x[positive]
    y[~positive] = np.exp(x[~positive]) - 2.0
    return y


def in_an_ordinary_array(x):
    y = np.zeros(6)
    y[x > 0.5] = 3.0
    large = np.abs(x) > 1
    y[large] = np.log(np.abs(x)[large]) * y[large]
    return y * DATA + x


def sums(x):
    inside = np.abs(x) < 1.5
    chosen, rest = x[inside], x[~inside]
    squares = np.sum(chosen**2) + chosen @ chosen + np.dot(rest, rest * 2) + np.sum(np.sqrt(x[x > 0]))
    return squares + rest.sum() * x[0] + np.prod(chosen + 2.5) + np.sum(chosen > 0.5) + np.mean(x[x > -100])


def selection_of_a_selection(x):
    large = np.abs(x) > 0.5
    signs = np.ones_like(x[large])
    signs[x[large] < 0] = -1.0
    kept = x[large]
    return np.sum(kept[kept > 0.8] ** 2) + np.sum(signs * kept) + np.sum(kept.copy()) * x[1]


def in_place(x):
    y = x * 2
    low = y < 1
    y[low] *= np.cos(y[low])
    y[low] += 1.0
    kept = y[low]  # a copy, which what follows does not change
    y[low] = 0.0
    other = kept
    other += 0.5
    return y * np.sum(kept)


def with_stand_ins(x):
    y = np.array([x[0] * 2, x[1], x[2] ** 2, x[3], x[4], x[5]])
    picked = y[y > 0.3]
    return np.sum(picked * np.sin(picked)) + picked @ picked + np.prod(picked) + np.mean(np.ones_like(picked) + picked)


def asked(x):
    positive = x > 0
    if np.any(x[positive] > 1.0):
        return np.sum(x[positive] ** 3)
    return np.sum(x) if np.all(x[positive] < 0.95) else x[0] * 2


@pytest.mark.parametrize(
    "f",
    [pieces, in_an_ordinary_array, sums, selection_of_a_selection, in_place, asked, with_stand_ins],
    ids=lambda f: f.__name__,
)
def test_selections_of_unknown_length(f):
    def total(x):
        return np.sum(f(x) * np.cos(DATA)) if np.ndim(f(x)) else f(x) * 1.0

    value = sa.compile(f, X)
    gradient, hessian = sa.compile(sa.grad(total), X), sa.compile(sa.hessian(total), X)
    for x in POINTS:
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(value(x), f(x), rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(gradient(x), sa.grad(total)(x), rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(hessian(x), sa.hessian(total)(x), rtol=1e-11, atol=1e-12)


def test_nothing_is_picked():
    def f(x):
        picked = x[x > 10]
        return np.stack([np.sum(picked), np.prod(picked), np.mean(picked), picked @ picked])

    with pytest.warns(RuntimeWarning, match="empty slice|invalid value"):
        expected = f(X)
    np.testing.assert_array_equal(sa.compile(f, X)(X), expected)


@pytest.mark.parametrize("f", [
    lambda x: len(x[x > 0]) * x[0],
    lambda x: x[x > 0].size * x[0],
    lambda x: x[x > 0][0],
    lambda x: np.max(x[x > 0]),
    lambda x: np.sum(DATA[x > 0]),
    lambda x: sum(value for value in x[x > 0]),
    lambda x: math.fsum(x[x > 0]),
    lambda x: np.sum(np.cumsum(x[x > 0])),
    lambda x: np.sum(np.sort(x[x > 0]) * 2),
    lambda x: np.sum(np.concatenate([x[x > 0], x])),
    lambda x: np.sum(np.frompyfunc(lambda u: u * 2, 1, 1)(x[x > 0])),
    lambda x: np.add.reduce(x[x > 0]),
    lambda x: np.sum(np.outer(x[x > 0], x[x < 1])) + x[x > 0][-1],
])  # fmt: skip
def test_what_asks_for_its_length(f):
    value, gradient = sa.compile(f, X), sa.compile(sa.grad(f), X)
    for x in (X, -X, np.abs(X), np.roll(X, 1) * 3):
        np.testing.assert_allclose(float(value(x)), float(f(x)), rtol=1e-13)
        np.testing.assert_allclose(gradient(x), sa.grad(f)(x), rtol=1e-12, atol=1e-14)


def test_lengths_that_do_not_fit_have_no_value():
    """NumPy raises an error where six elements meet fewer; there are none of which the largest could be taken."""
    for f in (lambda x: np.sum(x[x > 0] * x), lambda x: np.max(x[x > 2.5]), lambda x: x[x > 0.3][2]):
        kernel = sa.compile(f, X)
        with pytest.raises((ValueError, IndexError)):
            f(-np.abs(X) + 0.5)
        assert np.isnan(kernel(-np.abs(X) + 0.5))
        assert kernel(np.abs(X) + 3) == f(np.abs(X) + 3)


def test_a_result_of_no_known_size_is_refused():
    with pytest.raises((TraceError, sa.errors.ArgumentError)):
        sa.compile(lambda x: x[x > 0], X)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.add(x[x > 0], 1.0, out=np.zeros(3))),
    lambda x: np.sum(np.logical_and(x[x > 0], 1.0, out=x[x > 0])) * x[0],
])  # fmt: skip
def test_out_of_another_kind_takes_each_length(f):
    points = [X, np.array([0.5, 1.0, 2.0, -0.25, -1.0, -3.0])[: len(X)], np.full(len(X), 0.5)]
    kernel = sa.compile(f, X)
    for x in points:
        try:
            expected = f(x)
        except ValueError:  # of lengths that do not fit
            expected = np.nan
        np.testing.assert_allclose(kernel(x), expected)


def test_a_length_with_too_many_values_is_refused_by_name():
    with pytest.raises(
        TraceError, match=r"one by one or by their number: how many of 80 .*np\.where\(mask, value, 0\)"
    ):
        sa.compile(lambda x: np.sum(np.outer(x[x > 0], x[x > 0])), np.zeros(80))


def test_a_store_of_what_another_mask_picks():
    def f(x):
        y = x * 1.0
        y[x > 0] = x[x < 1] if len(x[x < 1]) == len(x[x > 0]) else 0.0
        return np.sum(y * DATA[:4])

    kernel = sa.compile(sa.grad(f), X[:4])
    for x in (X[:4], -X[:4], np.sort(X[:4]), X[:4] + 0.5):
        np.testing.assert_allclose(kernel(x), sa.grad(f)(x))


def test_user_code_sees_an_array():
    def f(x):
        assert isinstance(x[x > 0], np.ndarray)
        return np.sum(x[x > 0])

    assert sa.compile(f, X)(X) == np.sum(X[X > 0])


TABLE = np.arange(1.0, 13.0).reshape(6, 2)
NUMBERS = np.arange(6.0) * 1.5
AT_PLACES = {
    "nonzero": lambda x: np.sum(x[np.nonzero(x > 0)] * NUMBERS[np.nonzero(x > 0)]),
    "where": lambda x: np.sum(x[np.where(x > 0)[0]] * NUMBERS[np.where(x > 0)[0]]),
    "flatnonzero": lambda x: np.dot(NUMBERS[np.flatnonzero(x > 0)], x[x > 0]),
    "named": lambda x: (lambda k: np.sum(NUMBERS[k] * x[k]))(np.flatnonzero(x > 0)),
    "rows": lambda x: np.sum(TABLE[np.nonzero(x > 0)] * x[np.nonzero(x > 0)][:, None]),
    "a column": lambda x: np.sum(TABLE[np.flatnonzero(x > 0), 1] * x[x > 0]),
    "integers": lambda x: np.sum(np.array([3, 1, 4, 1, 5, 9])[np.nonzero(x < 0)[0]] * x[x < 0]),
    "the largest": lambda x: np.max(NUMBERS[np.flatnonzero(x > 0)] * x[x > 0]),
}


@pytest.mark.parametrize("name", AT_PLACES)
def test_elements_of_an_ordinary_array_at_places_that_a_mask_picks(name):
    f, point = AT_PLACES[name], np.array([1.0, -1.0, 2.0, -2.0, 3.0, 4.0])
    assert sa.compile(f, np.ones(6))(point) == pytest.approx(f(point), rel=1e-15)
    assert sa.compile(sa.grad(f), np.ones(6))(point) == pytest.approx(sa.grad(f)(point), rel=1e-15)
