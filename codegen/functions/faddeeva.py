"""The Faddeeva function w(z) = exp(-z**2) erfc(-iz) at z = u + iv and its derivatives, as real and imaginary parts.

In the upper half plane w is a trapezoidal rule for its integral, at nodes t, with what the pole of the integrand adds;
of the two sets of nodes that one is taken which has none near u. Source: M. Al Azah and S. N. Chandler-Wilde,
Computation of the complex error function using modified trapezoidal rules, SIAM J. Numer. Anal. 59 (2021); a node and
its mirror image are one term here, so that u or v is a factor of a sum of positive parts. Derivatives follow by
w_(n+1) = -2z w_n - 2n w_(n-1) (DLMF 7.10.2), which cancels for large z: there the sum itself is differentiated.
"""

from __future__ import annotations

import math
from functools import reduce

from codegen.functions.formula_values import Formula, MachineNumber as Number, cos, exp, floor, hypot, sin, where
from codegen.functions.recurrences import constant_order

TERMS = 12
STEP = math.sqrt(math.pi / TERMS)
DEEP = math.pi / STEP  # above this line the pole adds nothing
FAR = 6.5  # beyond it derivatives are those of the sum
VERY_FAR = 1e8  # beyond it w is i/(z sqrt(pi)), to all digits
NEAR_AXIS = 1e-3  # where exp(-z**2) is seen beside a sum that is nearly real
MIDDLES = [(k + 0.5) * STEP for k in range(TERMS)]
CORNERS = [k * STEP for k in range(TERMS)]
Pair = tuple[Number, Number]  # real and imaginary part


def faddeeva(part: int) -> Formula:
    """Return the formula of the real (0) or imaginary (1) part of the n-th derivative of w at u + iv, for constant n.

    >>> from codegen.functions.function_rows import on_floats
    >>> round(on_floats(faddeeva(0))(0, 1.0, 0.0), 15), on_floats(faddeeva(1))(0, 0.0, 2.0)
    (0.367879441171442, 0.0)
    """
    return lambda order, u, v: _derivative(constant_order(order, "faddeeva"), u, v)[part]


def _derivative(n: int, u: Number, v: Number) -> Pair:
    """In the lower half plane w(z) = 2 exp(-z**2) - w(-z)."""
    below = v < 0.0
    x, y = where(below, -u, u), abs(v)
    above = _upper(n, x, y)
    gaussian = _gaussian(n, u, v)
    odd = 1.0 if n % 2 else -1.0
    return tuple(  # type: ignore[return-value]
        where(below, 2.0 * g + odd * w, w) for g, w in zip(gaussian, above, strict=True)
    )


def _upper(n: int, x: Number, y: Number) -> Pair:
    start = _value(x, y)
    size = hypot(x, y)
    if not n:
        real, imaginary = y / size / size, x / size / size
        scale = 1.0 / math.sqrt(math.pi)
        return _choice(size > VERY_FAR, _finite(size, scale * real, scale * imaginary), start)
    first = _twice_product(x, y, start)
    near = _recurrence(n, x, y, start, (first[0], first[1] + 2.0 / math.sqrt(math.pi)))
    gaussian = _gaussian(n, x, y)
    on_axis = y < NEAR_AXIS
    real, imaginary = (s + where(on_axis, g, 0.0) for s, g in zip(_sum_of_powers(n, x, y), gaussian, strict=True))
    return _choice(size > FAR, _finite(size, real, imaginary), near)


def _finite(size: Number, real: Number, imaginary: Number) -> Pair:
    """0 at infinity."""
    endless = size.equals(math.inf)
    return where(endless, 0.0, real), where(endless, 0.0, imaginary)


def _value(x: Number, y: Number) -> Pair:
    """Return w in the upper half plane: the sum over nodes, and the pole's part."""
    places = x * (1.0 / STEP)
    phase = places - floor(places)
    at_corners = abs(phase - 0.5) <= 0.25
    squares = x * x + y * y
    pairs = []
    for middle, corner in zip(MIDDLES, CORNERS, strict=True):
        node = where(at_corners, x.constant(corner), middle)
        weight = where(at_corners, x.constant(math.exp(-corner * corner) * (0.5 if not corner else 1.0)),
                       math.exp(-middle * middle))  # fmt: skip
        left, right, square = x - node, x + node, node * node
        scaled = weight / ((left * left + y * y) * (right * right + y * y))
        pairs.append((scaled * (squares + square), scaled * (squares - square)))
    real, imaginary = (reduce(lambda a, b: a + b, parts) for parts in zip(*pairs, strict=True))
    scale = 2.0 * STEP / math.pi
    pole = _pole(x, y, places, at_corners)
    is_deep = y >= DEEP
    return (scale * y * real + where(is_deep, 0.0, pole[0]), scale * x * imaginary + where(is_deep, 0.0, pole[1]))


def _pole(x: Number, y: Number, places: Number, at_corners: Number) -> Pair:
    """2 exp(-z**2) / (1 +- exp(-2 i pi z / STEP)): the sign is - at corners."""
    sign = where(at_corners, x.constant(-1.0), 1.0)
    growth, turn = sign * exp(y * (2.0 * math.pi / STEP)), places * (2.0 * math.pi)
    real, imaginary = 1.0 + growth * cos(turn), -(growth * sin(turn))
    top = _gaussian(0, x, y)
    square = 0.5 * (real * real + imaginary * imaginary)
    return ((top[0] * real + top[1] * imaginary) / square, (top[1] * real - top[0] * imaginary) / square)


def _gaussian(n: int, x: Number, y: Number) -> Pair:
    """Return the n-th derivative of exp(-z**2)."""
    size, angle = exp((y - x) * (y + x)), 2.0 * x * y
    start = (size * cos(angle), -(size * sin(angle)))
    return _recurrence(n, x, y, start, _twice_product(x, y, start))


def _recurrence(n: int, x: Number, y: Number, start: Pair, first: Pair) -> Pair:
    """Return f_n for f_(k+1) = -2z f_k - 2k f_(k-1)."""
    before, now = start, first
    if not n:
        return start
    for k in range(1, n):
        product = _twice_product(x, y, now)
        before, now = now, (product[0] - 2.0 * k * before[0], product[1] - 2.0 * k * before[1])
    return now


def _twice_product(x: Number, y: Number, f: Pair) -> Pair:
    """-2 z f."""
    return -2.0 * (x * f[0] - y * f[1]), -2.0 * (x * f[1] + y * f[0])


def _sum_of_powers(n: int, x: Number, y: Number) -> Pair:
    """(-1)**n n! i STEP/pi times the sum of exp(-t**2) (z - t)**-(n+1) over nodes on both sides."""
    total: Pair | None = None
    for node in MIDDLES:
        for place in (node, -node):
            left = x - place
            square = left * left + y * y
            inverse = (left / square, -(y / square))
            power = inverse
            for _ in range(n):
                power = (power[0] * inverse[0] - power[1] * inverse[1], power[0] * inverse[1] + power[1] * inverse[0])
            term = (math.exp(-node * node) * power[0], math.exp(-node * node) * power[1])
            total = term if total is None else (total[0] + term[0], total[1] + term[1])
    assert total is not None
    scale = (-1.0) ** n * math.factorial(n) * STEP / math.pi
    return -scale * total[1], scale * total[0]


def _choice(test: Number, first: Pair, second: Pair) -> Pair:
    return where(test, first[0], second[0]), where(test, first[1], second[1])
