"""SciPy's special functions as rows of the ufunc table, by name, so that SciPy is optional."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
import symad.tracing.values.node_builders as op
from codegen.ir.program import Head
from symad.errors import TraceError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.formula_terms import HALF, Term, built, chosen, formula, of
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


def _normal_quantile(p: Term) -> Term:
    """-sqrt(2) erfcinv(2 p), which keeps the digits of small p."""
    root = Term(p.graph, p.graph.node(sp.Pow, p.graph.number(2), p.graph.number(HALF)))
    return -(root * of(sp.erfcinv, 2 * p))


def _huber(delta: Term, u: Term) -> Term:
    """u**2/2 for |u| <= delta, delta (|u| - delta/2) beyond; inf for delta < 0."""
    size = built(UFUNCS["absolute"], u)
    inside = chosen(size <= delta, HALF * u**2, delta * (size - HALF * delta))
    return chosen(delta < 0, math.inf, inside)


def _binomial_mass(k: Term, n: Term, p: Term) -> Term:
    """The probability of k successes of n, by its logarithm."""
    others = n - k
    ways = of(sp.log, n + 1) + of(s.betaln, k + 1, others + 1)
    return of(sp.exp, of(h.xlogy, k, p) + of(s.xlog1py, others, -p) - ways)


def _voigt(u: Term, sigma: Term, gamma: Term) -> Term:
    """Re w(z/(sqrt(2) sigma)) / (sqrt(2 pi) sigma) for z = u + i gamma, unless its slope in sigma would cancel."""
    scale = math.sqrt(2) * sigma
    voigt = of(s.faddeeva_real, 0, u / scale, gamma / scale) / (math.sqrt(math.pi) * scale)
    size = of(h.hypot, u, gamma)
    conditions = [size >= 40 * sigma, built(UFUNCS["isfinite"], size), sigma >= 0, gamma >= 0]
    is_narrow = reduce(lambda a, b: built(UFUNCS["logical_and"], a, b), conditions)
    return chosen(is_narrow, _narrow_voigt(u, sigma, gamma, size), voigt)


def _narrow_voigt(u: Term, sigma: Term, gamma: Term, size: Term) -> Term:
    """Im (1 + t (1 + 3 t (1 + 5 t (...)))) / (pi z), t = (sigma/z)**2, z = u - i gamma: Cauchy's density first."""
    inverse = u / size / size, gamma / size / size
    ratio = sigma * inverse[0], sigma * inverse[1]
    square = _complex_product(ratio, ratio)
    total: tuple[Any, Any] = 1, 0
    for odd in (9, 7, 5, 3, 1):
        real, imaginary = _complex_product(square, total)
        total = 1 + odd * real, odd * imaginary
    return 1 / math.pi * _complex_product(inverse, total)[1]


def _complex_product(left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Term, Term]:
    (a, b), (c, d) = left, right
    return a * c - b * d, a * d + b * c


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
_HEADS = {  # of ufuncs that have other names
    "psi": sp.digamma, "binom": sp.binomial, "_zeta": sp.zeta, "_riemann_zeta": sp.zeta,
    "jv": sp.besselj, "jve": sp.besselj, "yv": sp.bessely, "yve": sp.bessely, "yn": sp.bessely, "iv": sp.besseli,
    "kv": sp.besselk, "kn": sp.besselk,
    "expn": sp.expint, "expi": sp.Ei, "ellipk": sp.elliptic_k, "ellipe": sp.elliptic_e, "ellipkinc": sp.elliptic_f,
    "ellipeinc": sp.elliptic_e,
    # polynomials of a constant degree
    "eval_legendre": sp.legendre, "eval_chebyt": sp.chebyshevt, "eval_chebyu": sp.chebyshevu,
    "eval_hermite": sp.hermite, "eval_hermitenorm": s.hermitenorm, "eval_laguerre": sp.laguerre,
    "eval_genlaguerre": sp.assoc_laguerre, "eval_gegenbauer": sp.gegenbauer, "eval_jacobi": sp.jacobi,
}  # fmt: skip
UFUNCS |= {name: function(head) for name, head in _HEADS.items()}
_FORMULAS: dict[str, Callable[..., Term]] = {
    "ndtr": lambda u: HALF * of(sp.erfc, u * -math.sqrt(0.5)),
    "ndtri": _normal_quantile,
    "cosm1": lambda u: -2 * of(sp.sin, HALF * u) ** 2,
    "radian": lambda degrees, minutes, seconds: (degrees + (minutes + seconds / 60) / 60) * (math.pi / 180),
    "huber": _huber, "_binom_pmf": _binomial_mass, "voigt_profile": _voigt,
    "_beta_pdf": lambda u, a, b: of(sp.exp, of(h.xlogy, a - 1, u) + of(s.xlog1py, b - 1, -u) - of(s.betaln, a, b)),
}  # fmt: skip
UFUNCS |= {name: formula(terms) for name, terms in _FORMULAS.items()}
UFUNCS |= {
    "poch": composed(_rising),
    "_lambertw": composed(_lambert),
    "exp10": composed(lambda graph, u: op.power(graph, graph.number(10), u)),
    "round": UFUNCS["rint"],
    "exp1": _of_order(sp.expint, 1),
    "eval_chebyc": _scaled_argument(sp.chebyshevt, Fraction(1, 2), outside=2),
    "eval_chebys": _scaled_argument(sp.chebyshevu, Fraction(1, 2)),
    "eval_sh_legendre": _scaled_argument(sp.legendre, 2, -1),
    "eval_sh_chebyt": _scaled_argument(sp.chebyshevt, 2, -1),
    "eval_sh_chebyu": _scaled_argument(sp.chebyshevu, 2, -1),
}

_SEVERAL: dict[str, tuple[Head, ...]] = {
    "sici": (sp.Si, sp.Ci), "shichi": (sp.Shi, sp.Chi), "fresnel": (sp.fresnels, sp.fresnelc),
    "airy": (sp.airyai, sp.airyaiprime, sp.airybi, sp.airybiprime),
    "ellipj": (s.jacobi_sn, s.jacobi_cn, s.jacobi_dn, s.jacobi_am),
}  # fmt: skip
SEVERAL_OUTPUTS |= {name: tuple(map(function, heads)) for name, heads in _SEVERAL.items()}
