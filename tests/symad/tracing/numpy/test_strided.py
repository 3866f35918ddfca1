"""as_strided and strides of traced arrays, against NumPy's."""

import numpy as np
import numpy.lib.stride_tricks as tricks
import pytest
from numpy.lib.stride_tricks import as_strided

import symad as sa
from symad.errors import ArgumentError

X = np.random.default_rng(3).normal(size=(6, 8))


def windows(a):
    rows, columns = a.strides
    return np.einsum("ijkl,kl->ij", as_strided(a, (4, 5, 3, 4), (rows, columns, rows, columns)), X[:3, :4] ** 2)


def hankel(a):
    v = a[:, 2] * 1.0
    return tricks.as_strided(v, shape=(3, 4), strides=v.strides * 2) @ a[0, :4]


def backwards(a):
    v = np.ascontiguousarray(a[1])[::-1]
    return np.lib.stride_tricks.as_strided(v, (4,), (2 * v.strides[0],)) * a[0, 4:]


def transposed(a):
    b = (a * 2).T
    return as_strided(b, (8, 5), (b.strides[0], b.strides[1])) @ a[:5, 1]


def stored(a):
    b = a * 1.0
    diagonal = as_strided(b, (6,), (b.strides[0] + b.strides[1],))
    diagonal[1:3] = b[0, :2] ** 2
    return np.sum(b * X, axis=0)


@pytest.mark.parametrize("f", [windows, hankel, backwards, transposed, stored])
def test_views_by_strides(f):
    expected = f(X.copy())
    np.testing.assert_allclose(sa.compile(f, X)(X), expected, rtol=1e-14)

    def total(a):
        return np.sum(np.sin(f(a)))

    def slope(t):
        return total(X + t * np.cos(X))

    step = 1e-5
    along = (8 * (slope(step) - slope(-step)) - slope(2 * step) + slope(-2 * step)) / (12 * step)
    for gradient in (sa.grad(total), sa.compile(sa.grad(total), X)):
        np.testing.assert_allclose(np.sum(gradient(X) * np.cos(X)), along, rtol=1e-8)
    large = np.tile(X, (1, 1))
    np.testing.assert_allclose(sa.value_and_grad(total)(large)[0], total(large), rtol=1e-13)


@pytest.mark.parametrize("f", [
    lambda a: as_strided(a, (6, 9), a.strides),  # beyond the end
    lambda a: as_strided(a[1:], (6, 8), (a.strides[0], -8)),  # before the beginning
    lambda a: as_strided(a[:, ::2], (24,), (16,)),  # with gaps, in which other elements are
    lambda a: as_strided(a, (4,), (4,)),  # halves of numbers
    lambda a: as_strided(a > 0, (4,), (1,)),
])  # fmt: skip
def test_what_is_no_element_is_refused(f):
    with pytest.raises(ArgumentError, match="as_strided"):
        sa.trace(lambda a: np.sum(f(a)), X)


def test_strides_are_those_of_numpy():
    seen = []

    def f(a):
        views = a, a.T, a[::-1, 1::3], a[2], np.sin(a), a.reshape(4, 12), a.ravel(), a > 0
        seen.append([view.strides for view in views])
        return np.sum(a)

    f(X.copy())
    sa.trace(f, X)
    assert seen[0] == seen[1]
