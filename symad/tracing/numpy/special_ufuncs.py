"""SciPy's special functions as rows of the table of ufuncs, looked up by name, so that SciPy need not be installed."""

from __future__ import annotations

import math
from fractions import Fraction

import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
import symad.tracing.values.node_builders as op
from codegen.ir.program import Head
from symad.errors import TraceError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.ufuncs import SEVERAL_OUTPUTS, UFUNCS
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.node_builders import Build, composed, function

_LONGEST_PRODUCT = 64  # factors of poch(a, m) that are written out


def _of_order(head: Head, order: int) -> Build:
    """A Bessel function of fixed order (scipy.special.j0...)."""
    return composed(lambda graph, u: graph.node(head, graph.number(order), u))


def _scaled_argument(head: Head, factor: int | Fraction, shift: int = 0, outside: int = 1) -> Build:
    """outside * head(n, factor * u + shift): the shifted polynomials."""

    def build(graph: Graph, n: int, u: int) -> int:
        inner = op.multiply(graph, graph.number(factor), u)
        value = graph.node(head, n, op.add(graph, inner, graph.number(shift)) if shift else inner)
        return value if outside == 1 else op.multiply(graph, graph.number(outside), value)

    return composed(build)


def _less(graph: Graph, u: int, bound: int) -> int:
    return UFUNCS["less"](graph, u, graph.number(bound))


def _normal(graph: Graph, u: int) -> int:
    scaled_u = op.multiply(graph, u, graph.number(-math.sqrt(0.5)))
    return op.multiply(graph, graph.number(Fraction(1, 2)), graph.node(sp.erfc, scaled_u))


def _normal_quantile(graph: Graph, p: int) -> int:
    """-sqrt(2) erfcinv(2 p), which keeps the digits of small p."""
    root = graph.node(sp.Pow, graph.number(2), graph.number(Fraction(1, 2)))
    inverse = graph.node(sp.erfcinv, op.multiply(graph, graph.number(2), p))
    return op.negative(graph, op.multiply(graph, root, inverse))


def _rising(graph: Graph, a: int, m: int) -> int:
    """a (a+1) ... (a+m-1) for a constant number of factors, which has none of the poles of gamma(a+m)/gamma(a)."""
    count = constant(graph, m)
    if count is None or count != int(count) or not 0 <= count <= _LONGEST_PRODUCT:
        return graph.node(sp.RisingFactorial, a, m)
    product = graph.number(1)
    for k in range(int(count)):
        factor = op.add(graph, a, graph.number(k)) if k else a
        product = op.multiply(graph, product, factor) if k else factor
    return product


def _huber(graph: Graph, delta: int, u: int) -> int:
    """u**2/2 for |u| <= delta, delta (|u| - delta/2) beyond; inf for delta < 0."""
    half, size = graph.number(Fraction(1, 2)), UFUNCS["absolute"](graph, u)
    near = op.multiply(graph, half, op.power(graph, u, graph.number(2)))
    far = op.multiply(graph, delta, op.subtract(graph, size, op.multiply(graph, half, delta)))
    inside = op.select(graph, UFUNCS["less_equal"](graph, size, delta), near, far)
    return op.select(graph, _less(graph, delta, 0), graph.number(math.inf), inside)


def _chi_square(head: Head) -> Build:
    """A distribution function of chi-square: an incomplete gamma function of (v/2, x/2)."""

    def build(graph: Graph, v: int, u: int) -> int:
        half = graph.number(Fraction(1, 2))
        return graph.node(head, op.multiply(graph, half, v), op.multiply(graph, half, u))

    return composed(build)


def _radian(graph: Graph, degrees: int, minutes: int, seconds: int) -> int:
    sixtieth = op.divide(graph, op.add(graph, minutes, op.divide(graph, seconds, graph.number(60))), graph.number(60))
    return op.multiply(graph, op.add(graph, degrees, sixtieth), graph.number(math.pi / 180))


def _cosm1(graph: Graph, u: int) -> int:
    """-2 sin(u/2)**2."""
    sine = graph.node(sp.sin, op.multiply(graph, graph.number(Fraction(1, 2)), u))
    return op.multiply(graph, graph.number(-2), op.power(graph, sine, graph.number(2)))


def _lambert(graph: Graph, u: int, branch: int, tolerance: int) -> int:
    """The real branches 0 and -1 of Lambert's W: a real number, nan where W is complex."""
    k = constant(graph, branch)
    if k not in (0, -1):
        raise TraceError(
            f"lambertw on branch {'unknown' if k is None else k}",
            where=user_place(),
            why="only the branches 0 and -1 have real values",
            do="use k=0 or k=-1, as a number",
        )
    return graph.node(sp.LambertW, u, graph.number(-1)) if k else graph.node(sp.LambertW, u)


UFUNCS |= {
    # error functions, normal and Student's distribution
    "erf": function(sp.erf),
    "erfc": function(sp.erfc),
    "erfcx": function(s.erfcx),
    "erfi": function(sp.erfi),
    "erfinv": function(sp.erfinv),
    "erfcinv": function(sp.erfcinv),
    "dawsn": function(s.dawsn),
    "ndtr": composed(_normal),
    "log_ndtr": function(s.log_ndtr),
    "ndtri": composed(_normal_quantile),
    "owens_t": function(s.owens_t),
    "stdtr": function(s.stdtr),
    "chdtr": _chi_square(s.gammainc),
    "chdtrc": _chi_square(s.gammaincc),
    # gamma and beta functions
    "gamma": function(sp.gamma),
    "rgamma": function(s.rgamma),
    "gammaln": function(s.gammaln),
    "loggamma": function(sp.loggamma),
    "gammasgn": function(s.gammasgn),
    "psi": function(sp.digamma),
    "digamma": function(sp.digamma),
    "beta": function(sp.beta),
    "betaln": function(s.betaln),
    "betainc": function(s.betainc),
    "betaincc": function(s.betaincc),
    "gammainc": function(s.gammainc),
    "gammaincc": function(s.gammaincc),
    "poch": composed(_rising),
    "binom": function(sp.binomial),
    "zeta": function(sp.zeta),
    "_zeta": function(sp.zeta),
    "_riemann_zeta": function(sp.zeta),
    # Bessel and Airy functions
    "jv": function(sp.besselj),
    "jve": function(sp.besselj),
    "yv": function(sp.bessely),
    "yve": function(sp.bessely),
    "yn": function(sp.bessely),
    "iv": function(sp.besseli),
    "ive": function(s.ive),
    "kv": function(sp.besselk),
    "kn": function(sp.besselk),
    "kve": function(s.kve),
    "j0": _of_order(sp.besselj, 0),
    "j1": _of_order(sp.besselj, 1),
    "y0": _of_order(sp.bessely, 0),
    "y1": _of_order(sp.bessely, 1),
    "i0": _of_order(sp.besseli, 0),
    "i1": _of_order(sp.besseli, 1),
    "i0e": _of_order(s.ive, 0),
    "i1e": _of_order(s.ive, 1),
    "k0": _of_order(sp.besselk, 0),
    "k1": _of_order(sp.besselk, 1),
    "k0e": _of_order(s.kve, 0),
    "k1e": _of_order(s.kve, 1),
    # logistic function, entropies, losses, logarithms and powers
    "expit": function(h.expit),
    "log_expit": function(h.log_expit),
    "logit": function(s.logit),
    "xlogy": function(h.xlogy),
    "xlog1py": function(s.xlog1py),
    "entr": function(s.entr),
    "rel_entr": function(s.rel_entr),
    "kl_div": function(s.kl_div),
    "huber": composed(_huber),
    "pseudo_huber": function(s.pseudo_huber),
    "boxcox": function(s.boxcox),
    "boxcox1p": function(s.boxcox1p),
    "inv_boxcox": function(s.inv_boxcox),
    "inv_boxcox1p": function(s.inv_boxcox1p),
    "exprel": function(s.exprel),
    "powm1": function(s.powm1),
    "exp10": composed(lambda graph, u: op.power(graph, graph.number(10), u)),
    "cosm1": composed(_cosm1),
    "round": UFUNCS["rint"],
    "sindg": function(s.sindg),
    "cosdg": function(s.cosdg),
    "tandg": function(s.tandg),
    "cotdg": function(s.cotdg),
    "radian": composed(_radian),
    # integrals
    "exp1": _of_order(sp.expint, 1),
    "expn": function(sp.expint),
    "expi": function(sp.Ei),
    "ellipk": function(sp.elliptic_k),
    "ellipkm1": function(s.ellipkm1),
    "ellipe": function(sp.elliptic_e),
    "ellipkinc": function(sp.elliptic_f),
    "ellipeinc": function(sp.elliptic_e),
    "spence": function(s.spence),
    # polynomials of a constant degree, hypergeometric functions, inverses of x exp(x) and x + log(x)
    "eval_legendre": function(sp.legendre),
    "eval_chebyt": function(sp.chebyshevt),
    "eval_chebyu": function(sp.chebyshevu),
    "eval_chebyc": _scaled_argument(sp.chebyshevt, Fraction(1, 2), outside=2),
    "eval_chebys": _scaled_argument(sp.chebyshevu, Fraction(1, 2)),
    "eval_sh_legendre": _scaled_argument(sp.legendre, 2, -1),
    "eval_sh_chebyt": _scaled_argument(sp.chebyshevt, 2, -1),
    "eval_sh_chebyu": _scaled_argument(sp.chebyshevu, 2, -1),
    "eval_hermite": function(sp.hermite),
    "eval_hermitenorm": function(s.hermitenorm),
    "eval_laguerre": function(sp.laguerre),
    "eval_genlaguerre": function(sp.assoc_laguerre),
    "eval_gegenbauer": function(sp.gegenbauer),
    "eval_jacobi": function(sp.jacobi),
    "hyp0f1": function(s.hyp0f1),
    "hyp1f1": function(s.hyp1f1),
    "hyp2f1": function(s.hyp2f1),
    "hyperu": function(s.hyperu),
    "_lambertw": composed(_lambert),
    "wrightomega": function(s.wrightomega),
}

SEVERAL_OUTPUTS |= {
    "sici": (function(sp.Si), function(sp.Ci)),
    "shichi": (function(sp.Shi), function(sp.Chi)),
    "fresnel": (function(sp.fresnels), function(sp.fresnelc)),
    "airy": (function(sp.airyai), function(sp.airyaiprime), function(sp.airybi), function(sp.airybiprime)),
    "ellipj": tuple(function(head) for head in (s.jacobi_sn, s.jacobi_cn, s.jacobi_dn, s.jacobi_am)),
}
