"""SciPy's distribution functions as rows of the ufunc table.

Counts are rounded down, as SciPy's functions round them: their derivatives in them are 0.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import partial, reduce

import sympy as sp

import codegen.distribution_heads as d
import codegen.heads as h
import codegen.special_heads as s
import symad.tracing.values.node_builders as op
from codegen.ir.program import Head
from symad.graph.graph import Graph
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.node_builders import Build, composed, function

_KOLMOGOROV_TERMS = 6
_KOLMOGOROV_MIDDLE = 0.8  # where both sums have all digits with these terms


def _half(graph: Graph, u: int) -> int:
    return op.multiply(graph, graph.number(Fraction(1, 2)), u)


def _one(graph: Graph) -> int:
    return graph.number(1)


def _where_ordered(graph: Graph, value: int, argument: int, *pairs: tuple[int, int]) -> int:
    """The value where all pairs are in order; elsewhere NaN, and NaN are all derivatives."""
    ordered = [UFUNCS["less_equal"](graph, *pair) for pair in pairs]
    outside = op.multiply(graph, graph.number(math.nan), op.add(graph, value, argument))
    return op.select(graph, reduce(partial(UFUNCS["logical_and"], graph), ordered), value, outside)


def _chi_square(head: Head) -> Build:
    """A distribution function of chi-square: an incomplete gamma function of (v/2, x/2)."""
    return composed(lambda graph, v, u: graph.node(head, _half(graph, v), _half(graph, u)))


def _gamma(head: Head) -> Build:
    """A distribution function of gamma, of rate, shape and place."""
    return composed(lambda graph, rate, shape, u: graph.node(head, shape, op.multiply(graph, rate, u)))


def _variance_ratio(below: Head, above: Head) -> Build:
    """A distribution function of F: of the beta distribution at its share, or at what that leaves if it is smaller."""

    def build(graph: Graph, first: int, second: int, u: int) -> int:
        product, shapes = op.multiply(graph, first, u), (_half(graph, first), _half(graph, second))
        whole = op.add(graph, second, product)
        low = graph.node(below, *shapes, op.divide(graph, product, whole))
        high = graph.node(above, *shapes[::-1], op.divide(graph, second, whole))
        value = op.select(graph, graph.node(sp.StrictLessThan, product, second), low, high)
        ends = graph.number(sys.float_info.min), graph.number(sys.float_info.max)
        return _where_ordered(
            graph, value, u, *[pair for v in (first, second) for pair in ((ends[0], v), (v, ends[1]))]
        )

    return composed(build)


def _variance_ratio_inverse(graph: Graph, first: int, second: int, p: int) -> int:
    """second x / (first (1 - x)) at the beta distribution's x, of which 1 - x is found by itself."""
    shapes = (_half(graph, first), _half(graph, second))
    share = graph.node(d.betaincinv, *shapes, p)
    rest = graph.node(d.betainccinv, *shapes[::-1], p)
    return op.divide(graph, op.multiply(graph, second, share), op.multiply(graph, first, rest))


def _poisson(head: Head) -> Build:
    """A distribution function of Poisson: an incomplete gamma function of (floor(k) + 1, mean), k not below 0."""

    def build(graph: Graph, k: int, mean: int) -> int:
        inside = graph.node(head, op.add(graph, graph.node(sp.floor, k), _one(graph)), mean)
        return _where_ordered(graph, inside, mean, (graph.number(0), k))

    return composed(build)


def _successes(head: Head, is_whole: bool = False) -> Build:
    """A distribution function of the binomial distribution: of beta with (k + 1, n - k); its end at n.

    The stated conditions are SciPy's; its distributions, of whole numbers, have their own.
    """

    def build(graph: Graph, k: int, n: int, p: int) -> int:
        count = k if is_whole else graph.node(sp.floor, k)
        inside = graph.node(head, op.add(graph, count, _one(graph)), op.subtract(graph, n, count), p)
        is_below, zero, one = head is s.betaincc, graph.number(0), _one(graph)
        value = op.select(graph, UFUNCS["less"](graph, count, n), inside, one if is_below else zero)
        if is_whole:
            return value
        value = value if is_below else op.select(graph, UFUNCS["less"](graph, count, zero), one, value)
        return _where_ordered(graph, value, p, (count, n), (zero, p), (p, one), *[(zero, count)] * is_below)

    return composed(build)


def _failures_below(head: Head) -> Build:
    """A distribution function of failures before n successes: of beta with (n, k + 1)."""
    return composed(lambda graph, k, n, p: graph.node(head, n, op.add(graph, k, _one(graph)), p))


def _failures(graph: Graph, k: int, n: int, p: int) -> int:
    """The probability of k failures before n successes, by its logarithm."""
    one = _one(graph)
    left, right = graph.node(h.xlogy, n, p), graph.node(s.xlog1py, k, op.negative(graph, p))
    ways = op.add(graph, graph.node(s.betaln, op.add(graph, k, one), n), graph.node(sp.log, op.add(graph, k, n)))
    return graph.node(sp.exp, op.subtract(graph, op.add(graph, left, right), ways))


def _cauchy_quantile(sign: int) -> Build:
    """place - scale / tan(pi p), or + for what is above."""

    def build(graph: Graph, p: int, place: int, scale: int) -> int:
        angle = op.multiply(graph, graph.number(math.pi), p)
        turned = op.divide(graph, op.multiply(graph, graph.number(sign), scale), graph.node(sp.tan, angle))
        return op.add(graph, place, turned)

    return composed(build)


# ---- Kolmogorov's distribution: two sums, of which one converges at once on either side of the middle


def _sum(graph: Graph, terms: list[tuple[int, int]]) -> int:
    """The sum of factor * exp(exponent)."""
    total = graph.number(0)
    for factor, exponent in terms:
        total = op.add(graph, total, op.multiply(graph, factor, graph.node(sp.exp, exponent)))
    return total


def _far_terms(graph: Graph, u: int, with_slope: bool) -> list[tuple[int, int]]:
    """2 sum (-1)**(k-1) exp(-2 k**2 u**2), which is what is above u; or the derivative of - it."""
    square, terms = op.multiply(graph, u, u), []
    for k in range(1, _KOLMOGOROV_TERMS):
        sign = 1 if k % 2 else -1
        factor = graph.number(2 * sign)
        if with_slope:
            factor = op.multiply(graph, graph.number(8 * sign * k * k), u)
        terms.append((factor, op.multiply(graph, graph.number(-2 * k * k), square)))
    return terms


def _near_terms(graph: Graph, u: int, with_slope: bool) -> list[tuple[int, int]]:
    """sqrt(2 pi)/u sum exp(-(2k-1)**2 pi**2/(8 u**2)), which is what is below u; or its derivative."""
    square, terms = op.multiply(graph, u, u), []
    scale = op.divide(graph, graph.number(math.sqrt(2 * math.pi)), u)
    for k in range(1, _KOLMOGOROV_TERMS):
        rate = (2 * k - 1) ** 2 * math.pi**2 / 8
        exponent = op.divide(graph, graph.number(-rate), square)
        factor = scale
        if with_slope:
            change = op.subtract(graph, op.divide(graph, graph.number(2 * rate), square), _one(graph))
            factor = op.divide(graph, op.multiply(graph, scale, change), u)
        terms.append((factor, exponent))
    return terms


def _kolmogorov(graph: Graph, u: int, far: int, near: int, at_zero: int) -> int:
    inside = op.select(graph, UFUNCS["less"](graph, u, graph.number(_KOLMOGOROV_MIDDLE)), near, far)
    return op.select(graph, UFUNCS["less_equal"](graph, u, graph.number(0)), graph.number(at_zero), inside)


def _kolmogorov_above(graph: Graph, u: int) -> int:
    far, near = _sum(graph, _far_terms(graph, u, False)), _sum(graph, _near_terms(graph, u, False))
    return _kolmogorov(graph, u, far, op.subtract(graph, _one(graph), near), 1)


def _kolmogorov_below(graph: Graph, u: int) -> int:
    far, near = _sum(graph, _far_terms(graph, u, False)), _sum(graph, _near_terms(graph, u, False))
    return _kolmogorov(graph, u, op.subtract(graph, _one(graph), far), near, 0)


def _kolmogorov_slope(graph: Graph, u: int) -> int:
    """The derivative of what is above u."""
    far, near = _sum(graph, _far_terms(graph, u, True)), _sum(graph, _near_terms(graph, u, True))
    return _kolmogorov(graph, u, op.negative(graph, far), op.negative(graph, near), 0)


UFUNCS |= {head.__name__: function(head) for head in (s.stdtr, s.betainc, s.betaincc, s.gammainc, s.gammaincc)}
UFUNCS |= {
    head.__name__: function(head)
    for head in (d.gammaincinv, d.gammainccinv, d.betaincinv, d.betainccinv, d.stdtrit, d.ndtri_exp)
}
UFUNCS |= {
    "_beta_ppf": composed(lambda graph, p, a, b: graph.node(d.betaincinv, a, b, p)),
    "_cauchy_ppf": _cauchy_quantile(-1),
    "_cauchy_isf": _cauchy_quantile(1),
    "chdtr": _chi_square(s.gammainc),
    "chdtrc": _chi_square(s.gammaincc),
    "chdtri": composed(
        lambda graph, v, p: op.multiply(graph, graph.number(2), graph.node(d.gammainccinv, _half(graph, v), p))
    ),
    "gdtr": _gamma(s.gammainc),
    "gdtrc": _gamma(s.gammaincc),
    "fdtr": _variance_ratio(s.betainc, s.betaincc),
    "fdtrc": _variance_ratio(s.betaincc, s.betainc),
    "fdtri": composed(_variance_ratio_inverse),
    "pdtr": _poisson(s.gammaincc),
    "pdtrc": _poisson(s.gammainc),
    "bdtr": _successes(s.betaincc),
    "bdtrc": _successes(s.betainc),
    "_binom_cdf": _successes(s.betaincc, is_whole=True),
    "_binom_sf": _successes(s.betainc, is_whole=True),
    "_nbinom_pmf": composed(_failures),
    "_nbinom_cdf": _failures_below(s.betainc),
    "_nbinom_sf": _failures_below(s.betaincc),
    "kolmogorov": composed(_kolmogorov_above),
    "_kolmogc": composed(_kolmogorov_below),
    "_kolmogp": composed(_kolmogorov_slope),
}
