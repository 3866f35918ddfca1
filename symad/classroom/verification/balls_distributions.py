"""Heads of distribution functions in ball arithmetic: moments of logarithms, and inverses.

The means are truncated sums; the error is at most the next term times a geometric series. An inverse is a computed
number; the distribution function is enclosed on both sides of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mpmath import mp

import codegen.distribution_heads as d
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.classroom.verification.balls_functions import Ball, as_mpf, flint, whole
from symad.classroom.verification.balls_special import ERROR_FUNCTIONS, GAMMA_FUNCTIONS

_BITS_LEFT = (8, 24, 48)  # of the working precision, which are not in an inverse


def _around_zero(size: Ball) -> Ball:
    return flint().arb(0, size.upper())


def _gamma_integral(power: int, a: Ball, u: Ball) -> Ball:
    """The integral of t**(a-1) exp(u (1-t)) ln(t)**power from 0 to 1. The last terms at least halve."""
    terms = d.gamma_terms(float(u.upper()), flint().ctx.prec)
    total, following = d.gamma_series(power, a, u, terms)
    total += _around_zero(2 * abs(following) / (a + terms) ** (power + 1))
    return (-1) ** power * flint().arb.fac_ui(power) * u.exp() * total


def _whole_moment(power: int, a: Ball, u: Ball) -> Ball:
    """The mean of ln(t/u)**power of the whole gamma distribution, by its cumulants."""
    arb, acb = flint().arb, flint().acb
    cumulants = [a.digamma() - u.log(), *[acb(a).polygamma(acb(k)).real for k in range(1, power)]]
    moments = [arb(1)]
    for n in range(1, power + 1):
        moments.append(sum((math.comb(n - 1, k) * cumulants[k] * moments[n - 1 - k] for k in range(n)), arb(0)))
    return moments[power]


def _gamma_moment(order: Ball, a: Ball, u: Ball) -> Ball:
    low = bool(u <= a or u <= 1)
    if not (a > 0 and u >= 0) or not (low or (u > a and u > 1)):
        return flint().arb.nan()
    n = whole(order)
    with flint().ctx.workprec(flint().ctx.prec + int(6 * float(u.upper())) + 64):
        parts = [_gamma_integral(power, a, u) for power in (0, n)]
        if not low:
            bulk = u.exp() * u ** (-a) * a.gamma()
            parts = [bulk * _whole_moment(power, a, u) - part for power, part in zip((0, n), parts, strict=True)]
        return parts[1] / parts[0] if n else (1 if low else -1) / parts[0]


def _beta_integral(powers: tuple[int, int], a: Ball, b: Ball, u: Ball) -> Ball:
    """The integral of (t/u)**a ((1-t)/(1-u))**b ln(t/u)**first ln((1-t)/(1-u))**second / (t (1-t)) from 0 to u."""
    arb = flint().arb
    first, second = powers
    terms = d.beta_terms(float(b.upper()), second, float(u.upper()), flint().ctx.prec)
    totals = d.beta_series(powers, a, b, u, terms)
    growth = u * (1 + (abs(b) + 1) / (terms + 1))
    if not growth < 1:
        return arb.nan()
    coefficient = (abs(b) + 2).rising(terms) / arb.fac_ui(terms)  # all coefficients of the next power of u, added up
    rest = _around_zero(coefficient * u**terms / (1 - growth) / (a + terms) ** (first + 1))
    shift = -(-u).log1p()
    series = sum((shift**k / arb.fac_ui(k) * (totals[second - k] + rest) for k in range(second + 1)), arb(0))
    return (-1) ** first * arb.fac_ui(first) * arb.fac_ui(second) * (1 - u) ** (-b) * series


def _beta_moment(m: Ball, n: Ball, a: Ball, b: Ball, u: Ball) -> Ball:
    arb = flint().arb
    if not (a > 0 and b > 0 and u >= 0 and u <= 1):
        return arb.nan()
    first, second = whole(m), whole(n)
    top, other = a.max(arb(1)), b.max(arb(1))
    bound = u * (top + other)
    low = bool(bound <= top)
    if not low and not bound > top:
        return arb.nan()
    if not low:
        first, second, a, b, u = second, first, b, a, 1 - u
    lost = float(b.upper()) * math.log2((1 + float(u.upper())) / (1 - float(u.upper())))
    with flint().ctx.workprec(flint().ctx.prec + int(lost) + 16 * second + 128):
        bulk = _beta_integral((0, 0), a, b, u)
        if not first and not second:
            return (1 if low else -1) / bulk
        return _beta_integral((first, second), a, b, u) / bulk


def _inverse(value: Callable[..., Any], distribution: Callable[..., Ball], rising: bool = True) -> Callable[..., Ball]:
    """Return an inverse: a ball around mpmath's number whose ends have values on both sides of p."""

    def enclosure(*operands: Ball) -> Ball:
        arb, bits = flint().arb, flint().ctx.prec
        *shapes, p = operands
        with mp.workprec(bits + 32):
            place = value(*[as_mpf(operand.mid()) for operand in operands])
        if not mp.isfinite(place) or (p.is_exact() and place in (0, 1)):
            return arb.nan() if mp.isnan(place) or not p.is_exact() else _exactly(place)
        middle = _exactly(place)
        for left in _BITS_LEFT:
            radius = abs(middle) * arb(2) ** (left - bits)
            sides = [distribution(*shapes, side) for side in (middle - radius, middle + radius)]
            below, above = sides if rising else sides[::-1]
            if below < p and p < above:
                return arb(middle, radius)
        return arb.nan()

    return enclosure


def _exactly(number: Any) -> Ball:
    arb = flint().arb
    if mp.isinf(number):
        return arb.pos_inf() if number > 0 else arb.neg_inf()
    sign, mantissa, exponent, _ = number._mpf_
    return arb(-int(mantissa) if sign else int(mantissa)) * arb(2) ** exponent


DISTRIBUTIONS: dict[Head, Callable[..., Any]] = {
    d.gamma_moment: _gamma_moment,
    d.beta_moment: _beta_moment,
    d.gammaincinv: _inverse(d.gammaincinv_value, GAMMA_FUNCTIONS[s.gammainc]),
    d.gammainccinv: _inverse(d.gammainccinv_value, GAMMA_FUNCTIONS[s.gammaincc], rising=False),
    d.betaincinv: _inverse(d.betaincinv_value, GAMMA_FUNCTIONS[s.betainc]),
    d.betainccinv: _inverse(d.betainccinv_value, GAMMA_FUNCTIONS[s.betaincc], rising=False),
    d.ndtri_exp: _inverse(d.ndtri_exp_value, ERROR_FUNCTIONS[s.log_ndtr]),
    d.stdtrit: _inverse(d.stdtrit_value, ERROR_FUNCTIONS[s.stdtr]),
}
