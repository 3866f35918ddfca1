"""SciPy's special functions as rows of the table of ufuncs, looked up by name, so that SciPy need not be installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import sympy as sp

import codegen.heads as h
import symad.tracing.operations as op
from symad.graph.table import Graph
from symad.tracing.operations import Build, composed, function
from symad.tracing.ufuncs import UFUNCS


def _bessel(head: Callable[..., sp.Expr], order: int) -> Build:
    """A Bessel function of fixed order (scipy.special.j0...)."""
    return composed(lambda graph, u: graph.node(head, graph.number(order), u))


def _logit(graph: Graph, u: int) -> int:
    return op.subtract(graph, graph.node(sp.log, u), graph.node(h.log1p, op.negative(graph, u)))


def _beta_log(graph: Graph, a: int, b: int) -> int:
    parts = op.add(graph, graph.node(sp.loggamma, a), graph.node(sp.loggamma, b))
    return op.subtract(graph, parts, graph.node(sp.loggamma, op.add(graph, a, b)))


def _normal_cdf(graph: Graph, u: int) -> int:
    scaled_u = op.multiply(graph, u, graph.number(-math.sqrt(0.5)))
    return op.multiply(graph, graph.number(Fraction(1, 2)), graph.node(sp.erfc, scaled_u))


def _entropy(graph: Graph, u: int) -> int:
    value = op.negative(graph, graph.node(h.xlogy, u, u))
    return op.select(graph, UFUNCS["less"](graph, u, graph.number(0)), graph.number(-math.inf), value)


def _relative_entropy(graph: Graph, u: int, v: int) -> int:
    outside = UFUNCS["logical_or"](
        graph, UFUNCS["less"](graph, u, graph.number(0)), UFUNCS["less"](graph, v, graph.number(0))
    )
    return op.select(graph, outside, graph.number(math.inf), graph.node(h.xlogy, u, op.divide(graph, u, v)))


def _regularized(head: Callable[..., sp.Expr]) -> Build:
    """An incomplete gamma function divided by gamma(a), as SciPy defines it."""
    return composed(lambda graph, a, u: op.divide(graph, graph.node(head, a, u), graph.node(sp.gamma, a)))


UFUNCS |= {
    "erf": function(sp.erf),
    "erfc": function(sp.erfc),
    "erfinv": function(sp.erfinv),
    "erfcinv": function(sp.erfcinv),
    "gamma": function(sp.gamma),
    "rgamma": composed(lambda graph, u: op.divide(graph, graph.number(1), graph.node(sp.gamma, u))),
    "gammaln": function(sp.loggamma),
    "psi": function(sp.digamma),
    "digamma": function(sp.digamma),
    "beta": function(sp.beta),
    "betaln": composed(_beta_log),
    "gammainc": _regularized(sp.lowergamma),
    "gammaincc": _regularized(sp.uppergamma),
    "zeta": function(sp.zeta),
    "_zeta": function(sp.zeta),
    "_riemann_zeta": function(sp.zeta),
    "jv": function(sp.besselj),
    "yv": function(sp.bessely),
    "iv": function(sp.besseli),
    "kv": function(sp.besselk),
    "j0": _bessel(sp.besselj, 0),
    "j1": _bessel(sp.besselj, 1),
    "y0": _bessel(sp.bessely, 0),
    "y1": _bessel(sp.bessely, 1),
    "i0": _bessel(sp.besseli, 0),
    "i1": _bessel(sp.besseli, 1),
    "k0": _bessel(sp.besselk, 0),
    "k1": _bessel(sp.besselk, 1),
    "expit": function(h.expit),
    "log_expit": function(h.log_expit),
    "logit": composed(_logit),
    "xlogy": function(h.xlogy),
    "xlog1py": composed(lambda graph, u, v: op.multiply(graph, u, graph.node(h.log1p, v))),
    "entr": composed(_entropy),
    "rel_entr": composed(_relative_entropy),
    "ndtr": composed(_normal_cdf),
    "exp1": composed(lambda graph, u: graph.node(sp.expint, graph.number(1), u)),
    "expn": function(sp.expint),
    "expi": function(sp.Ei),
    "ellipk": function(sp.elliptic_k),
    "ellipe": function(sp.elliptic_e),
    "ellipkinc": function(sp.elliptic_f),
    "ellipeinc": function(sp.elliptic_e),
    "lambertw": function(sp.LambertW),
}
