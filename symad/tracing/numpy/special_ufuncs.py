"""SciPy's special functions as rows of the ufunc table, by name, so that SciPy is optional."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial, reduce

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
    return op.select(graph, UFUNCS["less"](graph, delta, graph.number(0)), graph.number(math.inf), inside)


def _beta_density(graph: Graph, u: int, a: int, b: int) -> int:
    """The density of the beta distribution, by its logarithm."""
    one = graph.number(1)
    left = graph.node(h.xlogy, op.subtract(graph, a, one), u)
    right = graph.node(s.xlog1py, op.subtract(graph, b, one), op.negative(graph, u))
    return graph.node(sp.exp, op.subtract(graph, op.add(graph, left, right), graph.node(s.betaln, a, b)))


def _binomial_mass(graph: Graph, k: int, n: int, p: int) -> int:
    """The probability of k successes of n, by its logarithm."""
    one, others = graph.number(1), op.subtract(graph, n, k)
    left, right = graph.node(h.xlogy, k, p), graph.node(s.xlog1py, others, op.negative(graph, p))
    ways = graph.node(s.betaln, op.add(graph, k, one), op.add(graph, others, one))
    ways = op.add(graph, graph.node(sp.log, op.add(graph, n, one)), ways)
    return graph.node(sp.exp, op.subtract(graph, op.add(graph, left, right), ways))


def _voigt(graph: Graph, u: int, sigma: int, gamma: int) -> int:
    """Re w(z/(sqrt(2) sigma)) / (sqrt(2 pi) sigma) for z = u + i gamma, unless its slope in sigma would cancel."""
    scale = op.multiply(graph, graph.number(math.sqrt(2)), sigma)
    real = graph.node(s.faddeeva_real, graph.number(0), op.divide(graph, u, scale), op.divide(graph, gamma, scale))
    voigt = op.divide(graph, real, op.multiply(graph, graph.number(math.sqrt(math.pi)), scale))
    size, at_least = graph.node(h.hypot, u, gamma), UFUNCS["greater_equal"]
    conditions = [at_least(graph, size, op.multiply(graph, graph.number(40), sigma)), UFUNCS["isfinite"](graph, size)]
    conditions += [at_least(graph, width, graph.number(0)) for width in (sigma, gamma)]
    is_narrow = reduce(partial(UFUNCS["logical_and"], graph), conditions)
    return op.select(graph, is_narrow, _narrow_voigt(graph, u, sigma, gamma, size), voigt)


def _narrow_voigt(graph: Graph, u: int, sigma: int, gamma: int, size: int) -> int:
    """Im (1 + t (1 + 3 t (1 + 5 t (...)))) / (pi z), t = (sigma/z)**2, z = u - i gamma: Cauchy's density first."""
    inverse = tuple(op.divide(graph, op.divide(graph, part, size), size) for part in (u, gamma))
    ratio = tuple(op.multiply(graph, sigma, part) for part in inverse)
    square, one = _complex_product(graph, ratio, ratio), graph.number(1)
    total = one, graph.number(0)
    for odd in (9, 7, 5, 3, 1):
        real, imaginary = _complex_product(graph, square, total)
        factor = graph.number(odd)
        total = op.add(graph, one, op.multiply(graph, factor, real)), op.multiply(graph, factor, imaginary)
    return op.multiply(graph, graph.number(1 / math.pi), _complex_product(graph, inverse, total)[1])


def _complex_product(graph: Graph, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, int]:
    (a, b), (c, d) = left, right
    products = [op.multiply(graph, first, second) for first, second in ((a, c), (b, d), (a, d), (b, c))]
    return op.subtract(graph, *products[:2]), op.add(graph, *products[2:])


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


UFUNCS |= {  # heads that have the names of the ufuncs
    head.__name__: function(head)
    for head in (
        sp.erf, sp.erfc, s.erfcx, sp.erfi, sp.erfinv, sp.erfcinv, s.dawsn, s.log_ndtr, s.owens_t,
        sp.gamma, s.rgamma, s.gammaln, sp.loggamma, s.gammasgn, sp.digamma, sp.beta, s.betaln, sp.zeta,
        s.ive, s.kve, h.expit, h.log_expit, s.logit, h.xlogy, s.xlog1py, s.entr,
        s.rel_entr, s.kl_div, s.pseudo_huber, s.boxcox, s.boxcox1p, s.inv_boxcox, s.inv_boxcox1p, s.exprel, s.powm1,
        s.sindg, s.cosdg, s.tandg, s.cotdg, s.ellipkm1, s.spence, s.hyp0f1, s.hyp1f1, s.hyp2f1, s.hyperu,
        s.wrightomega,
    )
}  # fmt: skip
UFUNCS |= {
    name.format(order): _of_order(head, order)
    for name, head in (
        ("j{}", sp.besselj), ("y{}", sp.bessely), ("i{}", sp.besseli), ("i{}e", s.ive), ("k{}", sp.besselk),
        ("k{}e", s.kve),
    )
    for order in (0, 1)
}  # fmt: skip
UFUNCS |= {
    # error functions, normal distribution
    "ndtr": composed(_normal),
    "ndtri": composed(_normal_quantile),
    # densities that SciPy's distributions have ufuncs for
    "_beta_pdf": composed(_beta_density),
    "_binom_pmf": composed(_binomial_mass),
    "voigt_profile": composed(_voigt),
    # gamma and beta functions
    "psi": function(sp.digamma),
    "poch": composed(_rising),
    "binom": function(sp.binomial),
    "_zeta": function(sp.zeta),
    "_riemann_zeta": function(sp.zeta),
    # Bessel and Airy functions
    "jv": function(sp.besselj),
    "jve": function(sp.besselj),
    "yv": function(sp.bessely),
    "yve": function(sp.bessely),
    "yn": function(sp.bessely),
    "iv": function(sp.besseli),
    "kv": function(sp.besselk),
    "kn": function(sp.besselk),
    # logistic function, entropies, losses, logarithms and powers
    "huber": composed(_huber),
    "exp10": composed(lambda graph, u: op.power(graph, graph.number(10), u)),
    "cosm1": composed(_cosm1),
    "round": UFUNCS["rint"],
    "radian": composed(_radian),
    # integrals
    "exp1": _of_order(sp.expint, 1),
    "expn": function(sp.expint),
    "expi": function(sp.Ei),
    "ellipk": function(sp.elliptic_k),
    "ellipe": function(sp.elliptic_e),
    "ellipkinc": function(sp.elliptic_f),
    "ellipeinc": function(sp.elliptic_e),
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
    "_lambertw": composed(_lambert),
}

SEVERAL_OUTPUTS |= {
    "sici": (function(sp.Si), function(sp.Ci)),
    "shichi": (function(sp.Shi), function(sp.Chi)),
    "fresnel": (function(sp.fresnels), function(sp.fresnelc)),
    "airy": (function(sp.airyai), function(sp.airyaiprime), function(sp.airybi), function(sp.airybiprime)),
    "ellipj": tuple(function(head) for head in (s.jacobi_sn, s.jacobi_cn, s.jacobi_dn, s.jacobi_am)),
}
