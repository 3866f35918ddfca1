"""Functions of a constant integer order, unrolled: the four spherical Bessel functions.

Each is written once over a machine: `Machine` gives the native lowering, `FLOATS` the float function.
"""

from __future__ import annotations

import math
from typing import Any

import codegen.functions.machine_templates as native
from codegen.errors import LoweringError

HIGHEST_ORDER = 64  # beyond it the unrolled code grows without a use


def spherical_bessel(machine: Any, order: Any, u: Any) -> Any:
    """Spherical Bessel function j_n(u) for a constant n: power series near 0, upward recurrence where |u| > n.

    Sources: DLMF 10.53.1 (series) and 10.51.1 (recurrence).

    >>> from codegen.functions.float_machine import FLOATS
    >>> spherical_bessel(FLOATS, 1, 0.0), round(spherical_bessel(FLOATS, 1, 2.0), 15)
    (0.0, 0.435397774979992)
    """
    n = constant_order(machine, order, "jn")
    border = float(max(1, n))
    near = machine.compare("olt", machine.abs(u), machine.const(border))
    return machine.select(near, _bessel_series(machine, n, u, border), _bessel_upward(machine, n, u))


def spherical_neumann(machine: Any, order: Any, u: Any) -> Any:
    """Spherical Bessel function y_n(u) for a constant n, by upward recurrence (DLMF 10.51.1); -inf at 0.

    >>> from codegen.functions.float_machine import FLOATS
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

    >>> from codegen.functions.float_machine import FLOATS
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

    >>> from codegen.functions.float_machine import FLOATS
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
