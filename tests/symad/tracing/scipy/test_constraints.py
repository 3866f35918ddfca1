"""`scipy.optimize.minimize` with constraints, in each of SciPy's ways of writing them: the nearest point of a set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

import symad as sa

LINE = {
    "an equality": {"type": "eq", "fun": lambda y: y[0] + y[1] - 1},
    "an inequality": [{"type": "ineq", "fun": lambda y: 1 - y[0] - y[1]}],
    "a linear equality": LinearConstraint([[1, 1]], [1], [1]),
    "linear inequalities": LinearConstraint([[1, 1], [1, 0]], [-np.inf, -4], [1, 5]),
    "an inequality that does not matter": [
        LinearConstraint([[1, 1]], 1, 1), {"type": "ineq", "fun": lambda y: y[0] + 9},
    ],
}  # fmt: skip


def nearest(p, constraints):
    """The point of a set that is nearest to (p, 1)."""
    found = minimize(lambda y: (y[0] - p) ** 2 + (y[1] - 1) ** 2, np.zeros(2), constraints=constraints)
    return found.x


@pytest.mark.parametrize("name", LINE)
def test_points_of_a_line(name):
    """Of y0 + y1 = 1: (p/2, 1 - p/2)."""
    value, slope = sa.jvp(lambda p: nearest(p, LINE[name]), (0.37,), (1.0,))
    np.testing.assert_allclose(value, [0.185, 0.815], atol=1e-9)
    np.testing.assert_allclose(slope, [0.5, -0.5], atol=1e-9)


def test_points_of_a_disc():
    """(p, 1)/sqrt(1 + p**2), to the second order."""
    disc = NonlinearConstraint(lambda y: y[0] ** 2 + y[1] ** 2, -np.inf, 1.0)
    p = 0.37

    def first(q):
        return nearest(q, disc)[0]

    assert first(p) == pytest.approx(p / np.sqrt(1 + p * p), abs=1e-6)
    assert sa.grad(first)(p) == pytest.approx((1 + p * p) ** -1.5, rel=1e-8)
    assert sa.derivative(first, order=2)(p) == pytest.approx(-3 * p * (1 + p * p) ** -2.5, rel=1e-7)


def test_an_inequality_that_just_holds_is_refused():
    with pytest.raises(sa.errors.TraceError, match="an inequality that just holds at its minimum"):
        sa.grad(lambda p: nearest(p, [{"type": "ineq", "fun": lambda y: 1.37 - y[0] - y[1]}])[0])(0.37)


def test_constraints_in_a_kernel_are_refused():
    with pytest.raises(sa.errors.TraceError, match="with constraints= in a kernel"):
        sa.compile(lambda p: nearest(p, LINE["an equality"]), 0.37)
