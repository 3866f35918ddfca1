"""Partial derivatives of distribution functions in shape parameters, and of their inverses.

They consist of the means of logarithms beside u (`codegen.distribution_heads`), a closed family: with T the signed
probability of the side that is taken, whose sign is that of the hazard, dP/da = T (ln u + M - E), where M is the mean
of ln(t/u) beside u and E that of ln t of the whole distribution. An inverse is an implicit function.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import sympy as sp

import codegen.distribution_heads as d
import codegen.heads as h
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.graph.builder import Builder
from symad.rules.ranged_rules import refused

Partial = Callable[..., int | None]


# ---- gamma distributions


def _gamma_moment(build: Builder, order: int, a: int, u: int) -> int:
    return build.call(d.gamma_moment, build.number(order), a, u)


def _excess(build: Builder, a: int, u: int) -> int:
    """d ln|T| / da = ln u + M - psi(a)."""
    return build.add(build.call(sp.log, u), _gamma_moment(build, 1, a, u), build.neg(build.call(sp.digamma, a)))


def gamma_shape(build: Builder, a: int, u: int) -> int:
    """The derivative of gammainc in a; 0 at u = 0. Below a = 1 it uses `_gamma_shape_factor`."""
    low = build.call(sp.StrictGreaterThan, _gamma_moment(build, 0, a, u), build.zero)
    side = build.select(low, build.call(s.gammainc, a, u), build.neg(build.call(s.gammaincc, a, u)))
    term = build.call(s.gamma_kernel, a, build.call(s.gammaln, build.add(a, build.one)), u)
    small = build.mul(term, _gamma_shape_factor(build, a, u))
    slope = build.select(_is_small(build, a), small, build.mul(side, _excess(build, a, u)))
    return build.select(build.call(sp.Equality, u, build.zero), build.zero, slope)


def _is_small(build: Builder, a: int) -> int:
    return build.call(sp.StrictLessThan, a, build.one)


def _gamma_shape_factor(build: Builder, a: int, u: int) -> int:
    """dP/da over u**a exp(-u)/gamma(a + 1), which has no 1/a that psi(a) would cancel.

    With P(a) = P(a + 1) + u**a exp(-u)/gamma(a + 1) where u is low, and 1 - P = -u**a exp(-u)/(gamma(a + 1) hazard/a)
    where it is not.
    """
    above = build.add(a, build.one)
    whole = build.sub(build.call(sp.log, u), build.call(sp.digamma, above))
    bulk = build.div(build.mul(u, _excess(build, above, u)), _gamma_moment(build, 0, above, u))
    tail = build.add(build.one, build.mul(a, build.add(whole, _gamma_moment(build, 1, a, u))))
    hazard = _gamma_moment(build, 0, a, u)
    low = build.call(sp.StrictGreaterThan, hazard, build.zero)
    return build.select(low, build.add(whole, bulk), build.div(tail, hazard))


def _order_of(build: Builder, n: int) -> int:
    value = build.constant(n)
    return int(value) if value is not None else -1


def _gamma_moment_shape(build: Builder, p: int, n: int, a: int, u: int) -> int:
    """The covariance with ln t, or for the hazard its product with - M."""
    mean, order = _gamma_moment(build, 1, a, u), _order_of(build, n)
    if order == 0:
        return build.neg(build.mul(p, mean))
    return build.sub(build.call(d.gamma_moment, build.add(n, build.one), a, u), build.mul(p, mean))


def _gamma_moment_place(build: Builder, p: int, n: int, a: int, u: int) -> int:
    order = _order_of(build, n)
    if order == 0:
        return build.div(build.mul(p, build.sub(build.sub(a, u), p)), u)
    below = build.one if order == 1 else build.call(d.gamma_moment, build.sub(n, build.one), a, u)
    sunk = build.add(build.mul(n, below), build.mul(p, _gamma_moment(build, 0, a, u)))
    return build.neg(build.div(sunk, u))


def _gamma_inverse_shape(build: Builder, p: int, a: int, *_: int) -> int:
    """- (dP/da) / p(u), where p(u) is a/u times the denominator of `_gamma_shape_factor`."""
    moved = build.div(build.mul(p, _gamma_shape_factor(build, a, p)), a)
    return build.select(build.call(sp.Equality, p, build.zero), build.zero, build.neg(moved))


def _gamma_density(build: Builder, a: int, u: int) -> int:
    return build.call(s.gamma_kernel, build.sub(a, build.one), build.call(s.gammaln, a), u)


# ---- beta distributions


def _beta_moment(build: Builder, m: int, n: int, *operands: int) -> int:
    return build.call(d.beta_moment, build.number(m), build.number(n), *operands)


def _beta_excess(build: Builder, first: bool, a: int, b: int, u: int) -> int:
    """d ln|T| / da = ln u + M - (psi(a) - psi(a + b)), or the same in b with ln(1 - u)."""
    place = build.call(sp.log, u) if first else build.call(h.log1p, build.neg(u))
    shapes = (a, b) if first else (b, a)
    whole = build.call(s.polygamma_difference, build.zero, *shapes)
    return build.add(place, _beta_moment(build, int(first), int(not first), a, b, u), whole)


def beta_shape(build: Builder, first: bool, a: int, b: int, u: int) -> int:
    """The derivative of betainc in a or b; 0 at both ends. Below 1 it uses `_beta_shape_factor`."""
    low = build.call(sp.StrictGreaterThan, _beta_moment(build, 0, 0, a, b, u), build.zero)
    side = build.select(low, build.call(s.betainc, a, b, u), build.neg(build.call(s.betaincc, a, b, u)))
    large = build.mul(side, _beta_excess(build, first, a, b, u))
    shape, others = (a, b) if first else (b, a)
    scale = build.add(build.call(s.betaln, build.add(shape, build.one), others), build.call(sp.log, build.add(a, b)))
    small = build.mul(build.call(s.beta_kernel, a, b, scale, u), _beta_shape_factor(build, first, a, b, u))
    return _inside(build, u, build.select(_is_small(build, shape), small, large))


def _beta_shape_factor(build: Builder, first: bool, a: int, b: int, u: int) -> int:
    """The derivative of betainc over u**a (1 - u)**b/(a B(a, b)), or that with 1/b; see `_gamma_shape_factor`."""
    shape = a if first else b
    raised = (build.add(a, build.one), b, u) if first else (a, build.add(b, build.one), u)
    above = _beta_excess(build, first, *raised)
    mean = _beta_moment(build, int(first), int(not first), *raised)
    whole = build.sub(build.sub(above, mean), build.reciprocal(build.add(a, b)))
    place = u if first else build.sub(build.one, u)
    hazard, hazard_above = (_beta_moment(build, 0, 0, *operands) for operands in ((a, b, u), raised))
    bulk = build.div(build.mul(place, build.add(a, b), above), hazard_above)
    tail = build.mul(shape, build.add(whole, _beta_moment(build, int(first), int(not first), a, b, u)))
    beside = build.div(build.add(build.one, tail), hazard)
    low = build.call(sp.StrictGreaterThan if first else sp.StrictLessThan, hazard, build.zero)
    return build.select(low, build.add(whole if first else build.neg(whole), bulk), beside)


def _inside(build: Builder, u: int, value: int) -> int:
    """A value, and 0 at u = 0 and u = 1."""
    at_end = build.call(sp.Equality, build.mul(u, build.sub(build.one, u)), build.zero)
    return build.select(at_end, build.zero, value)


def _orders(build: Builder, m: int, n: int) -> tuple[int, int]:
    return _order_of(build, m), _order_of(build, n)


def _beta_moment_shape(first: bool) -> Partial:
    def partial(build: Builder, p: int, m: int, n: int, *operands: int) -> int:
        mean = _beta_moment(build, int(first), int(not first), *operands)
        if _orders(build, m, n) == (0, 0):
            return build.neg(build.mul(p, mean))
        raised = (build.add(m, build.one), n) if first else (m, build.add(n, build.one))
        return build.sub(build.call(d.beta_moment, *raised, *operands), build.mul(p, mean))

    return partial


def _beta_moment_place(build: Builder, p: int, m: int, n: int, a: int, b: int, u: int) -> int:
    others = build.sub(build.one, u)
    spread = build.mul(u, others)
    first, second = _orders(build, m, n)
    if (first, second) == (0, 0):
        slope = build.sub(build.mul(a, others), build.add(build.mul(b, u), p))
        return build.div(build.mul(p, slope), spread)
    change = build.neg(build.div(build.mul(p, _beta_moment(build, 0, 0, a, b, u)), spread))
    if first:
        below = build.one if (first, second) == (1, 0) else _beta_moment(build, first - 1, second, a, b, u)
        change = build.sub(change, build.div(build.mul(m, below), u))
    if second:
        below = build.one if (first, second) == (0, 1) else _beta_moment(build, first, second - 1, a, b, u)
        change = build.add(change, build.div(build.mul(n, below), others))
    return change


def _beta_inverse_shape(first: bool) -> Partial:
    def partial(build: Builder, p: int, a: int, b: int, _: int) -> int:
        spread = build.mul(p, build.sub(build.one, p))
        moved = build.div(build.mul(spread, _beta_shape_factor(build, first, a, b, p)), a if first else b)
        return _inside(build, p, build.neg(moved))

    return partial


def _beta_density(build: Builder, a: int, b: int, u: int) -> int:
    powers = (build.sub(a, build.one), build.sub(b, build.one))
    return build.call(s.beta_kernel, *powers, build.call(s.betaln, a, b), u)


# ---- Student's t


def student_density(build: Builder, k: int, t: int) -> int:
    """(1 + t**2/k)**(-(k + 1)/2) / (sqrt(k) B(1/2, k/2))."""
    grown = build.add(build.one, build.div(build.power(t, build.two), k))
    exponent = build.mul(build.number(Fraction(-1, 2)), build.add(k, build.one))
    constant = build.mul(build.sqrt(k), build.call(sp.beta, build.half, build.mul(build.half, k)))
    return build.div(build.power(grown, exponent), constant)


def student_shape(build: Builder, k: int, t: int) -> int:
    """The derivative of stdtr in k: of 1/2 + sign(t) I(1/2, k/2; t**2/(k + t**2)) / 2, by the smaller share."""
    square, freedom = build.power(t, build.two), build.mul(build.half, k)
    share, rest = (build.div(part, build.add(k, square)) for part in (square, k))
    beside = build.neg(beta_shape(build, True, freedom, build.half, rest))
    is_far = build.call(sp.StrictLessThan, k, square)
    bulk = build.select(is_far, beside, beta_shape(build, False, build.half, freedom, share))
    turned = build.mul(build.number(Fraction(1, 4)), build.call(sp.sign, t), bulk)
    moved = build.div(build.mul(t, student_density(build, k, t)), build.mul(build.two, k))
    return build.sub(turned, moved)


def _negated(partial: Partial) -> Partial:
    """Return the derivative of 1 minus a function, or of the inverse of one."""
    return lambda build, *operands: build.neg(partial(build, *operands))


_GAMMA: tuple[Partial, ...] = lambda b, p, a, u: gamma_shape(b, a, u), lambda b, p, a, u: _gamma_density(b, a, u)
_BETA: tuple[Partial, ...] = (
    lambda b, p, *operands: beta_shape(b, True, *operands),
    lambda b, p, *operands: beta_shape(b, False, *operands),
    lambda b, p, *operands: _beta_density(b, *operands),
)
DISTRIBUTIONS: dict[Head, tuple[Partial, ...]] = {
    s.stdtr: (lambda b, p, k, t: student_shape(b, k, t), lambda b, p, k, t: student_density(b, k, t)),
    s.gammainc: _GAMMA,
    s.gammaincc: tuple(map(_negated, _GAMMA)),
    s.betainc: _BETA,
    s.betaincc: tuple(map(_negated, _BETA)),
    d.gamma_moment: (refused, _gamma_moment_shape, _gamma_moment_place),
    d.beta_moment: (refused, refused, _beta_moment_shape(True), _beta_moment_shape(False), _beta_moment_place),
    d.gammaincinv: (_gamma_inverse_shape, lambda b, p, a, q: b.reciprocal(_gamma_density(b, a, p))),
    d.gammainccinv: (_gamma_inverse_shape, lambda b, p, a, q: b.neg(b.reciprocal(_gamma_density(b, a, p)))),
    d.betaincinv: (
        _beta_inverse_shape(True), _beta_inverse_shape(False),
        lambda b, p, x, y, q: b.reciprocal(_beta_density(b, x, y, p)),
    ),
    d.betainccinv: (
        _beta_inverse_shape(True), _beta_inverse_shape(False),
        lambda b, p, x, y, q: b.neg(b.reciprocal(_beta_density(b, x, y, p))),
    ),
    d.ndtri_exp: (lambda b, p, q: b.reciprocal(b.call(s.normal_hazard, p)),),
    d.stdtrit: (
        lambda b, p, k, q: b.neg(b.div(student_shape(b, k, p), student_density(b, k, p))),
        lambda b, p, k, q: b.reciprocal(student_density(b, k, p)),
    ),
}  # fmt: skip
