"""Functions of a constant order, unrolled: spherical Bessel functions and orthogonal polynomials.

Orthogonal polynomials go by their three-term recurrences (DLMF 18.9.1); degrees that are unknown, no integers or high
go to SciPy where it has the function.
"""

from __future__ import annotations

import math

from codegen.errors import LoweringError
from codegen.functions.formula_values import Formula, MachineNumber as Number, cos, exp, scipy, sin, sqrt, where

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


def _polynomial(otherwise: str, first: Formula, step: Formula) -> Formula:
    """Return the formula of p_n from p_0 = 1, p_1 and p_(k+1) = step(k, p_k, p_(k-1)), all of the operands.

    It is SciPy's function where the degree cannot be unrolled.

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(legendre)(2, 0.5), on_floats(chebyshev_first)(3, 0.5), on_floats(chebyshev_second)(2, 0.75)
    (-0.125, -1.0, 1.25)
    >>> on_floats(gegenbauer)(2, 1.0, 0.75), on_floats(assoc_laguerre)(2, 1.0, 2.0)
    (1.25, -1.0)
    """

    def formula(degree: Number, *operands: Number) -> Number:
        n = degree.known
        if n is None or n != int(n) or not 0 <= n <= HIGHEST_ORDER:
            return scipy(otherwise, degree, *operands)
        below, value = degree.constant(1.0), first(*operands)
        for k in range(1, int(n)):
            below, value = value, step(k, value, below, *operands)
        return value if n else degree.constant(1.0)

    return formula


def _chebyshev(k: int, value: Number, below: Number, u: Number) -> Number:
    """T_(k+1) = 2 u T_k - T_(k-1), and so U."""
    return 2.0 * u * value - below


def _gegenbauer(k: int, value: Number, below: Number, a: Number, u: Number) -> Number:
    """(k+1) C_(k+1) = 2 (k+a) u C_k - (k + 2a - 1) C_(k-1)."""
    ahead = (float(k) + a) * u * (2.0 * value)
    behind = (k - 1.0 + 2.0 * a) * below
    return (ahead - behind) / (k + 1.0)


def _laguerre(k: int, value: Number, below: Number, a: Number, u: Number) -> Number:
    """(k+1) L_(k+1) = (2k + 1 + a - u) L_k - (k+a) L_(k-1)."""
    behind = (float(k) + a) * below
    return ((2.0 * k + 1 + a - u) * value - behind) / (k + 1.0)


# (k+1) P_(k+1) = (2k+1) u P_k - k P_(k-1)
legendre: Formula = _polynomial(
    "eval_legendre", lambda u: u, lambda k, p, below, u: (2.0 * k + 1) / (k + 1) * (u * p) - k / (k + 1.0) * below
)
chebyshev_first: Formula = _polynomial("eval_chebyt", lambda u: u, _chebyshev)
chebyshev_second: Formula = _polynomial("eval_chebyu", lambda u: 2.0 * u, _chebyshev)
gegenbauer: Formula = _polynomial("eval_gegenbauer", lambda a, u: 2.0 * a * u, _gegenbauer)
laguerre: Formula = _polynomial(
    "eval_laguerre",
    lambda u: 1.0 + u.constant(0.0) - u,
    lambda k, p, below, u: _laguerre(k, p, below, u.constant(0.0), u),
)
assoc_laguerre: Formula = _polynomial("eval_genlaguerre", lambda a, u: 1.0 + a - u, _laguerre)


def _hermite(name: str, step: Formula) -> Formula:
    """Return the formula of a Hermite polynomial of a constant order, by its recurrence (DLMF 18.9.1).

    >>> from codegen.functions.function_rows import on_floats
    >>> on_floats(hermite)(3, 0.5), on_floats(normal_hermite)(3, 0.5)  # 8 u**3 - 12 u, u**3 - 3 u
    (-5.0, -1.375)
    """

    def formula(order: Number, u: Number) -> Number:
        below, value = u.constant(0.0), u.constant(1.0)
        for k in range(constant_order(order, name)):
            below, value = value, step(k, value, below, u)
        return value

    return formula


hermite: Formula = _hermite("hermite", lambda k, value, below, u: 2.0 * u * value - 2.0 * k * below)
normal_hermite: Formula = _hermite("hermitenorm", lambda k, value, below, u: u * value - float(k) * below)
