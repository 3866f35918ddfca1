"""What a mask picks is read on paths of inner functions; each path, and the code behind them, has its own length."""

import numpy as np
import pytest

import symad as sa
from tests.support.merged_fuzz import merging

WEIGHTS = np.cos(np.arange(6.0))


def weighted(a):
    return np.sum(a * WEIGHTS[: np.size(a)])


def passed_on(x):
    largest = sorted(x)[-1]
    picked = x[x > 0]

    def same(a, n):
        return a if n == 0 else same(a, n - 1)

    return weighted(same(picked, 2)) + largest


def stored_into(x):
    largest = sorted(x)[-1]
    picked = x[x > 0]

    def store(a, n):
        if n > 0:
            a[0] = 7.0
        return a

    store(picked, 1)
    return weighted(picked) + largest


def differentiated_beside(x):
    largest = sorted(x)[-1]
    picked = x[x > 0]

    def inner(s):
        return weighted(picked) * s * s if s > 0 else weighted(picked)

    return sa.grad(inner)(x[0]) + largest + weighted(picked)


def read_by_branches(x):
    largest = sorted(x)[-1]
    picked = np.unique(x)

    def f(s):
        return weighted(picked) * s

    def g(s):
        return weighted(picked**2) * s

    return sa.cond(x[0] > 0, f, g, x[1]) + weighted(picked) + largest


def read_in_a_loop(x):
    largest = sorted(x)[-1]
    picked = x[x > 0]
    total = 0.0
    for k in range(3):

        def add(a, k):
            return a if k == 0 else a * 2

        total = total + weighted(add(picked, k))
    return total + largest


def stored_into_a_view(x):
    largest = sorted(x)[-1]
    picked = x[x > 0]

    def first(a, n):
        v = a[:]
        if n == 0:
            return v
        v[0] = v[0] * 2
        return v

    b = first(picked, 1)
    return weighted(picked) + 3 * weighted(b) + largest


def counted(x):
    largest = sorted(x)[-1]
    picked = x[x > 0]

    def length(a, n):
        return len(a) if n == 0 else len(a) + 1

    return length(picked, 1) * x[0] + weighted(picked) + largest


POINTS = [np.array(x) for x in ([0.5, -1, 1, 0.2], [0.5, 1.5, 1, 0.2], [0.5, -1, -1.5, -0.2], [0.3, -1, 2, -0.2])]


@pytest.mark.parametrize(
    "f",
    [passed_on, stored_into, differentiated_beside, read_by_branches, read_in_a_loop, stored_into_a_view, counted],
)
def test_kernels_have_the_numbers_of_python(f):
    """`sorted` of traced numbers asks too many conditions, so that calls are merged."""
    value, gradient = sa.compile(f, POINTS[0]), sa.compile(sa.grad(f), POINTS[0])
    for x in POINTS:
        np.testing.assert_allclose(value(x), f(x.copy()), rtol=1e-13)
        np.testing.assert_allclose(gradient(x), sa.grad(f)(x), rtol=1e-12, atol=1e-14)


def test_too_few_arguments_on_a_path_that_picks_nothing():
    def f(x):
        picked = x[x > x[0]]
        return (lambda a, *others: a * sum(others))(*picked) + x[1]

    with merging():
        kernel = sa.compile(f, np.array([0.1, 0.2, 0.3]))
    assert kernel(np.array([0.1, 0.2, 0.3])) == pytest.approx(0.2 * 0.3 + 0.2)
    assert np.isnan(kernel(np.array([0.5, 0.2, 0.3])))
