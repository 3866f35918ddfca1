"""The table of heads in ball arithmetic, over the rigorous functions of python-flint (Arb).

A value is an `arb` that contains the exact number, or a truth value: True, False, or None if overlapping balls leave it
undecided. If both sides of a choice are possible, the result is a ball around both. The ball `nan` means that nothing
is known: it contains a pole or the end of a domain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, reduce
from typing import Any

import sympy as sp
from mpmath import mp
from mpmath.libmp import from_man_exp
from sympy.codegen import cfunctions

import codegen.heads as heads
from codegen.ir.program import Head
from symad.errors import ArgumentError
from symad.extras import optional

Ball = Any  # flint.arb: python-flint's methods take and return what they can
Truth = bool | None


@cache
def flint() -> Any:
    """Return python-flint; ArgumentError with the extra's name if it is missing."""
    return optional("flint", "ball arithmetic")


def ball(value: Any) -> Ball:
    """Return a number or a truth value as a ball. An undecided truth value contains 0 and 1."""
    arb = flint().arb
    return hull(arb(0), arb(1)) if value is None else arb(value)


def hull(*values: Ball) -> Ball:
    """Return a ball around all values; nan if one of them is nan."""
    return reduce(lambda left, right: left.union(right), values)


def pi() -> Ball:
    """Return a ball around pi at the current precision."""
    return flint().arb.pi()


def half() -> Ball:
    return flint().arb(0.5)


def whole(u: Ball) -> int:
    """Return an order as an integer; ArgumentError if it is none."""
    if (number := u.unique_fmpz()) is None:
        raise ArgumentError(f"an enclosure of a function of order {u}", why="orders are whole numbers")
    return int(number)


def as_mpf(exact: Ball) -> Any:
    """Return an exact ball as an mpmath number, without rounding.

    >>> as_mpf(flint().arb(0.375)), as_mpf(flint().arb.neg_inf())
    (mpf('0.375'), mpf('-inf'))
    """
    if not exact.is_finite():
        return mp.nan if exact.is_nan() else mp.inf if exact > 0 else -mp.inf
    mantissa, exponent = exact.man_exp()
    return mp.make_mpf(from_man_exp(int(mantissa), int(exponent)))


def truth(value: Any) -> Truth:
    """Return a truth value. A number is true unless it is 0."""
    return value if value is None or isinstance(value, bool) else negated(equal(value, ball(0)))


def choose(test: Any, first: Any, second: Any) -> Any:
    """Return one of two values; if undecided, a ball around both, or None for truth values."""
    test = truth(test)
    if test is None and first is not second:
        plain = all(value is None or isinstance(value, bool) for value in (first, second))
        return None if plain else hull(ball(first), ball(second))
    return second if test is False else first


def less(u: Ball, v: Ball) -> Truth:
    return True if u < v else False if u >= v else None


def equal(u: Ball, v: Ball) -> Truth:
    return True if u == v else False if u != v else None


def negated(test: Any) -> Truth:
    """Three-valued "not"."""
    known = truth(test)
    return None if known is None else not known


def conjunction(*tests: Any) -> Truth:
    """Three-valued "and"."""
    known = [truth(test) for test in tests]
    return False if any(test is False for test in known) else None if None in known else True


def disjunction(*tests: Any) -> Truth:
    """Three-valued "or"."""
    return negated(conjunction(*map(negated, tests)))


def parity(*tests: Any) -> Truth:
    """Three-valued "xor"."""
    known = [truth(test) for test in tests]
    return None if None in known else sum(map(bool, known)) % 2 == 1


def piecewise(*flat: Any) -> Ball:
    """Return the first value whose condition holds; a ball around all candidates if undecided."""
    possible = []
    for value, condition in zip(flat[::2], flat[1::2], strict=True):
        test = truth(condition)
        if test is not False:
            possible.append(ball(value))
        if test is True:
            return hull(*possible)
    return flint().arb.nan()


def monotone(function: Callable[[Ball], Ball]) -> Callable[[Ball], Ball]:
    """Extend an increasing function of exact numbers to balls, by their ends."""

    def enclosed(u: Ball) -> Ball:
        if u.is_exact() or not u.is_finite():
            return function(u)
        return hull(function(u.lower()), function(u.upper()))

    return enclosed


def with_sign(v: Ball, size: Ball) -> Ball:
    """Return -size if v < 0, else size."""
    return choose(less(v, ball(0)), -size, size)


def power(base: Ball, exponent: Ball) -> Ball:
    """Real power. A fractional power of a ball that contains negative numbers is nan."""
    return base.sqrt() if exponent == half() else base**exponent


def root_of_squares(*values: Ball) -> Ball:
    return sum((u * u for u in values), ball(0)).nonnegative_part().sqrt()


def _rint(u: Ball) -> Ball:
    down = u.floor()
    beyond, odd = u - down, negated(equal((down / 2).floor() * 2, down))
    up = choose(less(half(), beyond), True, choose(less(beyond, half()), False, odd))
    return choose(up, down + 1, down)


def _trunc(u: Ball) -> Ball:
    return choose(less(u, ball(0)), u.ceil(), u.floor())


def _cbrt(u: Ball) -> Ball:
    return u if u.is_zero() else with_sign(u, abs(u).root(3))


def heaviside(u: Ball, at_zero: Ball | None = None) -> Ball:
    """0, `at_zero` (1/2) or 1."""
    middle = half() if at_zero is None else at_zero
    if not u.is_finite() and u.is_nan():
        return u
    return piecewise(ball(0), less(u, ball(0)), middle, equal(u, ball(0)), ball(1), True)


def remainder(rounded: Callable[[Ball], Ball]) -> Callable[[Ball, Ball], Ball]:
    return lambda u, v: u - v * rounded(u / v)


def at_zero(value: Callable[[], Ball], function: Callable[..., Ball]) -> Callable[..., Ball]:
    """Return a function with a special value if its first operand is exactly 0."""
    return lambda u, *others: value() if u.is_zero() else function(u, *others)


def softplus(u: Ball) -> Ball:
    """log(1 + exp(u)) without loss of digits on either side."""
    return u.exp().log1p() if u < 0 else u + (-u).exp().log1p()


def logaddexp(u: Ball, v: Ball) -> Ball:
    """log(exp(u) + exp(v))."""
    return u.max(v) + (-abs(u - v)).exp().log1p()


def xlogy(u: Ball, v: Ball) -> Ball:
    """u log(v), 0 where u is 0."""
    return u if u.is_zero() else u * v.log()


def methods(*same: Head, **others: Head) -> dict[Head, Callable[..., Any]]:
    """Return rows of heads that are Arb's methods of the last operand, by the head's name or by a keyword."""
    names = [(head.__name__, head) for head in same] + list(others.items())
    return {head: partial(_method, name) for name, head in names}


def _method(name: str, *operands: Ball) -> Ball:
    *others, u = operands
    return getattr(u, name)(*others)


ARITHMETIC: dict[Head, Callable[..., Any]] = {
    sp.Add: lambda *terms: sum(terms[1:], terms[0]),
    sp.Mul: lambda *factors: reduce(lambda u, v: u * v, factors),
    sp.Pow: power,
    heads.Alias: lambda value, *others: value,
    sp.Abs: abs,
    sp.Max: lambda *values: reduce(lambda u, v: u.max(v), values),
    sp.Min: lambda *values: reduce(lambda u, v: u.min(v), values),
    sp.floor: monotone(lambda u: u.floor()),
    sp.ceiling: monotone(lambda u: u.ceil()),
    heads.trunc: monotone(_trunc),
    heads.rint: monotone(_rint),
    sp.frac: lambda u: u - u.floor(),
    heads.fmod: remainder(monotone(_trunc)),
    heads.copysign: lambda u, v: with_sign(v, abs(u)),
    sp.Mod: remainder(monotone(lambda u: u.floor())),
    sp.Heaviside: heaviside,
    **methods(sqrt=cfunctions.Sqrt, sgn=sp.sign),
    cfunctions.fma: lambda a, b, c: a * b + c,
    heads.cbrt: monotone(_cbrt),
    heads.hypot: root_of_squares,
    heads.log_argument: lambda u: u,
    heads.tie_share: lambda u, v: piecewise(half(), equal(u, v), ball(1), True),
    heads.one_minus_square: lambda u: (1 - u) * (1 + u),
    heads.direction_cosine: lambda u, v: u / root_of_squares(u, v),
}

ELEMENTARY: dict[Head, Callable[..., Any]] = {
    **methods(sp.exp, heads.expm1, sp.log, heads.log1p, sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinc),
    **methods(sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch),
    **methods(sp.asin, sp.acos, sp.atan, sp.asinh, sp.acosh, sp.atanh),
    heads.exp2: lambda u: ball(2) ** u,
    heads.log2: lambda u: u.log_base(2),
    heads.log10: lambda u: u.log_base(10),
    sp.acot: at_zero(lambda: pi() / 2, lambda u: (1 / u).atan()),
    sp.asec: lambda u: (1 / u).acos(),
    sp.acsc: lambda u: (1 / u).asin(),
    sp.acoth: lambda u: (1 / u).atanh(),
    sp.asech: lambda u: (1 / u).acosh(),
    sp.acsch: lambda u: (1 / u).asinh(),
    sp.atan2: lambda v, u: flint().arb.atan2(v, u),
    heads.expit: lambda u: 1 / (1 + (-u).exp()),
    heads.softplus: softplus,
    heads.log_expit: lambda u: -softplus(-u),
    heads.logaddexp: logaddexp,
    heads.xlogy: xlogy,
}

LOGIC: dict[Head, Callable[..., Any]] = {  # these take truth values, the others 0 and 1
    sp.And: conjunction,
    sp.Or: disjunction,
    sp.Xor: parity,
    sp.Nand: lambda *tests: negated(conjunction(*tests)),
    sp.Nor: lambda *tests: negated(disjunction(*tests)),
    sp.Not: negated,
    sp.Implies: lambda left, right: disjunction(negated(left), right),
    sp.ITE: choose,
    sp.Piecewise: piecewise,
    heads.Alias: ARITHMETIC[heads.Alias],
}

COMPARISONS: dict[Head, Callable[..., Any]] = {
    sp.Lt: less, sp.Le: lambda u, v: negated(less(v, u)), sp.Gt: lambda u, v: less(v, u),
    sp.Ge: lambda u, v: negated(less(u, v)), sp.Eq: equal, sp.Ne: lambda u, v: negated(equal(u, v)),
    sp.re: lambda u: u, sp.conjugate: lambda u: u,
}  # fmt: skip
