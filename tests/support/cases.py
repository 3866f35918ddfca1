"""The one list of functions and points that the tests share: heads with operands, and whole functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from sympy.codegen import cfunctions

from codegen import distribution_heads as d, heads as h, special_heads as s

# One line for each head: points (tuples of operands) inside the domain. Operand positions in INTEGER_OPERANDS are
# orders. A head without a line here fails tests/symad/rules/test_tables.py.
HEAD_POINTS: dict[Any, list[tuple[float, ...]]] = {
    h.Alias: [(0.7,)],
    sp.Add: [(0.3, 1.7), (-2.5, 0.1)],
    sp.Mul: [(0.3, 1.7), (-2.5, 0.1)],
    sp.Pow: [(1.3, 2.7), (0.4, -1.5), (2.5, 0.5), (3.0, 3.0)],
    sp.Abs: [(0.7,), (-1.2,)],
    sp.sign: [(0.7,), (-1.2,)],
    sp.Max: [(0.7, 1.1), (2.0, -1.0)],
    sp.Min: [(0.7, 1.1), (2.0, -1.0)],
    sp.floor: [(0.7,), (-1.2,)],
    sp.ceiling: [(0.7,), (-1.2,)],
    sp.frac: [(0.7,), (-1.2,)],
    h.trunc: [(1.7,), (-1.2,)],
    h.rint: [(1.7,), (-1.2,)],
    h.fmod: [(7.3, 2.1), (-7.3, 2.1)],
    h.copysign: [(0.7, -1.1), (-0.7, 1.1), (0.7, 2.0)],
    sp.Mod: [(7.3, 2.1), (-7.3, 2.1), (7.3, -2.1)],
    sp.Heaviside: [(0.7, 0.5), (-1.2, 0.5)],
    h.hypot: [(0.7, 1.1), (-3.0, 4.0)],
    h.direction_cosine: [(0.7, 1.1), (-3.0, 4.0)],
    h.cbrt: [(0.7,), (-8.0,)],
    sp.exp: [(0.7,), (-3.0,)],
    h.exp2: [(0.7,), (-3.0,)],
    h.expm1: [(0.7,), (-1e-3,)],
    sp.log: [(0.7,), (13.0,)],
    h.log2: [(0.7,), (13.0,)],
    h.log10: [(0.7,), (13.0,)],
    h.log1p: [(0.7,), (-1e-3,)],
    sp.sin: [(0.7,), (-3.0,)],
    sp.cos: [(0.7,), (-3.0,)],
    sp.tan: [(0.7,), (-1.2,)],
    sp.cot: [(0.7,), (-1.2,)],
    sp.sec: [(0.7,), (-1.2,)],
    sp.csc: [(0.7,), (-1.2,)],
    sp.sinh: [(0.7,), (-3.0,)],
    sp.cosh: [(0.7,), (-3.0,)],
    sp.tanh: [(0.7,), (20.0,), (-3.0,)],
    sp.coth: [(0.7,), (-3.0,)],
    sp.sech: [(0.7,), (-3.0,)],
    sp.csch: [(0.7,), (-3.0,)],
    h.one_minus_square: [(0.7,), (-0.99,)],
    h.tie_share: [(0.7, 1.1), (2.0, -1.0)],
    h.log_argument: [(0.7,), (13.0,)],
    sp.asin: [(0.7,), (-0.99,)],
    sp.acos: [(0.7,), (-0.99,)],
    sp.atan: [(0.7,), (-3.0,)],
    sp.acot: [(0.7,), (-3.0,)],
    sp.asec: [(1.7,), (-3.0,)],
    sp.acsc: [(1.7,), (-3.0,)],
    sp.asinh: [(0.7,), (-30.0,)],
    sp.acosh: [(1.7,), (30.0,)],
    sp.atanh: [(0.7,), (-0.99,)],
    sp.acoth: [(1.7,), (-3.0,)],
    sp.asech: [(0.7,), (0.2,)],
    sp.acsch: [(0.7,), (-3.0,)],
    sp.atan2: [(0.7, 1.1), (-0.7, -1.1), (0.7, -1.1)],
    sp.sinc: [(0.7,), (-3.0,), (0.01,)],
    h.expit: [(0.7,), (-3.0,), (40.0,)],
    h.log_expit: [(0.7,), (-3.0,), (40.0,)],
    h.softplus: [(0.7,), (-3.0,), (40.0,)],
    h.logaddexp: [(0.7, 1.1), (-3.0, 20.0)],
    h.xlogy: [(0.7, 1.1), (-3.0, 0.2)],
    sp.erf: [(0.7,), (-3.0,)],
    sp.erfc: [(0.7,), (3.0,)],
    sp.erfi: [(0.7,), (-1.0,)],
    sp.erfinv: [(0.7,), (-0.2,)],
    sp.erfcinv: [(0.7,), (1.2,)],
    sp.gamma: [(0.7,), (4.5,), (-1.5,)],
    sp.loggamma: [(0.7,), (4.5,)],
    sp.polygamma: [(0, 0.7), (1, 4.5), (3, 1.0)],
    sp.beta: [(0.7, 1.1), (3.0, 2.5)],
    sp.besselj: [(0, 0.7), (1, 4.5), (3, 1.0)],
    sp.bessely: [(0, 0.7), (1, 4.5), (3, 1.0)],
    sp.besseli: [(0, 0.7), (1, 4.5), (3, 1.0)],
    sp.besselk: [(0, 0.7), (1, 4.5), (3, 1.0)],
    sp.jn: [(0, 0.7), (1, 4.5), (3, 1.0)],
    sp.airyai: [(0.7,), (-3.0,)],
    sp.airybi: [(0.7,), (-3.0,)],
    sp.airyaiprime: [(0.7,), (-3.0,)],
    sp.airybiprime: [(0.7,), (-3.0,)],
    sp.elliptic_k: [(0.5,), (-1.2,), (0.0,), (1e-9,)],
    sp.elliptic_e: [(0.5,), (-1.2,), (0.0,), (1e-9,)],
    h.elliptic_moment: [(1, 1, 0.5), (2, 0, -1.2), (1, 1, 0.0)],
    sp.LambertW: [(0.7,), (-0.2,)],
    sp.zeta: [(2.5,)],
    sp.Ei: [(0.7,), (3.0,)],
    sp.Si: [(0.7,), (3.0,), (0.0,)],
    sp.Ci: [(0.7,), (3.0,)],
    sp.Shi: [(0.7,), (3.0,), (0.0,)],
    sp.Chi: [(0.7,), (3.0,)],
    sp.fresnels: [(0.7,), (3.0,)],
    sp.fresnelc: [(0.7,), (3.0,)],
    sp.expint: [(1, 0.7), (2, 3.0)],
    sp.factorial: [(0.7,), (4.0,)],
    sp.binomial: [(5.5, 2.5)],
    sp.legendre: [(2, 0.7), (3, -0.4), (0, 0.7), (1, 0.7), (4, 1.0)],
    sp.chebyshevt: [(2, 0.7), (3, -0.4)],
    sp.chebyshevu: [(2, 0.7), (3, -0.4), (1, 0.7), (4, 1.0)],
    sp.hermite: [(2, 0.7), (3, -0.4), (0, 0.7), (1, 0.7)],
    sp.laguerre: [(2, 0.7), (3, -0.4)],
    sp.assoc_laguerre: [(2, 1.0, 0.7), (3, 2.0, -0.4)],
    sp.gegenbauer: [(2, 0.5, 0.7), (3, 1.5, -0.4)],
    sp.jacobi: [(2, 0.5, 1.5, 0.7), (3, 1.5, 0.5, -0.4)],
    sp.elliptic_f: [(0.7, 0.5), (-0.3, 0.2)],
    sp.digamma: [(0.7,), (4.5,)],
    s.erfcx: [(0.7,), (-3.0,), (30.0,)],
    s.dawsn: [(0.7,), (-3.0,), (30.0,)],
    s.erfc_ratio: [(1, 0.7), (2, -3.0), (1, 30.0)],
    s.faddeeva_real: [(0, 0.7, 0.3), (1, -1.2, 0.4), (0, 3.0, -0.5)],
    s.faddeeva_imag: [(0, 0.7, 0.3), (1, -1.2, 0.4), (0, 3.0, -0.5)],
    s.log_ndtr: [(0.7,), (-3.0,), (-40.0,)],
    s.normal_hazard: [(0.7,), (-3.0,), (-40.0,)],
    s.owens_t: [(0.7, 0.4), (-1.2, 2.0)],
    s.stdtr: [(3.5, 0.7), (2.0, -1.2)],
    s.gammaln: [(0.7,), (4.5,), (-1.5,)],
    s.rgamma: [(0.7,), (4.5,), (-1.5,), (0.0,), (-2.0,)],
    s.gammasgn: [(0.7,), (-1.5,), (-0.5,)],
    s.polygamma_difference: [(0, 0.7, 1.1), (1, 30.0, 2.5), (2, 3.0, -0.5)],
    s.betaln: [(0.7, 1.1), (3.0, 2.5)],
    sp.RisingFactorial: [(0.7, 1.1), (3.0, 2.5)],
    s.gammainc: [(1.5, 0.7), (3.0, 4.5)],
    s.gammaincc: [(1.5, 0.7), (3.0, 4.5)],
    sp.lowergamma: [(1.5, 0.7), (3.0, 4.5)],
    sp.uppergamma: [(1.5, 0.7), (3.0, 4.5)],
    s.gamma_kernel: [(1.5, 0.3, 0.7), (0.0, 0.3, 4.5)],
    s.betainc: [(1.5, 2.5, 0.7), (3.0, 1.0, 0.2)],
    s.betaincc: [(1.5, 2.5, 0.7), (3.0, 1.0, 0.2)],
    s.beta_kernel: [(0.5, 1.5, 0.3, 0.7), (2.0, 0.0, 0.3, 0.2), (0.0, 2.0, 0.3, 0.2), (0.0, 0.0, 0.3, 0.2)],
    d.gamma_moment: [(0, 1.5, 0.7), (1, 3.0, 4.5), (2, 0.4, 0.7), (0, 3.0, 4.5)],
    d.beta_moment: [(0, 0, 1.5, 2.5, 0.7), (1, 0, 3.0, 1.2, 0.2), (0, 1, 0.7, 2.5, 0.3), (1, 1, 1.5, 2.5, 0.3)],
    **{head: [(1.5, 0.3), (3.0, 0.8)] for head in (d.gammaincinv, d.gammainccinv, d.stdtrit)},
    **{head: [(1.5, 2.5, 0.3), (3.0, 1.2, 0.9)] for head in (d.betaincinv, d.betainccinv)},
    d.ndtri_exp: [(-0.7,), (-40.0,)],
    s.ive: [(0, 0.7), (1, 4.5), (2.5, 3.0)],
    s.kve: [(0, 0.7), (1, 4.5), (2.5, 3.0)],
    sp.yn: [(0, 0.7), (1, 4.5), (3, -1.0)],
    s.spherical_jn: [(0, 0.7), (1, -4.5), (3, 1.0)],
    s.spherical_yn: [(0, 0.7), (1, 4.5), (3, -1.0)],
    s.spherical_in: [(0, 0.7), (1, 4.5), (3, -1.0)],
    s.spherical_kn: [(0, 0.7), (1, 4.5), (3, -1.0)],
    s.logit: [(0.7,), (1e-9,), (0.5,)],
    s.xlog1py: [(0.7, 1.1), (-3.0, 0.2)],
    s.log_ratio: [(0.7, 1.1), (3.0, 0.2)],
    s.entr: [(0.7,), (13.0,)],
    s.rel_entr: [(0.7, 1.1), (3.0, 0.2)],
    s.kl_div: [(0.7, 1.1), (0.7, 0.7), (3.0, 0.2)],
    s.hypot_excess: [(0.7, 1.1), (3.0, -1e-5)],
    s.pseudo_huber: [(0.7, 1.1), (3.0, -1e-5)],
    s.exprel: [(0.7,), (-3.0,), (0.0,)],
    s.powm1: [(1.3, 2.7), (0.4, -1.5)],
    s.boxcox: [(1.3, 2.7), (0.4, -1.5), (1.3, 0.0)],
    s.boxcox1p: [(1.3, 2.7), (-0.4, -1.5), (1.3, 0.0)],
    s.inv_boxcox: [(1.3, 2.7), (0.4, -1.5), (1.3, 0.0)],
    s.inv_boxcox1p: [(1.3, 2.7), (0.4, -1.5), (1.3, 0.0)],
    s.sindg: [(70.0,), (-200.0,)],
    s.cosdg: [(70.0,), (-200.0,)],
    s.tandg: [(70.0,), (-200.0,)],
    s.cotdg: [(70.0,), (-200.0,)],
    s.hyp0f1: [(1.5, 0.7), (2.5, -3.0)],
    s.hyp1f1: [(0.5, 1.5, 0.7), (2.0, 2.5, -3.0)],
    s.hyp2f1: [(0.5, 1.5, 2.5, 0.7), (2.0, 1.0, 2.5, -3.0)],
    s.hyperu: [(0.5, 1.5, 0.7), (2.0, 2.5, 3.0)],
    s.hermitenorm: [(0, 0.7), (2, 0.7), (3, -0.4)],
    s.ellipkm1: [(0.5,), (1e-9,)],
    s.jacobi_sn: [(0.7, 0.5), (-3.0, 0.2)],
    s.jacobi_cn: [(0.7, 0.5), (-3.0, 0.2)],
    s.jacobi_dn: [(0.7, 0.5), (-3.0, 0.2)],
    s.jacobi_am: [(0.7, 0.5), (-3.0, 0.2), (9.0, 0.2)],
    s.wrightomega: [(0.7,), (-3.0,), (30.0,)],
    s.spence: [(0.7,), (1.0,), (3.0,)],
    cfunctions.Sqrt: [(0.7,), (4.0,)],
    cfunctions.fma: [(0.7, -1.1, 2.0)],
    sp.re: [(0.7,)],
    sp.conjugate: [(0.7,)],
}

# Heads whose value is a truth value or that only choose: no partial of their own.
TRUTH_HEADS = (
    sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan, sp.Equality, sp.Unequality,
    sp.And, sp.Or, sp.Not, sp.Xor, sp.Nand, sp.Nor, sp.Implies, sp.ITE,
)  # fmt: skip

# Operands in which there is no derivative, so that asking for it has to raise RuleError.
REFUSED: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys((sp.polygamma, sp.besselj, sp.bessely, sp.besseli, sp.besselk, sp.jn, sp.zeta, sp.expint), (0,)),
    **dict.fromkeys((sp.legendre, sp.chebyshevt, sp.chebyshevu, sp.hermite, sp.laguerre), (0,)),
    sp.assoc_laguerre: (0, 1), sp.gegenbauer: (0, 1), sp.jacobi: (0, 1, 2), h.elliptic_moment: (0, 1),
    **dict.fromkeys((s.erfc_ratio, s.polygamma_difference, d.gamma_moment), (0,)),
    **dict.fromkeys((s.faddeeva_real, s.faddeeva_imag), (0,)),
    **dict.fromkeys((sp.lowergamma, sp.uppergamma), (0,)),
    **dict.fromkeys((sp.yn, s.spherical_jn, s.spherical_yn, s.spherical_in, s.spherical_kn), (0,)),
    **dict.fromkeys((s.ive, s.kve, s.hermitenorm, s.hyp0f1), (0,)),
    **dict.fromkeys((d.beta_moment, s.hyp1f1, s.hyperu), (0, 1)),
    s.hyp2f1: (0, 1, 2),
    **dict.fromkeys((s.jacobi_sn, s.jacobi_cn, s.jacobi_dn, s.jacobi_am), (1,)),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A scalar function of one array, and a point."""

    name: str
    function: Callable[[Any], Any]
    point: tuple[float, ...]


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def lennard_jones(x: Any) -> Any:
    positions = x.reshape(-1, 3)
    energy = 0.0
    for i in range(len(positions)):
        for j in range(i):
            d = positions[i] - positions[j]
            inverse6 = 1 / (d @ d) ** 3
            energy = energy + 4 * (inverse6 * inverse6 - inverse6)
    return energy


def log_sum_exp(x: Any) -> Any:
    return np.log(np.exp(x * np.arange(1.0, len(x) + 1)).sum())


def hs071(x: Any) -> Any:
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def arwhead(x: Any) -> Any:
    return ((x[:-1] ** 2 + x[-1] ** 2) ** 2 - 4 * x[:-1] + 3).sum()


def network(x: Any) -> Any:
    weights = np.sin(np.arange(12.0)).reshape(4, 3)
    return np.tanh(weights @ np.tanh(weights.T @ x)).sum() ** 2


CASES = [
    Case("product", lambda x: x[0] * x[1] * np.sin(x[0] * x[1]), (0.7, 1.3)),
    Case("quotient", lambda x: (x[0] - x[1] ** 3) / (1 + x[0] ** 2), (0.7, 1.3)),
    Case("powers", lambda x: x[0] ** 2.5 + x[1] ** -3 + x[0] ** x[1] + np.sqrt(x[1]) ** 3, (0.7, 1.3)),
    Case("exponentials", lambda x: np.exp(-(x**2).sum()) + np.log1p(x[0] * x[1]) + np.expm1(x[1]), (0.7, 1.3)),
    Case("trigonometric", lambda x: np.arctan2(x[0], x[1]) * np.tan(x[0]) + np.arcsin(x[0]) * np.cos(x[1]), (0.7, 1.3)),
    Case("hyperbolic", lambda x: np.tanh(x[0] * x[1]) + np.arcsinh(x[0]) * np.cosh(x[1]), (0.7, 1.3)),
    Case("norm", lambda x: 1 / np.linalg.norm(x), (0.7, 1.3, -0.4)),
    Case("select", lambda x: np.where(x > 1, x**3, np.sin(x)).sum() * x[0], (0.7, 1.3)),
    Case("extremes", lambda x: np.maximum(x[0], x[1]) ** 2 * np.minimum(x[0], 2.0) + np.abs(x[0] - x[1]), (0.7, 1.3)),
    Case("hypot", lambda x: np.hypot(x[0], x[1]) * np.logaddexp(x[0], x[1]), (0.7, 1.3)),
    Case("rosenbrock", rosenbrock, (-1.2, 1.0, 0.8, 1.1)),
    Case("lennard_jones", lennard_jones, (0.0, 0.1, 0.0, 1.1, 0.0, 0.2, 0.3, 1.2, -0.1)),
    Case("log_sum_exp", log_sum_exp, (0.1, 0.2, -0.3)),
    Case("hs071", hs071, (1.0, 5.0, 5.0, 1.0)),
    Case("arwhead", arwhead, (1.0, 1.2, 0.9)),
    Case("network", network, (0.1, -0.2, 0.3, 0.5)),
    Case("linear", lambda x: 3 * x[0] - x[1], (0.7, 1.3)),
    Case("mutation", lambda x: _mutated(x), (0.7, 1.3)),
]


def _mutated(x: Any) -> Any:
    work = np.zeros_like(x)
    work[0] = x[1] * x[0]
    work[1:] = work[0] * x[1:]
    work += 1
    return (work * work[::-1]).sum()
