"""Functions of a constant order or degree, unrolled: spherical Bessel functions, orthogonal polynomials.

Each is written once over a machine: `Machine` gives the native lowering, `FLOATS` the float function. Orthogonal
polynomials go by their three-term recurrences (DLMF 18.9.1); degrees that are unknown, no integers or high go to SciPy
where it has the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import codegen.functions.machine_templates as native
from codegen.errors import LoweringError

HIGHEST_ORDER = 64  # beyond it the unrolled code grows without a use


def spherical_bessel(machine: Any, order: Any, u: Any) -> Any:
    """Spherical Bessel function j_n(u) for a constant n: power series near 0, upward recurrence where |u| > n.

    Sources: DLMF 10.53.1 (series) and 10.51.1 (recurrence).

    >>> from codegen.functions.function_rows import FLOATS
    >>> spherical_bessel(FLOATS, 1, 0.0), round(spherical_bessel(FLOATS, 1, 2.0), 15)
    (0.0, 0.435397774979992)
    """
    n = constant_order(machine, order, "jn")
    border = float(max(1, n))
    near = machine.compare("olt", machine.abs(u), machine.const(border))
    return machine.select(near, _bessel_series(machine, n, u, border), _bessel_upward(machine, n, u))


def spherical_neumann(machine: Any, order: Any, u: Any) -> Any:
    """Spherical Bessel function y_n(u) for a constant n, by upward recurrence (DLMF 10.51.1); -inf at 0.

    >>> from codegen.functions.function_rows import FLOATS
    >>> round(spherical_neumann(FLOATS, 1, 2.0), 15)
    -0.350612004276055
    """
    n = constant_order(machine, order, "yn")
    below = machine.div(machine.call("llvm.sin.f64", (u,)), u)  # y_(-1)
    value = machine.negate(machine.div(machine.call("llvm.cos.f64", (u,)), u))
    upward = _upward(machine, n, u, below, value)
    at_zero = machine.compare("oeq", u, machine.const(0.0))
    return machine.select(at_zero, machine.const(-math.inf), upward)


def spherical_modified(machine: Any, order: Any, u: Any) -> Any:
    """Modified spherical Bessel function i_n(u) for a constant n: series near 0, sqrt(pi/2u) I_(n+1/2)(u) beyond.

    >>> from codegen.functions.function_rows import FLOATS
    >>> round(spherical_modified(FLOATS, 1, 0.5), 15)
    0.170870708437772
    """
    n = constant_order(machine, order, "spherical_in")
    border = float(max(1, n))
    size = machine.abs(u)
    general = native.scipy("iv")(machine, machine.const(n + 0.5), size)
    far = machine.mul(general, machine.sqrt(machine.div(machine.const(math.pi / 2), size)))
    if n % 2:
        far = machine.select(machine.compare("olt", u, machine.const(0.0)), machine.negate(far), far)
    near = machine.compare("olt", size, machine.const(border))
    return machine.select(near, _bessel_series(machine, n, u, border, 0.5), far)


def spherical_decaying(machine: Any, order: Any, u: Any) -> Any:
    """Modified spherical Bessel function k_n(u) for a constant n, by upward recurrence of positive terms.

    >>> from codegen.functions.function_rows import FLOATS
    >>> round(spherical_decaying(FLOATS, 0, 1.0), 15)
    0.577863674895461
    """
    n = constant_order(machine, order, "spherical_kn")
    decay = machine.mul(machine.const(math.pi / 2), machine.call("exp", (machine.negate(u),)))
    below = value = machine.div(decay, u)
    for k in range(n):
        factor = machine.div(machine.const(2.0 * k + 1.0), u)
        below, value = value, machine.add(machine.mul(factor, value), below)
    return value


def _bessel_series(machine: Any, n: int, u: Any, border: float, half: float = -0.5) -> Any:
    """u**n / (2n+1)!! times the sum of (-u*u/2)**k / (k! (2n+3)...(2n+2k+1)), by Horner's rule.

    With half=+0.5 the sum is that of i_n.
    """
    z = machine.mul(machine.const(half), machine.mul(u, u))
    term, count = 1.0, 0
    while term > 1e-18:
        count += 1
        term *= border**2 / 2 / (count * (2 * n + 2 * count + 1))
    total = machine.const(1.0)
    for k in range(count, 0, -1):
        ratio = machine.div(z, machine.const(float(k * (2 * n + 2 * k + 1))))
        total = machine.add(machine.const(1.0), machine.mul(ratio, total))
    power = machine.const(1.0)
    for k in range(n):
        power = machine.mul(power, machine.div(u, machine.const(2.0 * k + 3.0)))
    return machine.mul(power, total)


def _bessel_upward(machine: Any, n: int, u: Any) -> Any:
    below = machine.div(machine.call("llvm.cos.f64", (u,)), u)  # j_(-1)
    return _upward(machine, n, u, below, machine.div(machine.call("llvm.sin.f64", (u,)), u))


def _upward(machine: Any, n: int, u: Any, below: Any, value: Any) -> Any:
    for k in range(n):
        factor = machine.div(machine.const(2.0 * k + 1.0), u)
        below, value = value, machine.sub(machine.mul(factor, value), below)
    return value


def constant_order(machine: Any, order: Any, name: str) -> int:
    """Return an order as a number; LoweringError when it is not a constant integer in range."""
    value = machine.constant(order)
    if value is None or value != math.floor(value) or not 0 <= value <= HIGHEST_ORDER:
        raise LoweringError(
            f"{name} of order {'unknown while compiling' if value is None else value}",
            why=f"its order has to be a constant integer from 0 to {HIGHEST_ORDER}",
            do="pass the order as a number",
        )
    return int(value)


Step = Callable[[int, Any, Any], Any]  # (k, p_k, p_(k-1)) -> p_(k+1)


def _polynomial(machine: Any, degree: Any, otherwise: str, operands: tuple[Any, ...], first: Any, step: Step) -> Any:
    """p_n from p_0 = 1, p_1 and the recurrence; SciPy's function where the degree cannot be unrolled."""
    n = machine.constant(degree)
    if n is None or n != int(n) or not 0 <= n <= HIGHEST_ORDER:
        return native.scipy(otherwise)(machine, degree, *operands)
    below, value = machine.const(1.0), first
    for k in range(1, int(n)):
        below, value = value, step(k, value, below)
    return value if n else machine.const(1.0)


def legendre(machine: Any, degree: Any, u: Any) -> Any:
    """P_n: (k+1) P_(k+1) = (2k+1) u P_k - k P_(k-1).

    >>> from codegen.functions.function_rows import FLOATS
    >>> legendre(FLOATS, 2, 0.5)
    -0.125
    """

    def step(k: int, value: Any, below: Any) -> Any:
        ahead = machine.mul(machine.const((2.0 * k + 1) / (k + 1)), machine.mul(u, value))
        return machine.sub(ahead, machine.mul(machine.const(k / (k + 1.0)), below))

    return _polynomial(machine, degree, "eval_legendre", (u,), u, step)


def chebyshev_first(machine: Any, degree: Any, u: Any) -> Any:
    """T_n: T_(k+1) = 2 u T_k - T_(k-1).

    >>> from codegen.functions.function_rows import FLOATS
    >>> chebyshev_first(FLOATS, 3, 0.5)
    -1.0
    """
    return _polynomial(machine, degree, "eval_chebyt", (u,), u, _chebyshev(machine, u))


def chebyshev_second(machine: Any, degree: Any, u: Any) -> Any:
    """U_n: U_(k+1) = 2 u U_k - U_(k-1), U_1 = 2 u.

    >>> from codegen.functions.function_rows import FLOATS
    >>> chebyshev_second(FLOATS, 2, 0.75)
    1.25
    """
    first = machine.mul(machine.const(2.0), u)
    return _polynomial(machine, degree, "eval_chebyu", (u,), first, _chebyshev(machine, u))


def _chebyshev(machine: Any, u: Any) -> Step:
    twice = machine.mul(machine.const(2.0), u)
    return lambda k, value, below: machine.sub(machine.mul(twice, value), below)


def gegenbauer(machine: Any, degree: Any, a: Any, u: Any) -> Any:
    """C_n: (k+1) C_(k+1) = 2 (k+a) u C_k - (k + 2a - 1) C_(k-1), C_1 = 2 a u.

    >>> from codegen.functions.function_rows import FLOATS
    >>> gegenbauer(FLOATS, 2, 1.0, 0.75)
    1.25
    """
    two = machine.const(2.0)

    def step(k: int, value: Any, below: Any) -> Any:
        ahead = machine.mul(machine.mul(machine.add(machine.const(float(k)), a), u), machine.mul(two, value))
        behind = machine.mul(machine.add(machine.const(k - 1.0), machine.mul(two, a)), below)
        return machine.div(machine.sub(ahead, behind), machine.const(k + 1.0))

    return _polynomial(machine, degree, "eval_gegenbauer", (a, u), machine.mul(machine.mul(two, a), u), step)


def laguerre(machine: Any, degree: Any, u: Any) -> Any:
    """L_n, the polynomial of parameter 0."""
    return _laguerre(machine, degree, machine.const(0.0), u, "eval_laguerre", (u,))


def assoc_laguerre(machine: Any, degree: Any, a: Any, u: Any) -> Any:
    """L_n of parameter a: (k+1) L_(k+1) = (2k + 1 + a - u) L_k - (k+a) L_(k-1), L_1 = 1 + a - u.

    >>> from codegen.functions.function_rows import FLOATS
    >>> assoc_laguerre(FLOATS, 2, 1.0, 2.0)
    -1.0
    """
    return _laguerre(machine, degree, a, u, "eval_genlaguerre", (a, u))


def _laguerre(machine: Any, degree: Any, a: Any, u: Any, otherwise: str, operands: tuple[Any, ...]) -> Any:
    def centre(k: int) -> Any:
        return machine.sub(machine.add(machine.const(2.0 * k + 1), a), u)

    def step(k: int, value: Any, below: Any) -> Any:
        behind = machine.mul(machine.add(machine.const(float(k)), a), below)
        return machine.div(machine.sub(machine.mul(centre(k), value), behind), machine.const(k + 1.0))

    return _polynomial(machine, degree, otherwise, operands, centre(0), step)


def hermite(machine: Any, order: Any, u: Any) -> Any:
    """Hermite polynomial H_n(u) for a constant n, by H_(k+1) = 2 u H_k - 2 k H_(k-1) (DLMF 18.9.1).

    >>> from codegen.functions.function_rows import FLOATS
    >>> hermite(FLOATS, 3, 0.5)  # 8 u**3 - 12 u
    -5.0
    """
    below, value = machine.const(0.0), machine.const(1.0)
    twice = machine.mul(machine.const(2.0), u)
    for k in range(constant_order(machine, order, "hermite")):
        below, value = value, machine.sub(machine.mul(twice, value), machine.mul(machine.const(2.0 * k), below))
    return value


def normal_hermite(machine: Any, order: Any, u: Any) -> Any:
    """Hermite polynomial He_n(u) for a constant n, by He_(k+1) = u He_k - k He_(k-1) (DLMF 18.9.1).

    >>> from codegen.functions.function_rows import FLOATS
    >>> normal_hermite(FLOATS, 3, 0.5)  # u**3 - 3 u
    -1.375
    """
    below, value = machine.const(0.0), machine.const(1.0)
    for k in range(constant_order(machine, order, "hermitenorm")):
        below, value = value, machine.sub(machine.mul(u, value), machine.mul(machine.const(float(k)), below))
    return value
