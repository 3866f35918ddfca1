"""Slopes at single points, by difference quotients: where a derivative does not exist, and what it is at a point.

They share no code with the rules: f is evaluated with 50 digits on both sides of the point.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import sympy as sp
from mpmath import mp

from codegen import heads
from codegen.records import dataclass
from symad.classroom.derivation.tidying import attempted
from symad.classroom.equality.hyperdual import constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError
from symad.display.document import Inline

_NEAR, _NEARER = mp.mpf(10) ** -12, mp.mpf(10) ** -18  # distances of the difference quotients
_SAME = mp.mpf(10) ** -8  # of slopes; differences at _NEAR have an error of that order
_JUMP = mp.mpf(10) ** -3
_MOST_DEGREE = 4  # of polynomials whose roots are looked for
_MOST_POINTS = 6
_LARGEST_DENOMINATOR = 1000
_UNBOUNDED = mp.inf


@dataclass(frozen=True)
class Slopes:
    """What f does at a point: its slopes on the left and right (None where f has no values, inf if unbounded)."""

    is_defined: bool
    left: mp.mpf | None = None
    right: mp.mpf | None = None
    jumps: bool = False

    @property
    def exists(self) -> bool:
        """Whether f has a derivative there."""
        sides = (self.left, self.right)
        if not self.is_defined or self.jumps or None in sides or _UNBOUNDED in sides:
            return False
        return bool(abs(self.left - self.right) <= _SAME * (1 + abs(self.left)))

    def why_not(self, name: str) -> tuple[Inline, ...]:
        """Return why f has no derivative there."""
        if not self.is_defined:
            return (name, " is not defined there")
        if self.jumps:
            return (name, " jumps there")
        if _UNBOUNDED in (self.left, self.right):
            return ("the slope grows without bound: the tangent is vertical",)
        if None in (self.left, self.right):
            return (name, " has values on one side only")
        return (
            "the slope is ",
            shown_number(self.left),
            " on the left and ",
            shown_number(self.right),
            " on the right",
        )


def slopes_at(f: sp.Expr, x: sp.Symbol, point: sp.Expr) -> Slopes:
    """Return the slopes of f on both sides of a point.

    >>> x = sp.Symbol("x", real=True)
    >>> at_zero = slopes_at(sp.Abs(x), x, sp.S.Zero)
    >>> at_zero.exists, int(at_zero.left), int(at_zero.right)
    (False, -1, 1)
    """
    with mp.workdps(DIGITS):
        place = mp.mpf(sp.Float(sp.N(point, DIGITS), DIGITS)._mpf_)
        middle = _value(f, x, place)
        if middle is None:
            return Slopes(False)
        sides, jumps = [], False
        for sign in (-1, 1):
            steps = [sign * distance for distance in (_NEAR, _NEARER)]
            values = [_value(f, x, place + step) for step in steps]
            if None in values:
                sides.append(None)
                continue
            near, nearer = ((value - middle) / step for value, step in zip(values, steps, strict=True))
            jumps = jumps or abs(values[1] - middle) > _JUMP
            sides.append(nearer if abs(near - nearer) <= _SAME * (1 + abs(near)) else _UNBOUNDED)
        return Slopes(True, *sides, jumps=jumps)


def _value(f: sp.Expr, x: sp.Symbol, place: mp.mpf) -> mp.mpf | None:
    try:
        value = IndependentValues({x: constant(place)}).of(f)
    except (UnknownValueError, ArithmeticError, ValueError, TypeError):
        return None
    return mp.re(value.real) if value.is_real and mp.isfinite(value.real) else None


def shown_number(number: mp.mpf) -> sp.Expr:
    """Return a number as a fraction if it is one with a small denominator, else with six digits."""
    fraction = Fraction(str(mp.nstr(number, 20))).limit_denominator(_LARGEST_DENOMINATOR)
    if abs(fraction.numerator - number * fraction.denominator) <= _SAME * fraction.denominator:
        return sp.Rational(fraction.numerator, fraction.denominator)
    return sp.Float(str(mp.nstr(number, 6)))


def places_to_look_at(f: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Return the points at which f may have no derivative although it is defined there: kinks and vertical tangents.

    >>> x = sp.Symbol("x", real=True)
    >>> places_to_look_at(sp.Abs(x**2 - 1) + sp.sqrt(x), x)
    [-1, 0, 1]
    """
    places: set[sp.Expr] = set()
    for zero in set(_zeros(f)):
        if zero.is_polynomial(x) and zero.free_symbols == {x} and sp.degree(zero, x) <= _MOST_DEGREE:
            places |= {root for root in attempted(lambda u: sp.Tuple(*sp.roots(u, x)), zero) if root.is_real}
    return sorted(places, key=lambda place: float(place))[:_MOST_POINTS]


def _zeros(f: sp.Expr) -> Iterator[sp.Expr]:
    """Yield the expressions at whose zeros f may have no derivative."""
    for part in sp.preorder_traversal(f):
        if isinstance(part, sp.Abs | sp.sign | heads.cbrt):
            yield part.args[0]
        elif isinstance(part, sp.Pow) and part.exp.is_Rational and part.exp.q != 1 and 0 < part.exp < 1:
            yield part.base
        elif isinstance(part, sp.asin | sp.acos):
            yield from (part.args[0] - 1, part.args[0] + 1)
        elif isinstance(part, sp.core.relational.Relational):
            yield part.lhs - part.rhs
        elif isinstance(part, sp.Max | sp.Min) and len(part.args) == 2:
            yield part.args[0] - part.args[1]
