"""SciPy's distribution functions as rows of the ufunc table.

Counts are rounded down, as SciPy's functions round them: their derivatives in them are 0.
"""

from __future__ import annotations

import math
import sys
from functools import reduce
from typing import Any

import sympy as sp

import codegen.distribution_heads as d
import codegen.heads as h
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.tracing.numpy.formula_terms import HALF, Term, built, chosen, formula, of
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.node_builders import Build, function

_KOLMOGOROV_TERMS = 6
_KOLMOGOROV_MIDDLE = 0.8  # where both sums have all digits with these terms


def _where_ordered(value: Term, argument: Term, *conditions: Term) -> Term:
    """The value where all conditions hold; elsewhere NaN, and NaN are all derivatives."""
    return chosen(reduce(_both, conditions), value, math.nan * (value + argument))


def _both(left: Term, right: Term) -> Term:
    return built(UFUNCS["logical_and"], left, right)


def _variance_ratio(below: Head, above: Head) -> Build:
    """A distribution function of F: of the beta distribution at its share, or at what that leaves if it is smaller."""

    def terms(first: Term, second: Term, u: Term) -> Term:
        product = first * u
        whole = second + product
        low = of(below, HALF * first, HALF * second, product / whole)
        high = of(above, HALF * second, HALF * first, second / whole)
        value = chosen(of(sp.StrictLessThan, product, second), low, high)
        smallest, largest = sys.float_info.min, sys.float_info.max
        return _where_ordered(value, u, *[end for v in (first, second) for end in (smallest <= v, v <= largest)])

    return formula(terms)


def _variance_ratio_inverse(first: Term, second: Term, p: Term) -> Term:
    """second x / (first (1 - x)) at the beta distribution's x, of which 1 - x is found by itself."""
    share = of(d.betaincinv, HALF * first, HALF * second, p)
    rest = of(d.betainccinv, HALF * second, HALF * first, p)
    return second * share / (first * rest)


def _poisson(head: Head) -> Build:
    """A distribution function of Poisson: an incomplete gamma function of (floor(k) + 1, mean), k not below 0."""
    return formula(lambda k, mean: _where_ordered(of(head, of(sp.floor, k) + 1, mean), mean, k >= 0))


def _successes(head: Head, is_whole: bool = False) -> Build:
    """A distribution function of the binomial distribution: of beta with (k + 1, n - k); its end at n.

    The stated conditions are SciPy's; its distributions, of whole numbers, have their own.
    """

    def terms(k: Term, n: Term, p: Term) -> Term:
        count = k if is_whole else of(sp.floor, k)
        is_below = head is s.betaincc
        value = chosen(count < n, of(head, count + 1, n - count, p), 1 if is_below else 0)
        if is_whole:
            return value
        value = value if is_below else chosen(count < 0, 1, value)
        return _where_ordered(value, p, count <= n, p >= 0, p <= 1, *[count >= 0] * is_below)

    return formula(terms)


def _failures(k: Term, n: Term, p: Term) -> Term:
    """The probability of k failures before n successes, by its logarithm."""
    ways = of(s.betaln, k + 1, n) + of(sp.log, k + n)
    return of(sp.exp, of(h.xlogy, n, p) + of(s.xlog1py, k, -p) - ways)


# ---- Kolmogorov's distribution: two sums, of which one converges at once on either side of the middle


def _far_sum(u: Term, with_slope: bool) -> Any:
    """2 sum (-1)**(k-1) exp(-2 k**2 u**2), which is what is above u; or the derivative of - it."""
    square: Any = u * u
    total: Any = 0
    for k in range(1, _KOLMOGOROV_TERMS):
        sign = 1 if k % 2 else -1
        total = total + (8 * sign * k * k * u if with_slope else 2 * sign) * of(sp.exp, -2 * k * k * square)
    return total


def _near_sum(u: Term, with_slope: bool) -> Any:
    """sqrt(2 pi)/u sum exp(-(2k-1)**2 pi**2/(8 u**2)), which is what is below u; or its derivative."""
    square: Any = u * u
    total: Any = 0
    factor = scale = math.sqrt(2 * math.pi) / u
    for k in range(1, _KOLMOGOROV_TERMS):
        rate = (2 * k - 1) ** 2 * math.pi**2 / 8
        factor = scale * (2 * rate / square - 1) / u if with_slope else scale
        total = total + factor * of(sp.exp, -rate / square)
    return total


def _kolmogorov(kind: str) -> Build:
    """What is above u, what is below it, or the derivative of what is above."""

    def terms(u: Term) -> Term:
        far, near = _far_sum(u, kind == "slope"), _near_sum(u, kind == "slope")
        if kind == "above":
            near = 1 - near
        elif kind == "below":
            far = 1 - far
        else:
            far, near = -far, -near
        return chosen(u <= 0, 1 if kind == "above" else 0, chosen(u < _KOLMOGOROV_MIDDLE, near, far))

    return formula(terms)


UFUNCS |= {
    head.__name__: function(head)
    for head in (
        s.stdtr, s.betainc, s.betaincc, s.gammainc, s.gammaincc, d.gammaincinv, d.gammainccinv, d.betaincinv,
        d.betainccinv, d.stdtrit, d.ndtri_exp,
    )
}  # fmt: skip
UFUNCS |= {
    "_beta_ppf": formula(lambda p, a, b: of(d.betaincinv, a, b, p)),
    "_cauchy_ppf": formula(lambda p, place, scale: place + -1 * scale / of(sp.tan, math.pi * p)),
    "_cauchy_isf": formula(lambda p, place, scale: place + 1 * scale / of(sp.tan, math.pi * p)),
    "chdtr": formula(lambda v, u: of(s.gammainc, HALF * v, HALF * u)),  # chi-square, by an incomplete gamma function
    "chdtrc": formula(lambda v, u: of(s.gammaincc, HALF * v, HALF * u)),
    "chdtri": formula(lambda v, p: 2 * of(d.gammainccinv, HALF * v, p)),
    "gdtr": formula(lambda rate, shape, u: of(s.gammainc, shape, rate * u)),
    "gdtrc": formula(lambda rate, shape, u: of(s.gammaincc, shape, rate * u)),
    "fdtr": _variance_ratio(s.betainc, s.betaincc),
    "fdtrc": _variance_ratio(s.betaincc, s.betainc),
    "fdtri": formula(_variance_ratio_inverse),
    "pdtr": _poisson(s.gammaincc),
    "pdtrc": _poisson(s.gammainc),
    "bdtr": _successes(s.betaincc),
    "bdtrc": _successes(s.betainc),
    "_binom_cdf": _successes(s.betaincc, is_whole=True),
    "_binom_sf": _successes(s.betainc, is_whole=True),
    "_nbinom_pmf": formula(_failures),
    "_nbinom_cdf": formula(lambda k, n, p: of(s.betainc, n, k + 1, p)),  # of failures before n successes
    "_nbinom_sf": formula(lambda k, n, p: of(s.betaincc, n, k + 1, p)),
    "kolmogorov": _kolmogorov("above"),
    "_kolmogc": _kolmogorov("below"),
    "_kolmogp": _kolmogorov("slope"),
}
