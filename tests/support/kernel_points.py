"""Points at which each row of the table of intrinsics is checked, and the measure of error."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import sympy as sp
from mpmath import mp
from sympy.codegen import cfunctions

from codegen import distribution_heads as d, heads, special_heads as s

WIDE = [-40.0, -3.7, -1.0, -0.5, -1e-8, 1e-8, 0.25, 0.5, 0.999, 1.0, 1.5, 2.0, 3.7, 20.0, 37.25]
TAILS = [-700.0, -300.0, -1e-300, 1e-300, 300.0, 700.0]
EDGES = [-math.inf, -0.0, 0.0, math.inf, math.nan]
MODERATE = [-2.7, -1.5, -0.5, 0.25, 0.5, 1.25, 2.0, 3.7, 8.5, 20.0]
POSITIVE = [0.05, 0.25, 0.5, 1.25, 2.0, 3.7, 8.5, 20.0]
UNIT = [-0.95, -0.5, -1e-3, 1e-3, 0.25, 0.5, 0.95]
PAIRS = [(1.5, 2.5), (-1.5, 2.5), (3.25, -0.75), (0.5, 4.0), (7.0, 2.0), (-7.0, 2.0), (1e-5, 3.0)]
ORDERS = [(0.0, 1.5), (1.0, 2.5), (2.0, 0.75), (3.0, 8.5), (0.5, 2.25)]
DEGREES = [(0.0, 0.3), (1.0, -0.4), (2.0, 0.6), (5.0, 0.85), (7.0, -0.2)]

ENTROPY = [(1.5, 2.5), (1.0, 1.0), (1.0, 1.0 + 1e-9), (1.05, 1.0), (0.0, 2.0), (0.0, 0.0), (-1.0, 1.0), (1.0, 0.0)]
INCOMPLETE = [(0.5, 0.05), (2.5, 3.7), (10.0, 12.0)]

SPECIAL_POINTS: dict[Any, list[Any]] = {
    sp.erfinv: UNIT, sp.erfcinv: [0.05, 0.5, 0.75, 1.25, 1.9], sp.elliptic_k: [-2.0, -0.5, 0.1, 0.5, 0.9],
    sp.elliptic_e: [-2.0, -0.5, 0.1, 0.5, 0.9], sp.digamma: POSITIVE, sp.loggamma: POSITIVE,
    sp.gamma: [0.05, 0.25, 0.5, 1.5, 4.0, 8.5, 20.0, -1.5], sp.factorial: [0.0, 0.5, 3.0, 4.5, 10.0],
    sp.LambertW: [-0.36, -0.3, -0.2, -0.1, -1e-9, 1e-9, 0.25, 1.0, 5.0, 100.0, 1e10, 1e300],
    sp.zeta: [-1.5, -0.5, 0.5, 1.5, 2.0, 3.7, 20.0], sp.Ei: MODERATE, sp.Si: MODERATE, sp.Ci: MODERATE,
    sp.Shi: MODERATE, sp.Chi: MODERATE, sp.airyai: [-2.7, -0.5, 0.5, 2.0, 8.5], sp.airybi: [-2.7, -0.5, 0.5, 2.0, 8.5],
    sp.airyaiprime: [-2.7, -0.5, 0.5, 2.0, 8.5], sp.airybiprime: [-2.7, -0.5, 0.5, 2.0, 8.5],
    sp.fresnels: MODERATE, sp.fresnelc: MODERATE, sp.erfi: [-2.7, -0.5, 0.25, 1.25, 3.7],
    sp.asin: UNIT, sp.acos: UNIT, sp.atanh: UNIT, sp.acosh: [1.0, 1.25, 2.0, 20.0, 1e10],
    sp.asec: [-20.0, -1.5, 1.25, 3.7, 1e5], sp.acsc: [-20.0, -1.5, 1.25, 3.7, 1e5],
    sp.acoth: [-20.0, -1.5, 1.25, 3.7, 1e5], sp.asech: [0.05, 0.25, 0.5, 0.9], sp.log: [1e-300, *POSITIVE, 1e300],
    heads.log2: POSITIVE, heads.log10: POSITIVE, heads.log1p: [-0.95, -1e-9, *POSITIVE], cfunctions.Sqrt: POSITIVE,
    sp.polygamma: [(0.0, 2.5), (1.0, 0.5), (2.0, 3.7), (3.0, 8.5)], sp.beta: [(1.5, 2.5), (0.5, 4.0), (8.5, 3.0)],
    sp.besselj: [*ORDERS, (-1.0, 2.5)], sp.bessely: [*ORDERS, (-1.0, 2.5)], sp.besseli: ORDERS, sp.besselk: ORDERS,
    sp.elliptic_f: [(0.3, 0.5), (1.2, 0.25), (-0.7, -1.0)],
    sp.expint: [(1.0, 0.5), (2.0, 3.7), (3.0, 0.05), (0.0, 2.5), (-3.0, 0.7)],
    sp.binomial: [(5.0, 2.0), (4.5, 1.5), (10.0, 3.0)], sp.legendre: DEGREES, sp.chebyshevt: DEGREES,
    sp.hermite: DEGREES, sp.jn: [(0.0, 1.5), (1.0, 2.5), (2.0, 3.75), (3.0, 8.5)],
    sp.assoc_laguerre: [(2.0, 0.5, 0.3), (5.0, 1.0, 2.4)],
    sp.chebyshevu: DEGREES, sp.laguerre: DEGREES, sp.hermite: DEGREES,
    heads.one_minus_square: UNIT, heads.log_argument: POSITIVE,
    heads.elliptic_moment: [(0.0, 0.0, 0.3), (1.0, 1.0, 0.5), (2.0, 1.0, -0.7), (1.0, 0.0, 1e-9)],
    sp.jn: [(0.0, 0.3), (1.0, -0.4), (2.0, 5.5), (3.0, 1e-4), (5.0, 4.9), (5.0, 8.5), (12.0, 11.0)],
    sp.assoc_laguerre: [(2.0, 1.5, 0.3), (5.0, 0.75, -0.4)],
    sp.gegenbauer: [(2.0, 1.5, 0.3), (5.0, 0.75, -0.4)], sp.jacobi: [(2.0, 0.5, 1.5, 0.3), (5.0, 1.25, 0.25, -0.4)],
    sp.Pow: [(2.0, 0.3), (0.5, -3.7), (7.5, 12.25), (-8.0, 1 / 3), (1e-3, 40.5), (3.0, 100.0)],
    sp.Heaviside: [(-1.5, 0.5), (0.0, 0.25), (0.0, 1.0), (2.0, 0.5)],
    heads.logaddexp: [*PAIRS, (700.0, 710.0), (-700.0, -710.0)], cfunctions.fma: [(1.5, 2.5, -0.75), (0.1, 0.3, 7.0)],
    heads.direction_cosine: [*PAIRS, (3e200, 4e200)], heads.hypot: [*PAIRS, (3e200, 4e200)],
}  # fmt: skip
SPECIAL_POINTS |= {
    s.erfcx: [-20.0, -2.7, -0.5, 0.0, 0.25, 1.25, 3.7, 40.0, 1e5], s.dawsn: [*MODERATE, 1e5],
    s.erfc_ratio: [(1.0, u) for u in (-40.0, -2.5, 0.0, 0.7, 1.4, 1.6, 5.0, 40.0, 1e5)] + [(4.0, 1.4), (4.0, 1.6)],
    **{
        part: [(n, u, v) for n in (0.0, 1.0) for u, v in ((0.0, 0.7), (0.3, 1e-9), (-1.5, 0.4), (4.0, 5.0), (9.0, 0.1),
                                                          (30.0, 200.0), (1e5, 1.0), (0.5, -1.25), (0.9, 0.0))]
        for part in (s.faddeeva_real, s.faddeeva_imag)
    },
    s.log_ndtr: [-1e5, -40.0, -2.5, -0.5, 0.0, 0.7, 5.0], s.normal_hazard: [-1e5, -40.0, -2.5, 0.0, 0.7, 5.0],
    s.owens_t: [(0.3, 0.4), (-1.2, 2.0), (2.5, -0.7)], s.stdtr: [(1.0, 0.5), (3.5, -2.0), (30.0, 1.2)],
    s.gammaln: [-3.5, -0.5, *POSITIVE, 1e10], s.rgamma: [-3.0, -2.5, -1.0, -0.5, 0.0, *POSITIVE, 171.0],
    s.gammasgn: [-2.5, -1.5, -0.5, 0.0, 0.5, 20.0], s.betaln: [(1.5, 2.5), (0.5, 4.0), (8.5, 3.0), (1e3, 2e3)],
    s.polygamma_difference: [
        (0.0, 0.7, 1.1), (0.0, 13.0, 1e-9), (0.0, 1e8, 0.5), (1.0, 13.5, 0.5), (2.0, 1e3, 7.0), (1.0, 1e3, -900.0),
        (3.0, 15.5, 1e3), (0.0, 0.7, 3e-9), (1.0, 0.2, -1e-12), (2.0, 1.5, 1e-12), (0.0, 12.5, -3.0),
    ],
    sp.RisingFactorial: [(1.5, 2.5), (0.5, 4.0), (8.5, 3.0)],
    **dict.fromkeys((s.gammainc, s.gammaincc, sp.lowergamma, sp.uppergamma), INCOMPLETE),
    s.gamma_kernel: [(1.5, 0.3, 0.7), (0.0, 0.3, 4.5), (0.0, 0.3, 0.0), (1.5, 0.3, 0.0), (30.0, 71.0, 28.0)],
    **{head: [(1.5, 2.5, 0.7), (3.0, 1.0, 0.2), (2.0, 3.0, 0.0), (2.0, 3.0, 1.0)] for head in (s.betainc, s.betaincc)},
    s.beta_kernel: [(0.5, 1.5, 0.3, 0.7), (0.0, 1.0, 0.3, 0.0), (1.0, 0.0, 0.3, 1.0), (2.0, 2.0, 0.3, 1e-9)],
    d.gamma_moment: [
        (n, *rest) for n in (0.0, 1.0, 2.0) for rest in ((1e-3, 0.7), (0.5, 0.05), (2.5, 3.7), (30.0, 28.5))
    ],
    d.beta_moment: [
        (m, n, *rest) for m, n in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
        for rest in ((1.5, 2.5, 0.7), (1e-3, 0.2, 0.2), (30.0, 2.0, 0.9), (2.0, 50.0, 1e-3))
    ],
    **{
        head: [(0.5, 0.05), (2.5, 0.7), (30.0, 0.5), (2.5, 0.0), (2.5, 1e-9)]
        for head in (d.gammaincinv, d.gammainccinv)
    },
    **{
        head: [(1.5, 2.5, 0.7), (3.0, 1.0, 0.2), (30.0, 0.5, 0.5), (2.0, 3.0, 0.0)]
        for head in (d.betaincinv, d.betainccinv)
    },
    d.ndtri_exp: [-1e4, -40.0, -0.7, -1e-9],
    d.stdtrit: [(1.0, 0.3), (3.5, 0.9), (30.0, 1e-9)],
    s.ive: [*ORDERS, (1.0, 700.0)], s.kve: [*ORDERS, (1.0, 700.0)],
    **{head: [(0.0, 0.3), (1.0, -0.4), (2.0, 5.5), (5.0, 8.5)] for head in (sp.yn, s.spherical_yn, s.spherical_kn)},
    s.spherical_jn: [(0.0, 0.3), (1.0, -0.4), (2.0, 5.5), (3.0, 1e-4), (5.0, 4.9), (5.0, 8.5), (12.0, 11.0)],
    s.spherical_in: [(0.0, 0.3), (0.0, 0.0), (1.0, -0.4), (2.0, 5.5), (3.0, -5.0), (5.0, 4.9), (5.0, 8.5)],
    s.logit: [1e-300, 1e-9, 0.1, 0.25, 0.4, 0.5000001, 0.75, 0.9, 0.999999],
    s.xlog1py: [(1.5, 2.5), (0.0, -1.0), (-2.5, -0.999), (3.0, 1e-9)],
    s.log_ratio: [(1.5, 2.5), (1.0, 1.0), (1.0, 1.0 + 1e-9), (1e300, 1e-300), (7.0, 2.0)],
    s.entr: [-1.0, 0.0, 1e-300, *POSITIVE],
    s.rel_entr: ENTROPY, s.kl_div: ENTROPY,
    s.hypot_excess: [(0.7, 1.1), (3.0, -1e-5), (1.0, 0.0), (1.0, 1e200)],
    s.pseudo_huber: [(0.7, 1.1), (3.0, -1e-5), (0.0, 1.0), (0.0, 0.0), (-1.0, 2.0), (1.0, 1e200)],
    s.exprel: [-40.0, -3.7, -1e-9, 0.0, 1e-9, 0.5, 20.0], s.powm1: [(1.0 + 1e-9, 2.0), (2.5, -1.5), (0.3, 0.1)],
    s.boxcox: [(1.3, 2.7), (0.4, -1.5), (1.3, 0.0), (2.0, 1e-9), (0.0, 2.0)],
    s.boxcox1p: [(1.3, 2.7), (-0.4, -1.5), (1.3, 0.0), (1e-9, 1.5), (-1.0, 2.0)],
    s.inv_boxcox: [(1.3, 2.7), (0.4, -1.5), (1.3, 0.0), (2.0, 1e-9)],
    s.inv_boxcox1p: [(1.3, 2.7), (0.4, -1.5), (1.3, 0.0), (1e-9, 2.0)],
    **{head: [-200.0, -33.0, 10.0, 60.0, 135.0] for head in (s.sindg, s.cosdg, s.tandg, s.cotdg)},
    s.hyp0f1: [(1.5, 0.7), (2.5, -3.0)], s.hyp1f1: [(0.5, 1.5, 0.7), (2.0, 2.5, -3.0)],
    s.hyp2f1: [(0.5, 1.5, 2.5, 0.7), (2.0, 1.0, 2.5, -3.0)], s.hyperu: [(0.5, 1.5, 0.7), (2.0, 2.5, 3.0)],
    s.hermitenorm: DEGREES, s.ellipkm1: [1e-300, 1e-9, 0.3, 1.0, 3.0],
    **{head: [(0.7, 0.5), (-3.0, 0.2), (9.0, 0.7)] for head in (s.jacobi_sn, s.jacobi_cn, s.jacobi_dn, s.jacobi_am)},
    s.wrightomega: [-40.0, -2.5, 0.0, 0.7, 5.0, 1e3], s.spence: [0.0, 0.3, 0.999, 1.0, 2.5, 20.0],
}  # fmt: skip
TRUTHS = {sp.And, sp.Or, sp.Xor, sp.Nand, sp.Nor, sp.Implies}
PAIRED = {
    sp.Add, sp.Mul, sp.Max, sp.Min, sp.Mod, sp.atan2, heads.fmod, heads.copysign, heads.tie_share, heads.xlogy, sp.Lt,
    sp.Le, sp.Gt, sp.Ge, sp.Eq, sp.Ne, *TRUTHS,
}  # fmt: skip
OWN_TESTS = {sp.ITE, sp.Piecewise, sp.im, sp.Not}


def points_of(head: Any) -> list[tuple[float, ...]]:
    """Points inside the domain of a head, as tuples of its operands."""
    chosen = SPECIAL_POINTS.get(head, PAIRS if head in PAIRED else WIDE)
    return [point if isinstance(point, tuple) else (point,) for point in chosen]


def ulp_error(value: float, exact: Any) -> float:
    """Distance of a float from an exact value in units of its last place; 0 where both are nan or the same infinity."""
    if mp.isnan(exact) or math.isnan(value):
        return 0.0 if mp.isnan(exact) and math.isnan(value) else math.inf
    if math.isinf(value):
        return 0.0 if value == float(exact) else math.inf
    with mp.workdps(60):
        return float(abs(mpmath.mpf(value) - exact) / math.ulp(float(exact)))
