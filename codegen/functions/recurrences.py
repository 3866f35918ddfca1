"""Functions of a constant order, unrolled: spherical Bessel functions and orthogonal polynomials.

Orthogonal polynomials go by their three-term recurrences (DLMF 18.9.1); degrees that are unknown, no integers or high
go to SciPy where it has the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from codegen.errors import LoweringError
from codegen.functions.formula_values import MachineNumber as Number, cos, exp, scipy, sin, sqrt, where

HIGHEST_ORDER = 64  # beyond it the unrolled code grows without a use


def spherical_bessel(order: Number, u: Number) -> Number:
    """Spherical Bessel function j_n(u) for a constant n: power series near 0, upward recurrence where |u| > n.

    Sources: DLMF 10.53.1 (series) and 10.51.1 (recurrence).

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(spherical_bessel)(1, 0.0), round(on_floats(spherical_bessel)(1, 2.0), 15)
    (0.0, 0.435397774979992)
    """
    n = constant_order(order, "jn")
    border = float(max(1, n))
    near = abs(u) < border
    series = _bessel_series(n, u, border)
    below = cos(u) / u  # j_(-1)
    return where(near, series, _upward(n, u, below, sin(u) / u))


def spherical_neumann(order: Number, u: Number) -> Number:
    """Spherical Bessel function y_n(u) for a constant n, by upward recurrence (DLMF 10.51.1); -inf at 0.

    >>> from codegen.functions.function_rows import on_floats
    >>> round(on_floats(spherical_neumann)(1, 2.0), 15)
    -0.350612004276055
    """
    n = constant_order(order, "yn")
    below = sin(u) / u  # y_(-1)
    upward = _upward(n, u, below, -(cos(u) / u))
    return where(u.equals(0.0), -math.inf, upward)


def spherical_modified(order: Number, u: Number) -> Number:
    """Modified spherical Bessel function i_n(u) for a constant n: series near 0, sqrt(pi/2u) I_(n+1/2)(u) beyond.

    >>> from codegen.functions.function_rows import on_floats
    >>> round(on_floats(spherical_modified)(1, 0.5), 15)
    0.170870708437772
    """
    n = constant_order(order, "spherical_in")
    border = float(max(1, n))
    size = abs(u)
    far = scipy("iv", u.constant(n + 0.5), size) * sqrt(math.pi / 2 / size)
    if n % 2:
        far = where(u < 0.0, -far, far)
    return where(size < border, _bessel_series(n, u, border, 0.5), far)


def spherical_decaying(order: Number, u: Number) -> Number:
    """Modified spherical Bessel function k_n(u) for a constant n, by upward recurrence of positive terms.

    >>> from codegen.functions.function_rows import on_floats
    >>> round(on_floats(spherical_decaying)(0, 1.0), 15)
    0.577863674895461
    """
    below = value = math.pi / 2 * exp(-u) / u
    for k in range(constant_order(order, "spherical_kn")):
        below, value = value, (2.0 * k + 1.0) / u * value + below
    return value


def _bessel_series(n: int, u: Number, border: float, half: float = -0.5) -> Number:
    """u**n / (2n+1)!! times the sum of (-u*u/2)**k / (k! (2n+3)...(2n+2k+1)), by Horner's rule.

    With half=+0.5 the sum is that of i_n.
    """
    z = half * (u * u)
    term, count = 1.0, 0
    while term > 1e-18:
        count += 1
        term *= border**2 / 2 / (count * (2 * n + 2 * count + 1))
    total, power = u.constant(1.0), u.constant(1.0)
    for k in range(count, 0, -1):
        total = 1.0 + z / float(k * (2 * n + 2 * k + 1)) * total
    for k in range(n):
        power = power * (u / (2.0 * k + 3.0))
    return power * total


def _upward(n: int, u: Number, below: Number, value: Number) -> Number:
    for k in range(n):
        below, value = value, (2.0 * k + 1.0) / u * value - below
    return value


def constant_order(order: Number, name: str) -> int:
    """Return an order as a number; LoweringError when it is not a constant integer in range."""
    value = order.known
    if value is None or value != math.floor(value) or not 0 <= value <= HIGHEST_ORDER:
        raise LoweringError(
            f"{name} of order {'unknown while compiling' if value is None else value}",
            why=f"its order has to be a constant integer from 0 to {HIGHEST_ORDER}",
            do="pass the order as a number",
        )
    return int(value)


Step = Callable[[int, Number, Number], Number]  # (k, p_k, p_(k-1)) -> p_(k+1)


def _polynomial(degree: Number, otherwise: str, operands: tuple[Number, ...], first: Number, step: Step) -> Number:
    """p_n from p_0 = 1, p_1 and the recurrence; SciPy's function where the degree cannot be unrolled."""
    n = degree.known
    if n is None or n != int(n) or not 0 <= n <= HIGHEST_ORDER:
        return scipy(otherwise, degree, *operands)
    below, value = degree.constant(1.0), first
    for k in range(1, int(n)):
        below, value = value, step(k, value, below)
    return value if n else degree.constant(1.0)


def legendre(degree: Number, u: Number) -> Number:
    """P_n: (k+1) P_(k+1) = (2k+1) u P_k - k P_(k-1).

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(legendre)(2, 0.5)
    -0.125
    """

    def step(k: int, value: Number, below: Number) -> Number:
        return (2.0 * k + 1) / (k + 1) * (u * value) - k / (k + 1.0) * below

    return _polynomial(degree, "eval_legendre", (u,), u, step)


def chebyshev_first(degree: Number, u: Number) -> Number:
    """T_n: T_(k+1) = 2 u T_k - T_(k-1).

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(chebyshev_first)(3, 0.5)
    -1.0
    """
    return _polynomial(degree, "eval_chebyt", (u,), u, lambda k, value, below: 2.0 * u * value - below)


def chebyshev_second(degree: Number, u: Number) -> Number:
    """U_n: U_(k+1) = 2 u U_k - U_(k-1), U_1 = 2 u.

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(chebyshev_second)(2, 0.75)
    1.25
    """
    return _polynomial(degree, "eval_chebyu", (u,), 2.0 * u, lambda k, value, below: 2.0 * u * value - below)


def gegenbauer(degree: Number, a: Number, u: Number) -> Number:
    """C_n: (k+1) C_(k+1) = 2 (k+a) u C_k - (k + 2a - 1) C_(k-1), C_1 = 2 a u.

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(gegenbauer)(2, 1.0, 0.75)
    1.25
    """

    def step(k: int, value: Number, below: Number) -> Number:
        ahead = (float(k) + a) * u * (2.0 * value)
        behind = (k - 1.0 + 2.0 * a) * below
        return (ahead - behind) / (k + 1.0)

    return _polynomial(degree, "eval_gegenbauer", (a, u), 2.0 * a * u, step)


def laguerre(degree: Number, u: Number) -> Number:
    """L_n, the polynomial of parameter 0."""
    return _laguerre(degree, u.constant(0.0), u, "eval_laguerre", (u,))


def assoc_laguerre(degree: Number, a: Number, u: Number) -> Number:
    """L_n of parameter a: (k+1) L_(k+1) = (2k + 1 + a - u) L_k - (k+a) L_(k-1), L_1 = 1 + a - u.

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(assoc_laguerre)(2, 1.0, 2.0)
    -1.0
    """
    return _laguerre(degree, a, u, "eval_genlaguerre", (a, u))


def _laguerre(degree: Number, a: Number, u: Number, otherwise: str, operands: tuple[Number, ...]) -> Number:
    def step(k: int, value: Number, below: Number) -> Number:
        behind = (float(k) + a) * below
        return ((2.0 * k + 1 + a - u) * value - behind) / (k + 1.0)

    return _polynomial(degree, otherwise, operands, 1.0 + a - u, step)


def hermite(order: Number, u: Number) -> Number:
    """Hermite polynomial H_n(u) for a constant n, by H_(k+1) = 2 u H_k - 2 k H_(k-1) (DLMF 18.9.1).

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(hermite)(3, 0.5)  # 8 u**3 - 12 u
    -5.0
    """
    below, value = u.constant(0.0), u.constant(1.0)
    for k in range(constant_order(order, "hermite")):
        below, value = value, 2.0 * u * value - 2.0 * k * below
    return value


def normal_hermite(order: Number, u: Number) -> Number:
    """Hermite polynomial He_n(u) for a constant n, by He_(k+1) = u He_k - k He_(k-1) (DLMF 18.9.1).

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(normal_hermite)(3, 0.5)  # u**3 - 3 u
    -1.375
    """
    below, value = u.constant(0.0), u.constant(1.0)
    for k in range(constant_order(order, "hermitenorm")):
        below, value = value, u * value - float(k) * below
    return value
