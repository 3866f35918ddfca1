"""Orthogonal polynomials of a constant degree, unrolled by their three-term recurrences (DLMF 18.9.1).

Each is written once over a machine: `Machine` gives the native lowering, `FLOATS` the float function. Degrees that are
unknown, no integers or high go to SciPy where it has the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import codegen.functions.machine_templates as native
from codegen.functions.recurrences import HIGHEST_ORDER, constant_order

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

    >>> from codegen.functions.float_machine import FLOATS
    >>> legendre(FLOATS, 2, 0.5)
    -0.125
    """

    def step(k: int, value: Any, below: Any) -> Any:
        ahead = machine.mul(machine.const((2.0 * k + 1) / (k + 1)), machine.mul(u, value))
        return machine.sub(ahead, machine.mul(machine.const(k / (k + 1.0)), below))

    return _polynomial(machine, degree, "eval_legendre", (u,), u, step)


def chebyshev_first(machine: Any, degree: Any, u: Any) -> Any:
    """T_n: T_(k+1) = 2 u T_k - T_(k-1).

    >>> from codegen.functions.float_machine import FLOATS
    >>> chebyshev_first(FLOATS, 3, 0.5)
    -1.0
    """
    return _polynomial(machine, degree, "eval_chebyt", (u,), u, _chebyshev(machine, u))


def chebyshev_second(machine: Any, degree: Any, u: Any) -> Any:
    """U_n: U_(k+1) = 2 u U_k - U_(k-1), U_1 = 2 u.

    >>> from codegen.functions.float_machine import FLOATS
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

    >>> from codegen.functions.float_machine import FLOATS
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

    >>> from codegen.functions.float_machine import FLOATS
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

    >>> from codegen.functions.float_machine import FLOATS
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

    >>> from codegen.functions.float_machine import FLOATS
    >>> normal_hermite(FLOATS, 3, 0.5)  # u**3 - 3 u
    -1.375
    """
    below, value = machine.const(0.0), machine.const(1.0)
    for k in range(constant_order(machine, order, "hermitenorm")):
        below, value = value, machine.sub(machine.mul(u, value), machine.mul(machine.const(float(k)), below))
    return value
