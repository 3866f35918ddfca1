"""Derivatives of solutions in their parameters, against differences of solutions, known answers and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

TIGHT = {"slsqp": 1e-10, "trust-constr": 1e-13, "ipopt": 1e-12}


def differences(f, a, step=1e-4):
    """Fourth-order central differences, one row for each parameter."""
    rows = []
    for unit in np.eye(a.size).reshape(-1, *a.shape):
        values = [np.asarray(f(a + k * step * unit)) for k in (-2, -1, 1, 2)]
        rows.append((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step))
    return np.array(rows)


def hock_schittkowski_71(x, a):
    return x[0] * x[3] * (x[0] + x[1] + x[2]) * a[0] + x[2]


HS71 = sa.Problem(
    hock_schittkowski_71,
    lambda x, a: np.stack([x[0] * x[1] * x[2] * x[3] - a[1], np.sum(x**2) - a[2]]),
    bounds=(1.0, 5.0),
    constraint_bounds=([0.0, 0.0], [np.inf, 0.0]),
)
START = np.array([1.0, 5.0, 5.0, 1.0])
VALUES = np.array([1.0, 25.0, 40.0])


def solution(a, solver="ipopt"):
    return HS71.solution(START, a, solver=solver, tolerance=TIGHT[solver], max_iterations=2000)


def test_first_and_second_derivatives_of_a_solution_at_bounds_and_constraints():
    assert solution(VALUES) == pytest.approx([1.0, 4.74299963, 3.82114998, 1.37940829], abs=1e-7)
    jacobian = sa.jacobian(solution)(VALUES)
    np.testing.assert_allclose(jacobian, differences(solution, VALUES).T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jacobian[0], 0.0, atol=1e-13)  # it stays at its bound

    def last(a):
        return solution(a)[3]

    hessian = sa.hessian(last)(VALUES)
    np.testing.assert_allclose(hessian, differences(sa.grad(last), VALUES), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(sa.jacfwd(sa.jacrev(solution))(VALUES)[3], hessian, rtol=1e-9)


@pytest.mark.parametrize("solver", ["slsqp", "trust-constr"])
def test_derivatives_do_not_depend_on_the_solver(solver):
    found = sa.jacobian(lambda a: solution(a, solver))(VALUES)
    np.testing.assert_allclose(found, sa.jacobian(solution)(VALUES), rtol=1e-9, atol=1e-12)


def test_the_slope_of_the_least_value_is_the_multiplier():
    """The envelope theorem: moving the bound of a constraint changes the optimum by its multiplier."""
    found = HS71.minimize(START, VALUES, solver="ipopt", tolerance=1e-12)
    least = sa.grad(lambda a: hock_schittkowski_71(HS71.solution(START, a, solver="ipopt"), a))(VALUES)
    np.testing.assert_allclose(least[1:], -found.multipliers, rtol=1e-7)


def test_the_projection_on_a_simplex_has_its_closed_form():
    projection = sa.Problem(lambda x, a: np.sum((x - a) ** 2), lambda x, a: np.sum(x) - 1, bounds=(0.0, None))
    a = np.array([0.9, 0.5, -0.6, 0.05])

    def nearest(a):
        return projection.solution(np.full(4, 0.25), a, solver="slsqp")

    inside = np.array([1.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(nearest(a), [0.7, 0.3, 0.0, 0.0], atol=1e-9)
    expected = np.diag(inside) - np.outer(inside, inside) / 2
    np.testing.assert_allclose(sa.jacobian(nearest)(a), expected, atol=1e-9)


def test_problems_nest():
    """The leader's objective holds the follower's solution: max(a, y/2) is never at its bound here."""
    follower = sa.Problem(lambda x, y: (x[0] - y[0]) ** 2 + x[0] ** 4, bounds=(-5.0, 5.0))

    def cost(y):
        return (follower.solution(np.zeros(1), y, solver="slsqp")[0] - 1.0) ** 2 + 0.1 * y[0] ** 2

    y = np.array([1.5])
    first, second = sa.grad(cost)(y), sa.hessian(cost)(y)
    np.testing.assert_allclose(first, differences(cost, y), rtol=1e-6)
    np.testing.assert_allclose(second, differences(sa.grad(cost), y), rtol=1e-6)


def test_more_variables_than_are_solved_in_the_graph():
    n = 40
    places = np.linspace(0.0, 3.0, n)
    chain = sa.Problem(
        lambda x, a: np.sum((x - a[0] * np.sin(a[1] * places) - a[2]) ** 2) + np.sum((x[1:] - x[:-1]) ** 2),
        bounds=(0.0, None),
    )
    a = np.array([1.0, 3.0, -0.1])

    def total(a):
        return np.sum(chain.solution(np.ones(n), a, solver="ipopt", tolerance=1e-13) ** 2)

    gradient = sa.grad(total)(a)
    np.testing.assert_allclose(gradient, sa.jacfwd(total)(a), rtol=1e-12)
    unit = np.array([0.0, 1e-4, 0.0])
    assert gradient[1] == pytest.approx((total(a + unit) - total(a - unit)) / 2e-4, rel=1e-6)


def test_a_kink_is_refused_by_name():
    problem = sa.Problem(lambda x, a: (x[0] - a[0]) ** 2, bounds=(0.0, None))
    slope = sa.jacobian(lambda a: problem.solution(np.ones(1), a, solver="slsqp"))
    assert slope(np.array([0.5])) == pytest.approx(1.0)
    assert slope(np.array([-0.5])) == 0.0
    with pytest.raises(sa.errors.ConvergenceError, match=r"x, number 0, is at its bound, and nothing pushes it there"):
        slope(np.array([0.0]))


def test_what_has_no_solution_and_what_has_no_numbers_is_refused():
    nowhere = sa.Problem(lambda x, a: np.sum(x**2), lambda x, a: np.stack([x[0] - a[0], x[0] - a[0] - 1.0]))
    with pytest.raises(sa.errors.ConvergenceError, match="slsqp found no solution"):
        sa.jacobian(lambda a: nowhere.solution(np.zeros(1), a, solver="slsqp"))(np.zeros(1))
    with pytest.raises(TraceError, match="a solver needs numbers"):
        sa.compile(lambda a: HS71.solution(START, a, solver="slsqp"), VALUES)
