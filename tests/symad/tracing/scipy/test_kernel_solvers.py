"""SciPy's solvers and integrals in kernels: SciPy's numbers, derivatives by two routes, NaN where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from symad.errors import BoundWarning, TraceError

optimize = pytest.importorskip("scipy.optimize")
integrate = pytest.importorskip("scipy.integrate")

POINT = np.array([0.3, 1.2])
TIMES = np.linspace(0.0, 1.0, 40)


def waves(t, p):
    return np.cos(3 * t) * np.exp(t) - p[0] * p[1]


def rosenbrock(t, p):
    return (p[1] - t[0]) ** 2 + 100 * (t[1] - p[0] * t[0] ** 2) ** 2


SOLVED = {  # functions with several roots among them, of which a kernel finds SciPy's
    "brentq": lambda p: optimize.brentq(waves, p[0], 3.0, args=(p,)) * p[1],
    "brenth": lambda p: optimize.brenth(waves, p[0], 3.0, args=(p,)) * p[1],
    "ridder": lambda p: optimize.ridder(waves, p[0], 3.0, args=(p,)) * p[1],
    "bisect": lambda p: optimize.bisect(waves, p[0], 3.0, args=(p,)) * p[1],
    "secant": lambda p: optimize.newton(waves, 1.7, args=(p,)) * p[1],
    "root_scalar": lambda p: optimize.root_scalar(lambda t: waves(t, p), x0=1.7, x1=1.6).root,
    "nested": lambda p: optimize.newton(
        lambda c: optimize.brentq(lambda t: t**3 + t - c * p[0], -5, 5) + c - p[1], 0.5
    ),
    "in a loop": lambda p: sum(optimize.brentq(lambda t, k=k: t**3 + t - k * p[0], -5, 5) for k in range(4)) * p[1],
    "in a sum": lambda p: sa.sum_over(
        lambda c: optimize.brentq(lambda t: t**3 + t - c * p[0], -5, 5), np.linspace(0.0, 1.0, 4)
    ) * p[1],
    "root": lambda p: sa.root(lambda y: np.stack([y[0] ** 2 + y[1] * p[0] - 2, y[1] ** 3 + y[0] - 2]), np.ones(2)) @ p,
    "argmin": lambda p: sa.argmin(rosenbrock, np.zeros(2), p) @ p,
    "fixed_point": lambda p: sa.fixed_point(lambda y: np.cos(y * p), np.zeros(2)) @ p,
    "quad": lambda p: integrate.quad(lambda t: np.exp(-p[0] * t**2) * np.cos(p[1] * t), p[0], np.inf)[0],
    "from -inf": lambda p: integrate.quad(lambda t: np.exp(p[0] * t) * p[1], -np.inf, p[1] - 1.0)[0],
    "peak": lambda p: integrate.quad(lambda t: p[1] / ((t - p[0]) ** 2 + 1e-4), 0, p[1])[0],
    "dblquad": lambda p: integrate.dblquad(lambda s, t: np.exp(-p[0] * t * s), 0, p[1], 0, lambda t: t)[0],
}  # fmt: skip
TOLD = {
    "minimize": lambda p: optimize.minimize(rosenbrock, np.zeros(2), args=(p,), tol=1e-12).x @ p,
    "bounds": lambda p: optimize.minimize(
        lambda t: np.sum((t - p) ** 2) + t[0] * t[1] / 2, np.ones(2), bounds=[(0, 1), (0, 1)], tol=1e-12
    ).x @ p,
    "curve_fit": lambda p: optimize.curve_fit(
        lambda t, c, d: c * np.exp(d * t) + p[0], TIMES, 2 * p[1] * np.exp(-1.3 * TIMES), xtol=1e-14
    )[0] @ p,
    "fsolve": lambda p: optimize.fsolve(lambda t: [t[0] + t[1] - p[0], t[0] - t[1] ** 2], [1.0, 1.0]) @ p,
    "minimize_scalar": lambda p: optimize.minimize_scalar(lambda t: p[1] * np.cosh(t - p[0]) + t**2).x,
}  # fmt: skip


def check(f, rel=1e-6):
    with np.errstate(all="ignore"):
        assert sa.compile(f, POINT)(POINT) == pytest.approx(f(POINT), rel=rel)
    for transform in (sa.value_and_grad, sa.hessian):
        found, wanted = sa.compile(transform(f), POINT)(POINT), transform(f)(POINT)
        for left, right in zip(found, wanted, strict=True):
            assert left == pytest.approx(right, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.thinned
def test_values_gradients_and_hessians_of_kernels(name):
    check(SOLVED[name])


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
@pytest.mark.parametrize("name", TOLD)
@pytest.mark.thinned
def test_other_methods_than_scipys_have_the_same_derivatives(name):
    check(TOLD[name], rel=1e-5)  # SciPy ends where it is near enough


@pytest.mark.parametrize("name", TOLD)
def test_another_method_than_scipys_is_told(name):
    with pytest.warns(BoundWarning, match=r"test_kernel_solvers\.py:\d+: scipy\.optimize\.\w+ in a kernel is"):
        sa.compile(TOLD[name], POINT)


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
@pytest.mark.parametrize(
    ("f", "nowhere", "somewhere", "found"),
    [
        (lambda r: optimize.brentq(lambda t: t * t + r, 0.0, 2.0), 1.0, -2.0, 2**0.5),
        (lambda r: optimize.newton(lambda t: t * t - r, 1.0), -1.0, 2.0, 2**0.5),
        (lambda r: optimize.fsolve(lambda t: t * t - r, 1.0)[0], -1.0, 2.0, 2**0.5),
        (lambda r: sa.root(lambda t: t * t - r, 1.0), -1.0, 4.0, 2.0),
        (lambda r: optimize.brentq(lambda t: t**3 - r, -1.0, 2.5), 0.0, 8.0, 2.0),  # a root without a derivative
        (lambda r: optimize.minimize(lambda t: r * (t[0] - 1) ** 2, [0.0]).x[0], -1.0, 1.0, 1.0),
        (lambda r: optimize.minimize_scalar(lambda t: r * (t - 1) ** 2).x, -1.0, 1.0, 1.0),
        (lambda r: optimize.minimize(lambda t: (t[0] - r) ** 2, [0.5], bounds=[(0, 1)]).x[0], 0.0, 2.0, 1.0),
        (lambda r: sa.argmin(lambda t: (t - 1) ** 2 * r, 0.0), -1.0, 1.0, 1.0),
        (lambda r: integrate.quad(lambda t: 1 / (t - r), 0, 1)[0], 0.4, -1.0, np.log(2.0)),
        (lambda r: sa.fixed_point(lambda t: t * t + r, 0.0), 1.0, -0.5, (1 - 3**0.5) / 2),
    ],
)  # fmt: skip
def test_what_has_no_solution_is_nan(f, nowhere, somewhere, found):
    value, slope = (sa.compile(each, somewhere) for each in (f, sa.derivative(f)))
    assert value(somewhere) == pytest.approx(found, rel=1e-9)
    assert np.isnan([value(nowhere), slope(nowhere)]).all()
    assert slope(somewhere) == pytest.approx(sa.derivative(f)(somewhere), rel=1e-9)


def test_an_iteration_ends_where_nothing_moves():
    """Each further step would be three times as far from the fixed point, which is 1 ULP away."""
    kernel = sa.compile(lambda r: sa.fixed_point(lambda t: r + 3 * (t - r), 1.0), 1.0)
    assert kernel(1 + 2.0**-52) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
def test_success_is_a_condition():
    def f(r):
        found = optimize.root(lambda t: t * t - r, [1.0])
        return found.x[0] if found.success else 7.0 * r

    kernel = sa.compile(sa.value_and_grad(f), 1.0)
    assert kernel(4.0) == pytest.approx((2.0, 0.25))
    assert kernel(-1.0) == (-7.0, 7.0)


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
def test_what_has_no_form_in_a_kernel_is_refused_by_name():
    cases = {
        r"minimize with constraints= in a kernel": lambda r: optimize.minimize(
            lambda t: np.sum((t - r) ** 2), np.ones(2), constraints={"type": "eq", "fun": lambda t: t[0] - t[1]}
        ).x,
        r"an equation for 40 unknowns in a kernel": lambda r: sa.root(lambda y: y**3 - r, np.ones(40)),
    }  # fmt: skip
    for words, f in cases.items():
        with pytest.raises(TraceError, match=words):
            sa.compile(f, 1.0)


def test_a_solver_is_a_loop_that_stops():
    """A thousand steps of bisection are allowed, and 40 are made: it is written once, and differentiated around."""
    kernel = sa.compile(sa.grad(lambda r: optimize.bisect(lambda t: t**3 + t - r, 0, 4, xtol=1e-12, maxiter=1000)), 1.0)
    assert kernel.stats.plan.chosen == "rolled"
    assert kernel(2.0) == pytest.approx(0.25)
    assert len(kernel.llvm) < 40_000


def test_a_condition_on_what_a_loop_found():
    """Its constants are older in the second run of the function, and the loop is the same all the same."""

    def f(r):
        found = sa.while_loop(lambda x: x * x > 2.0001 * r, lambda x: (x + 2 * r / x) / 2, 2.0)
        return found * found if found > 1.9 else r * found

    kernel = sa.compile(f, 1.0)
    assert [kernel(1.0), kernel(8.0)] == pytest.approx([f(1.0), f(8.0)])


@pytest.mark.parametrize("f", [SOLVED["brentq"], SOLVED["root"]])
def test_straight_lines_and_traces_have_no_steps(f):
    """Those would be thousands of operations, which nobody reads."""
    for made in (lambda: sa.trace(f, POINT), lambda: sa.compile(f, POINT, roll="never")):
        with pytest.raises(TraceError, match="needs numbers"):
            made()


@pytest.mark.parametrize("transform", [sa.jacfwd, sa.jacrev, sa.jit])
def test_other_ways_to_a_kernel(transform):
    f = SOLVED["brentq"]
    found = transform(f)(POINT) if transform is sa.jit else sa.compile(transform(f), POINT)(POINT)
    wanted = f(POINT) if transform is sa.jit else transform(f)(POINT)
    assert found == pytest.approx(wanted, rel=1e-9)


def test_a_sparse_hessian_of_a_kernel():
    f = sa.hessian(lambda p: SOLVED["brentq"](p) + np.sum(p**3), sparse="lower")
    assert sa.compile(f, POINT)(POINT) == pytest.approx(f(POINT).toarray()[np.tril_indices(2)], rel=1e-9)


def test_newton_takes_a_list_of_arguments():
    """As SciPy's does, which asks of other solvers that they are a tuple."""

    def f(r):
        return optimize.newton(lambda t, a, b: t**2 - a * b, 1.0, fprime=lambda t, a, b: 2 * t, args=[r, 2.0])

    assert sa.value_and_grad(f)(2.0) == pytest.approx((2.0, 0.5))
    assert sa.compile(sa.value_and_grad(f), 2.0)(2.0) == pytest.approx((2.0, 0.5))


def test_an_integral_whose_derivative_is_infinite_at_its_ends_has_a_first_one_only():
    """Half a disk: pi r**2 / 2, with the derivative pi r; the integrand of the second derivative has no integral."""

    def half(r):
        return integrate.quad(lambda t: np.sqrt(r**2 - t**2), -r, r)[0]

    assert sa.grad(half)(0.8) == pytest.approx(0.8 * np.pi, rel=1e-9)
    with pytest.raises(sa.errors.ConvergenceError, match="the integral of a derivative"):
        sa.derivative(half, order=2)(0.8)
