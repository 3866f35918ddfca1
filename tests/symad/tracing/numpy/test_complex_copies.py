"""Complex arrays of traced values: what is a copy in NumPy is one here, what is a view is one, gaps and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

X = np.array([1.5, -0.7])


def copied(x):
    z = x * (1 + 2j)
    t = np.array(z)
    t[0] = 5.0
    return np.sum(z.real) + t.imag[1]


def copied_twice(x):
    z = np.array([x[0] + 1j, x[1] * 1j])
    t = np.array(z, dtype=complex)
    t[0] = 9 * x[1]
    return np.sum(z.real) * np.sum(t.real)


def not_copied(x):
    z = x * (1 + 2j)
    t = np.asarray(z)
    t[0] = 5.0
    return np.sum(z.real * x)


def by_methods(x):
    z = x * (1 + 2j)
    t, u = z.copy(), np.copy(z)
    t[0], u[1] = 5.0, 3j
    return np.sum(z.real * x) + np.sum(u.imag * x) + t.imag[1]


def with_gaps(x):
    """What `ravel` makes of a part is a copy, for the other part's elements lie between."""
    t = np.zeros(2, dtype=complex)
    t[0] = x[0] + 1j
    r = t.real.ravel()
    r[1] = x[1]
    return np.sum(t.real * x) + np.sum(r * x)


def chosen(x):
    t = np.where(x > 0, x + 1j * x, 1j)
    i, r = t.imag, t.imag.ravel()
    i[0], r[1] = 7 * x[1], x[0]
    return np.sum(t.imag * x) + np.sum(r)


@pytest.mark.parametrize("f", [copied, copied_twice, not_copied, by_methods, with_gaps, chosen])
def test_copies_and_views_are_numpys(f: Callable[[Any], Any]) -> None:
    slopes = [(f(X + step) - f(X - step)) / 2e-6 for step in np.eye(2) * 1e-6]
    value, gradient = sa.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sa.compile(f, X)(X), f(X), rtol=1e-14)
    np.testing.assert_allclose(sa.compile(sa.grad(f), X)(X), gradient, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("option", [{"dtype": float}, {"ndmin": 2}])
def test_options_that_are_not_followed_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(sa.errors.TraceError, match=r"np\.array with other options than dtype=complex"):
        sa.grad(lambda x: np.sum(np.array(x * 1j, **option).real))(X)
