"""KNOWN_ANSWERS E: implicit functions under every mode mix, whatever solver found them."""

import math

import numpy as np
import pytest
import scipy.optimize
import sympy as sp

import symad as sa
import symad.derivatives.implicit
from symad.errors import ArgumentError, ConvergenceError, TraceError
from tests.support import mixes


def bisection(residual, initial):
    low, high = 0.0, 5.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if residual(middle) * residual(low) > 0 else (low, middle)
    return middle


SOLVERS = {
    "newton": None,
    "bisection": bisection,
    "brentq": lambda residual, initial: scipy.optimize.brentq(residual, 0, 5, xtol=1e-15),
    "scipy root": lambda residual, initial: float(scipy.optimize.root(residual, initial, tol=1e-14).x[0]),
}


def cubic(x, solver=None):
    return sa.root(lambda y, x: y**3 + y - x, 0.5, x, solver=solver)


def captured_cubic(x, solver=None):
    return sa.root(lambda y: y**3 + y - x, 0.5, solver=solver)


@pytest.mark.parametrize("word", mixes.words(3), ids="".join)
@pytest.mark.parametrize("f", [cubic, captured_cubic], ids=["argument", "captured"])
def test_the_cubic_under_every_mix(f, word):
    """y^3 + y = x at (2, 1): y' = 1/4, y'' = -3/32, y''' = 21/256."""
    for order, expected in ((1, 1 / 4), (2, -3 / 32), (3, 21 / 256)):
        assert mixes.nested(word[:order], f)(2.0) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", SOLVERS)
def test_any_solver_will_do(name):
    def f(x):
        return cubic(x, SOLVERS[name])

    assert f(2.0) == pytest.approx(1.0, rel=1e-14)
    assert sa.grad(sa.grad(sa.grad(f)))(2.0) == pytest.approx(21 / 256, rel=1e-13)


def test_newton_unrolled_and_implicit_agree_to_second_order():
    def unrolled(x):
        y = 0.5
        for _ in range(20):
            y = y - (y**3 + y - x) / (3 * y**2 + 1)
        return y

    for nested in (sa.derivative, lambda f: sa.derivative(sa.derivative(f)), lambda f: sa.grad(sa.grad(f))):
        assert nested(cubic)(2.7) == pytest.approx(nested(unrolled)(2.7), rel=1e-13)


def test_the_fixed_point_of_the_cosine():
    """y = cos(a y): y' = -y sin(a y) / (1 + a sin(a y))."""

    def f(a):
        return sa.fixed_point(lambda y, a: np.cos(a * y), 0.5, a)

    y = 0.7390851332151607
    assert f(1.0) == pytest.approx(y, rel=1e-15)
    for mode in (sa.grad, sa.derivative):
        assert mode(f)(1.0) == pytest.approx(-y * math.sin(y) / (1 + math.sin(y)), rel=1e-14)
    second = [mixes.nested(word, f)(1.0) for word in mixes.words(2)]
    by_root = sa.grad(sa.grad(lambda a: sa.root(lambda y: y - np.cos(a * y), 0.5)))(1.0)
    assert second == pytest.approx([by_root] * 4, rel=1e-13)


MATRIX = np.array([[3.0, 1.0], [1.0, 2.0]])


def system(p):
    return sa.root(lambda y, p: MATRIX @ y + 0.1 * y**3 - p, np.zeros(2), p)


def test_a_system_and_its_jacobian():
    p = np.array([1.0, 2.0])
    y = system(p)
    expected = np.linalg.inv(MATRIX + np.diag(0.3 * y**2))
    for mode in ("fwd", "rev"):
        assert sa.jacobian(system, mode=mode)(p) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_a_hessian_through_a_system(mode):
    p = np.array([1.0, 2.0])

    def f(p):
        return (system(p) ** 2).sum() * p[0]

    assert sa.hessian(f, mode=mode)(p) == pytest.approx(sa.jacfwd(sa.grad(f))(p), rel=1e-12)
    step = 1e-5 * np.eye(2)
    differences = [(sa.grad(f)(p + d) - sa.grad(f)(p - d)) / 2e-5 for d in step]
    assert sa.hessian(f, mode=mode)(p) == pytest.approx(np.array(differences), rel=1e-8)


def test_more_unknowns_than_are_solved_in_the_graph():
    """Above 32 unknowns the linear solve is an implicit function itself; second derivatives still agree."""
    n = 34
    matrix = np.eye(n) * 3 + np.random.default_rng(0).normal(size=(n, n)) * 0.05

    def f(s):
        return (sa.root(lambda y: matrix @ y + 0.1 * y**3 - s, np.zeros(n)) ** 2).sum()

    h = 1e-4
    assert sa.grad(f)(1.0) == pytest.approx((f(1 + h) - f(1 - h)) / (2 * h), rel=1e-7)
    second = sa.grad(sa.grad(f))(1.0)
    assert second == pytest.approx((f(1 + h) - 2 * f(1.0) + f(1 - h)) / h**2, rel=1e-5)
    assert second == pytest.approx(sa.derivative(sa.derivative(f))(1.0), rel=1e-12)


def test_containers_of_unknowns():
    def f(p):
        return sa.root(lambda y, p: {"a": y["a"] - p * y["b"], "b": y["b"] ** 2 - p}, {"a": 1.0, "b": 1.0}, p)["a"]

    assert f(4.0) == pytest.approx(8.0)
    assert sa.grad(f)(4.0) == pytest.approx(3.0)


def test_an_implicit_function_inside_another():
    """z solves z^2 = y(x), y solves y^3 + y = x."""

    def f(x):
        return sa.root(lambda z: z * z - cubic(x), 1.0)

    def g(x):
        return np.sqrt(cubic(x))

    for word in mixes.words(2):
        assert mixes.nested(word, f)(2.0) == pytest.approx(mixes.nested(word, g)(2.0), rel=1e-13)


def test_what_is_no_root_is_reported():
    with pytest.raises(ConvergenceError, match=r"test_implicit\.py:\d+: the solver of <lambda> returned no root"):
        sa.root(lambda y: y**2 - 2, 1.0, solver=lambda residual, y: 1.4)
    with pytest.raises(ConvergenceError, match=r"no root|does not converge"):
        sa.root(lambda y: y * y + 1, 1.0)
    with pytest.raises(ConvergenceError, match="fixed-point iteration does not converge"):
        sa.fixed_point(lambda y: 2 * y + 1, 1.0)
    with pytest.raises(ConvergenceError, match="returned no root"):
        sa.fixed_point(np.cos, 0.5, solver=lambda residual, y: 0.7)
    assert sa.root(lambda y: y**2 - 2, 1.0, solver=lambda residual, y: 1.4, tolerance=0.02) == 1.4


def test_an_infinite_slope_makes_nothing_a_root(capfd):
    with np.errstate(divide="ignore", invalid="ignore"):
        with pytest.raises(
            ConvergenceError, match=r"no root: the residual there is 1, .*dF/dy is singular or infinite"
        ):
            sa.root(lambda y: np.sqrt(y) + 1, 4.0)
        assert sa.root(lambda y: np.sqrt(y), 0.0) == 0.0
        with pytest.raises(ConvergenceError, match=r"does not converge: after .* the residual is"):
            sa.root(lambda y: np.stack([1 / y[0], 0 * y[1]]), np.array([0.0, 1.0]))
        with pytest.raises(ConvergenceError, match="does not converge"):
            sa.argmin(lambda y: np.sum(np.sqrt(y)), np.zeros(2), constraints=lambda y: np.stack([y[0] - 1]))
    assert capfd.readouterr() == ("", "")  # LAPACK tells the terminal of what is not finite


def test_what_cannot_be_solved_is_refused():
    with pytest.raises(ArgumentError, match=r"returned shapes \[\(2,\)\]: the unknown has shapes \[\(\)\]"):
        sa.root(lambda y: np.stack([y, y]), 1.0)
    for asked in (
        lambda: sa.compile(lambda a: sa.root(lambda y: y**3 + y - a, 1.0, solver=bisection), 1.0),
        lambda: sa.compile(lambda a: nearest_on_the_circle(np.stack([a, a])), 1.0),
        lambda: cubic(sp.Symbol("a")),
    ):
        with pytest.raises(TraceError, match="asked for at symbolic values: a solver needs numbers"):
            asked()


# argmin


def nearest_on_the_circle(p):
    return sa.argmin(lambda y, p: ((y - p) ** 2).sum(), np.array([1.0, 0.2]), p, constraints=lambda y, p: y @ y - 1)


@pytest.mark.parametrize("word", mixes.words(3), ids="".join)
def test_a_constrained_minimum_to_third_order(word):
    """The nearest point of the unit circle to (1, t) is (1, t) / sqrt(1 + t^2)."""

    def f(t):
        return nearest_on_the_circle(np.stack([t / t, t]))[0]

    def exact(t):
        return 1 / np.sqrt(1 + t**2)

    assert f(2.0) == pytest.approx(exact(2.0), rel=1e-14)
    for order in (1, 2, 3):
        assert mixes.nested(word[:order], f)(2.0) == pytest.approx(mixes.nested(word[:order], exact)(2.0), rel=1e-12)


def test_a_constrained_minimum_of_an_array():
    p = np.array([1.0, 2.0])
    length = np.linalg.norm(p)
    expected = np.eye(2) / length - np.outer(p, p) / length**3
    assert sa.jacobian(nearest_on_the_circle)(p) == pytest.approx(expected, abs=1e-14)


def test_rosenbrock_has_its_minimum_where_it_should():
    def f(a):
        return sa.argmin(lambda y: (a - y[0]) ** 2 + 100 * (y[1] - y[0] ** 2) ** 2, np.array([-1.2, 1.0]))

    assert f(1.5) == pytest.approx([1.5, 2.25], rel=1e-12)
    assert sa.derivative(f)(1.5) == pytest.approx([1.0, 3.0], rel=1e-12)
    assert sa.derivative(sa.derivative(f))(1.5) == pytest.approx([0.0, 2.0], abs=1e-10)


def test_a_solver_of_the_users_choice_is_polished():
    def f(p, solver=None):
        def objective(y, p):
            return ((y - p) ** 4).sum() + ((y - p) ** 2).sum() + y[0] * y[1]

        return sa.argmin(objective, np.zeros(2), p, solver=solver)

    p = np.array([1.0, 2.0])

    def by_scipy(p):
        return f(p, lambda objective, y: scipy.optimize.minimize(objective, y).x)

    assert by_scipy(p) == pytest.approx(f(p), rel=1e-12)
    assert sa.jacobian(by_scipy)(p) == pytest.approx(sa.jacobian(f)(p), rel=1e-10)


def test_stationary_points_that_are_no_minima_are_reported():
    for objective, start in ((lambda y: y**4 - y**2, 0.0), (lambda y: y**3, 1.0)):
        with pytest.raises(ConvergenceError, match="a stationary point that is no strict minimum: the eigenvalues"):
            sa.argmin(objective, start)

    def saddle(y):
        return y[0] * y[1]

    with pytest.raises(ConvergenceError, match="no strict minimum"):
        sa.argmin(saddle, np.array([0.9, 1.1]), constraints=lambda y: y[0] + y[1] - 2)
    with pytest.raises(ConvergenceError, match="does not converge"):
        sa.argmin(np.exp, 0.0)


def test_a_large_sparse_system():
    """-u'' + s u^3 = 1 on 300 points: the derivative in s against differences; nothing dense is solved."""
    n = 300
    h = 1 / (n + 1)

    def residual(u, s):
        padded = np.concatenate([np.zeros(1), u, np.zeros(1)])
        return (2 * u - padded[2:] - padded[:-2]) / h**2 + s * u**3 - 1

    def mean(s):
        return sa.root(residual, np.zeros(n), s).mean()

    slope = sa.grad(mean)(1.0)
    assert slope == pytest.approx((mean(1.01) - mean(0.99)) / 0.02, rel=1e-5)
    assert slope == pytest.approx(sa.derivative(mean)(1.0), rel=1e-12)


def test_zero_derivatives_of_a_solution_are_structural():
    pattern = sa.jacobian(lambda x: sa.root(lambda y: y**3 + y - x, np.ones(3)), sparse=True)(
        np.array([2.0, 10.0, 0.5])
    )
    assert pattern.rows.tolist() == pattern.columns.tolist() == [0, 1, 2]


def test_a_chain_of_unknowns_depends_on_one_number_at_its_beginning():
    """Zeros are structural only where no path of equations leads, however long it is, and however few the operands."""

    def last(x):
        def residual(y, x):
            return y - 2.0 * np.concatenate([np.array([x]), y[:-1]])

        return sa.root(residual, np.ones(9), x)[-1]

    assert sa.grad(last)(1.0) == pytest.approx(512.0, rel=1e-13)


def test_more_derivatives_than_memory_holds_are_refused(monkeypatch):
    def total(p):
        return np.sum(sa.root(lambda y, p: y - p, np.zeros(40), p))

    assert symad.derivatives.implicit.MOST_ENTRIES == 500_000
    monkeypatch.setattr(symad.derivatives.implicit, "MOST_ENTRIES", 1500)
    with pytest.raises(sa.errors.LimitError, match="40 unknowns in 40 numbers"):
        sa.grad(total)(np.ones(40))
