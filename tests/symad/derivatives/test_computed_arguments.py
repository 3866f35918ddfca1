"""Arguments of solvers and integrals that are products: rules look into products, and never past an argument."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve, newton

import symad as sa


def equation(y, p):
    return y**3 - 1 - (p * np.sqrt(y**2 + 1)) ** 2


def integrand(t, p):
    return (p * np.sqrt(t * t + 1)) ** 2


FORMS: dict[str, Callable[[float], float]] = {
    "root": lambda d: sa.root(equation, 2.0, 0.5 * d),
    "fixed_point": lambda d: sa.fixed_point(lambda y, p: 0.3 * integrand(y, p) / (1 + y * y) + 0.1 * y, 1.0, 0.5 * d),
    "argmin": lambda d: sa.argmin(lambda y, p: (y - 1) ** 2 + integrand(y, p), 1.0, 0.5 * d),
    "brentq": lambda d: brentq(equation, 0.0, 9.0, args=(0.5 * d,), xtol=1e-14),
    "newton": lambda d: newton(equation, 2.0, args=(0.5 * d,), tol=1e-13),
    "fsolve": lambda d: fsolve(equation, 2.0, args=(0.5 * d,), xtol=1e-13)[0],
    "quad": lambda d: quad(integrand, 0.0, 1.0, args=(0.5 * d,))[0],
    "quad between bounds that move": lambda d: quad(integrand, -(0.5 * d), 0.5 * d, args=(0.5 * d,))[0],
    "quad of a captured product": lambda d: (lambda p: quad(lambda t: integrand(t, p), 0.0, 1.0)[0])(0.5 * d),
}


def slope(f: Callable[[float], float], at: float, by: float) -> float:
    """Return the slope by differences of order four."""
    return (8 * (f(at + by) - f(at - by)) - (f(at + 2 * by) - f(at - 2 * by))) / (12 * by)


@pytest.mark.filterwarnings("ignore:.* in a kernel is:symad.errors.BoundWarning")
@pytest.mark.parametrize("form", FORMS)
def test_slopes_in_a_product_that_is_an_argument(form: str) -> None:
    f = FORMS[form]
    first, second = sa.derivative(f), sa.derivative(sa.derivative(f))
    expected = slope(f, 1.2, 1e-3), slope(lambda x: slope(f, x, 1e-2), 1.2, 1e-2)
    assert abs(expected[0]) > 0.05
    np.testing.assert_allclose((first(1.2), second(1.2)), expected, rtol=1e-5)
    np.testing.assert_allclose((sa.compile(first, 1.2)(1.2), sa.compile(second, 1.2)(1.2)), expected, rtol=1e-5)
