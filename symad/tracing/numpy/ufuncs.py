"""The table of ufuncs: NumPy's names, and the node that each records (`special_ufuncs` adds SciPy's).

Rows are looked up by `ufunc.__name__`. Adding a ufunc is adding a row.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import sympy as sp

import codegen.heads as h
import symad.tracing.values.node_builders as op
from symad.graph.graph import Graph
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.constant_nodes import constant, fold, is_boolean
from symad.tracing.values.node_builders import Build, commutative, comparison, composed, connective, function, scaled

_HALF = Fraction(1, 2)
_LOG_2 = math.log(2.0)


def _floor_divide(graph: Graph, left: int, right: int) -> int:
    """(u - u mod v) / v, rounded: as NumPy does it, so that 1.0 // 0.1 is 9."""
    folded = fold(graph, (left, right), lambda a, b: a // b if b else None, np.floor_divide)
    if folded is not None:
        return folded
    divisor = constant(graph, right)
    if divisor == 0:
        return op.divide(graph, left, right)
    whole = op.subtract(graph, left, op.remainder(graph, left, right))
    signed = _with_sign(graph, whole, left)  # a difference that is 0 has lost the sign
    quotient = graph.node(h.rint, op.divide(graph, signed, right))
    is_ordinary = divisor is not None and -math.inf < divisor < math.inf
    return quotient if is_ordinary else _or_by_zero_or_infinity(graph, left, right, quotient)


def _or_by_zero_or_infinity(graph: Graph, left: int, right: int, quotient: int) -> int:
    """u // v by 0, which is u / v, and by an infinity, which is 0 or -1; else the quotient."""
    size, zero, one = _absolute(graph, right), graph.number(0), graph.number(1)
    ordinary = graph.pair(sp.And, _less(graph, zero, size), _less(graph, size, graph.number(math.inf)))
    plain = op.divide(graph, left, op.select(graph, ordinary, one, right))
    signs = [graph.node(sp.sign, operand) for operand in (left, right)]
    against = _less(graph, op.multiply(graph, *signs), zero)
    special = op.select(graph, against, op.subtract(graph, plain, one), plain)
    return op.select(graph, ordinary, quotient, special)


def _fraction(graph: Graph, u: int) -> int:
    """What is behind the point, with the sign of u; 0 of an infinity."""
    infinite = UFUNCS["isinf"](graph, u)
    rest = UFUNCS["fmod"](graph, u, graph.number(1))
    return op.select(graph, infinite, _with_sign(graph, graph.number(0.0), u), rest)


def _load_exponent(graph: Graph, u: int, exponent: int) -> int:
    """u 2**n in two steps: 2**n alone may be too large or too small for a float."""
    half = UFUNCS["floor"](graph, op.multiply(graph, exponent, graph.number(_HALF)))
    rest = op.subtract(graph, exponent, half)
    for part in (half, rest):
        u = op.multiply(graph, u, op.power(graph, graph.number(2), part))
    return u


def _logaddexp2(graph: Graph, left: int, right: int) -> int:
    log_2 = graph.number(_LOG_2)
    total = graph.pair(h.logaddexp, op.multiply(graph, left, log_2), op.multiply(graph, right, log_2))
    return op.divide(graph, total, log_2)


def _is_nan(graph: Graph, operand: int) -> int:
    """not |u| <= inf: the one comparison that only NaN fails, and no algebra removes."""
    return _not(graph, _less_equal(graph, _absolute(graph, operand), graph.number(math.inf)))


def _conjugate(graph: Graph, operand: int) -> int:
    check_real("np.conjugate")
    return operand


def _skipping_nan(pick: Build, numeric: Callable[..., float]) -> Build:
    """fmax and fmin: an operand that is NaN gives way to the other one."""

    def build(graph: Graph, left: int, right: int) -> int:
        folded = fold(graph, (left, right), None, numeric)
        if folded is not None:
            return folded
        chosen = pick(graph, left, right)
        for operand, other in ((left, right), (right, left)):
            if not is_boolean(graph, operand):
                chosen = op.select(graph, _is_nan(graph, operand), other, chosen)
        return chosen

    return build


_absolute = function(sp.Abs, np.abs, abs)
_with_sign = function(h.copysign, np.copysign)
_less = comparison(sp.StrictLessThan, operator.lt)
_less_equal = comparison(sp.LessThan, operator.le)
_equal = comparison(sp.Equality, operator.eq)
_not = connective(sp.Not, operator.not_)
_and = (sp.And, lambda a, b: a and b)
_or = (sp.Or, lambda a, b: a or b)
_maximum = commutative(sp.Max, sp.Or, max, np.maximum)
_minimum = commutative(sp.Min, sp.And, min, np.minimum)

# heads of the functions that need nothing else: NumPy's own fold constants
_PLAIN = {
    "copysign": h.copysign, "cbrt": h.cbrt, "hypot": h.hypot, "heaviside": sp.Heaviside, "exp": sp.exp,
    "exp2": h.exp2, "expm1": h.expm1, "log": sp.log, "log2": h.log2, "log10": h.log10, "log1p": h.log1p,
    "logaddexp": h.logaddexp, "sin": sp.sin, "cos": sp.cos, "tan": sp.tan, "arcsin": sp.asin, "arccos": sp.acos,
    "arctan": sp.atan, "arctan2": sp.atan2, "sinh": sp.sinh, "cosh": sp.cosh, "tanh": sp.tanh, "arcsinh": sp.asinh,
    "arccosh": sp.acosh, "arctanh": sp.atanh,
}  # fmt: skip
UFUNCS: dict[str, Build] = {
    **{name: function(head, getattr(np, name)) for name, head in _PLAIN.items()},
    # arithmetic
    "add": op.add,
    "subtract": op.subtract,
    "multiply": op.multiply,
    "divide": op.divide,
    "floor_divide": composed(_floor_divide),
    "remainder": op.remainder,
    "fmod": function(h.fmod, np.fmod, lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1) if b else None),
    "power": op.power,
    "float_power": op.power,
    "negative": op.negative,
    "positive": op.positive,
    "conjugate": _conjugate,
    "absolute": _absolute,
    "fabs": _absolute,
    "sign": function(sp.sign, np.sign, lambda u: (u > 0) - (u < 0)),
    "square": op.power_of(2, np.square),
    "reciprocal": op.power_of(-1, np.reciprocal),
    "sqrt": op.power_of(_HALF, np.sqrt),
    "ldexp": composed(_load_exponent),
    # rounding
    "rint": function(h.rint, np.rint, round),
    "floor": function(sp.floor, np.floor, math.floor),
    "ceil": function(sp.ceiling, np.ceil, math.ceil),
    "trunc": function(h.trunc, np.trunc, math.trunc),
    # exponentials and angles
    "logaddexp2": composed(_logaddexp2),
    "degrees": scaled(180.0 / math.pi),
    "rad2deg": scaled(180.0 / math.pi),
    "radians": scaled(math.pi / 180.0),
    "deg2rad": scaled(math.pi / 180.0),
    # order
    "maximum": _maximum,
    "fmax": _skipping_nan(_maximum, np.fmax),
    "minimum": _minimum,
    "fmin": _skipping_nan(_minimum, np.fmin),
    "clip": lambda graph, u, low, high: _minimum(graph, _maximum(graph, u, low), high),
    "greater": comparison(sp.StrictGreaterThan, operator.gt),
    "greater_equal": comparison(sp.GreaterThan, operator.ge),
    "less": _less,
    "less_equal": _less_equal,
    "equal": _equal,
    "not_equal": comparison(sp.Unequality, operator.ne),
    # truth values
    "logical_and": connective(*_and),
    "logical_or": connective(*_or),
    "logical_not": _not,
    "logical_xor": op.exclusive_or(strict=False),
    "bitwise_and": connective(*_and, strict=True),
    "bitwise_or": connective(*_or, strict=True),
    "invert": connective(sp.Not, operator.not_, strict=True),
    "bitwise_xor": op.exclusive_or(strict=True),
    "isfinite": composed(lambda graph, u: _less(graph, _absolute(graph, u), graph.number(math.inf))),
    "isinf": composed(lambda graph, u: _equal(graph, _absolute(graph, u), graph.number(math.inf))),
    "isnan": composed(_is_nan),
    "signbit": composed(lambda graph, u: _less(graph, _with_sign(graph, graph.number(1.0), u), graph.number(0))),
}


# Ufuncs with several outputs: one builder for each.
def _exponent(graph: Graph, u: int) -> int:
    """The exponent of the power of 2 below which |u| lies, by its logarithm, which may be one off; 0 of 0."""
    size, one = _absolute(graph, u), graph.number(1)
    log = UFUNCS["log2"](graph, size)
    near = op.add(graph, UFUNCS["floor"](graph, log), one)
    part = _load_exponent(graph, size, op.negative(graph, near))
    above = op.select(graph, _less(graph, part, one), near, op.add(graph, near, one))
    below = op.select(graph, _less(graph, part, graph.number(_HALF)), op.subtract(graph, near, one), above)
    finite = _less(graph, UFUNCS["absolute"](graph, log), graph.number(math.inf))
    return op.select(graph, finite, below, graph.number(0))


def _mantissa(graph: Graph, u: int) -> int:
    return _load_exponent(graph, u, op.negative(graph, _exponent(graph, u)))


SEVERAL_OUTPUTS: dict[str, tuple[Build, ...]] = {
    "frexp": (composed(_mantissa), composed(_exponent)),
    "divmod": (UFUNCS["floor_divide"], UFUNCS["remainder"]),
    "modf": (composed(_fraction), UFUNCS["trunc"]),
}
