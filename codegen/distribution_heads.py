"""Heads for distribution functions beyond SciPy's: inverses, and derivatives in shape parameters.

Of a gamma or beta distribution that is cut off at u, the mean of products of powers of ln(t/u), and of
ln((1 - t)/(1 - u)), on the side of u that is not the bulk: t < u where u is low, t > u else. The signed probability T
of that side is P(u) or -(1 - P(u)); with it the derivatives of P and of all these means in a, b and u are formulas in
them, without a difference of nearly equal numbers (`symad.rules.distribution_rules`). The means of power 0 would be 1;
heads of order 0 have the hazard u p(u)/T (gamma) or u (1 - u) p(u)/T (beta) in their place.

The values at any number of digits are sums: `gamma_series` and `beta_series` take numbers of mpmath as well as balls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp

from codegen.heads import evaluated_head

_BISECTIONS = 50
_FARTHEST = 4096.0  # of logarithms in which roots are looked for
_NEWTON_STEPS = 60


# ---- means of logarithms beside u


def gamma_series(power: int, a: Any, u: Any, terms: int) -> tuple[Any, Any]:
    """Return the sum of (-u)**k / (k! (a + k)**(power + 1)) over k < terms, and the factor of the next one."""
    total, factor = 0 * a, 0 * a + 1
    for k in range(terms):
        total += factor / (a + k) ** (power + 1)
        factor = factor * -u / (k + 1)
    return total, factor


def gamma_terms(u: float, bits: int) -> int:
    """Return how many terms of `gamma_series` leave less than 2**-bits of exp(-u)."""
    return int(8 * u) + bits + 64


def beta_series(powers: tuple[int, int], a: Any, b: Any, u: Any, terms: int) -> list[Any]:
    """Return sums over k < terms of u**k c(k) / (a + k)**(first + 1): c(k) is the coefficient of (1 - t)**(b - 1 + e).

    One for each power of e from 0 to the second.
    """
    first, second = powers
    zero = 0 * a
    totals, coefficients, power = [zero] * (second + 1), [zero + 1] + [zero] * second, zero + 1
    for k in range(terms):
        weight = power / (a + k) ** (first + 1)
        totals = [total + weight * c for total, c in zip(totals, coefficients, strict=True)]
        below = [zero, *coefficients[:-1]]
        coefficients = [(c * (k + 1 - b) - lower) / (k + 1) for c, lower in zip(coefficients, below, strict=True)]
        power = power * u
    return totals


def beta_terms(b: float, order: int, u: float, bits: int) -> int:
    """Return how many terms of `beta_series` leave less than 2**-bits of its sum."""
    slow = abs(b) + order + 2.0
    count, left = 0, float(bits) + 64.0
    while left > 0 or u * (1.0 + slow / (count + 1)) > 0.5 * (1.0 + u):
        growth = u * (1.0 + slow / (count + 1))
        left += 0.0 if growth <= 0 else float(mp.log(growth, 2))
        count += 1
        if growth <= 0:
            break
    return count + 1


def is_low(a: Any, b: Any, u: Any) -> bool:
    """Whether the side t < u of a beta distribution is the one that is taken."""
    top, other = max(a, 1), max(b, 1)
    return bool(u * (top + other) <= top)


def _gamma_integral(power: int, a: Any, u: Any) -> Any:
    """The integral of t**(a-1) exp(u (1-t)) ln(t)**power from 0 to 1."""
    total, _ = gamma_series(power, a, u, gamma_terms(float(u), mp.prec))
    return (-1) ** power * mp.factorial(power) * mp.exp(u) * total


def _whole_moment(power: int, a: Any, u: Any) -> Any:
    """The mean of ln(t/u)**power of the whole gamma distribution, by its cumulants."""
    cumulants = [mp.digamma(a) - mp.log(u), *[mp.polygamma(k, a) for k in range(1, power)]]
    moments = [mp.mpf(1)]
    for n in range(1, power + 1):
        moments.append(mp.fsum(mp.binomial(n - 1, k) * cumulants[k] * moments[n - 1 - k] for k in range(n)))
    return moments[power]


def gamma_moment_value(n: Any, a: Any, u: Any) -> Any:
    """The mean of ln(t/u)**n beside u, or the hazard for n = 0, of mpmath numbers."""
    if not (a > 0 and u >= 0) or mp.isinf(a) or mp.isinf(u):
        return mp.nan
    order = int(n)
    with mp.workprec(mp.prec + int(6 * u) + 64):
        parts = [_gamma_integral(power, a, u) for power in (0, order)]
        if not (u <= a or u <= 1):
            whole = mp.exp(u) * u ** (-a) * mp.gamma(a)
            parts = [whole * _whole_moment(power, a, u) - part for power, part in zip((0, order), parts, strict=True)]
            return parts[1] / parts[0] if order else -1 / parts[0]
        return parts[1] / parts[0] if order else 1 / parts[0]


def _beta_integral(powers: tuple[int, int], a: Any, b: Any, u: Any) -> Any:
    """The integral of (t/u)**a ((1-t)/(1-u))**b ln(t/u)**first ln((1-t)/(1-u))**second / (t (1-t)) from 0 to u."""
    first, second = powers
    totals = beta_series(powers, a, b, u, beta_terms(float(b), second, float(u), mp.prec))
    shift = -mp.log1p(-u)
    total = mp.fsum(shift**k / mp.factorial(k) * totals[second - k] for k in range(second + 1))
    return (-1) ** first * mp.factorial(first) * mp.factorial(second) * (1 - u) ** (-b) * total


def beta_moment_value(m: Any, n: Any, a: Any, b: Any, u: Any) -> Any:
    """The mean of ln(t/u)**m ln((1-t)/(1-u))**n beside u, or the hazard for m = n = 0, of mpmath numbers."""
    if not (a > 0 and b > 0 and 0 <= u <= 1) or mp.isinf(a) or mp.isinf(b):
        return mp.nan
    first, second = int(m), int(n)
    low = is_low(a, b, u)
    with mp.workprec(mp.prec + 64):
        if not low:
            first, second, a, b, u = second, first, b, a, 1 - u
        with mp.workprec(mp.prec + int(b * mp.log((1 + u) / (1 - u), 2)) + 16 * second + 64):
            whole = _beta_integral((0, 0), a, b, u)
            if not first and not second:
                return (1 if low else -1) / whole
            return _beta_integral((first, second), a, b, u) / whole


gamma_moment: Any = evaluated_head(
    "gamma_moment", "Mean of ln(t/u)**n of the gamma distribution beside u; u p(u)/T for n = 0.", gamma_moment_value
)
beta_moment: Any = evaluated_head(
    "beta_moment", "Mean of ln(t/u)**m ln((1-t)/(1-u))**n of the beta distribution beside u; the hazard for m = n = 0.",
    beta_moment_value,
)  # fmt: skip


# ---- inverses of distribution functions


def _root(
    distribution: Callable[[Any], Any], density: Callable[[Any], Any], place: Callable[[Any], Any], p: Any
) -> Any:
    """Return the x at which a distribution function is p: bisection of s, x = place(s), then Newton's steps."""
    with mp.workdps(20):
        low, high = -mp.one, mp.one
        while distribution(place(low)) > p and low > -_FARTHEST:
            low *= 2
        while distribution(place(high)) < p and high < _FARTHEST:
            high *= 2
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if distribution(place(middle)) < p:
                low = middle
            else:
                high = middle
        x = place((low + high) / 2)
    with mp.workprec(mp.prec + 20):
        for _ in range(_NEWTON_STEPS):
            step = (distribution(x) - p) / density(x)
            x -= step
            if abs(step) <= mp.ldexp(abs(x), -mp.prec // 2 - 8):  # the next one would be its square
                break
    return +x


def gammaincinv_value(a: Any, p: Any) -> Any:
    """The u at which gammainc(a, u) is p, of mpmath numbers."""
    if not (a > 0 and 0 <= p <= 1):
        return mp.nan
    if p in (0, 1):
        return mp.inf if p else mp.zero
    density = lambda u: u ** (a - 1) * mp.exp(-u) / mp.gamma(a)  # noqa: E731
    return _root(lambda u: mp.gammainc(a, 0, u, regularized=True), density, mp.exp, p)


def gammainccinv_value(a: Any, p: Any) -> Any:
    """The u at which gammaincc(a, u) is p, of mpmath numbers."""
    with mp.workprec(mp.prec + _bits_beside_one(p)):
        return gammaincinv_value(a, 1 - p)


def betaincinv_value(a: Any, b: Any, p: Any) -> Any:
    """The u at which betainc(a, b, u) is p, of mpmath numbers."""
    if not (a > 0 and b > 0 and 0 <= p <= 1):
        return mp.nan
    if p in (0, 1):
        return mp.mpf(p)
    density = lambda u: u ** (a - 1) * (1 - u) ** (b - 1) / mp.beta(a, b)  # noqa: E731
    return _root(lambda u: mp.betainc(a, b, 0, u, regularized=True), density, lambda logit: 1 / (1 + mp.exp(-logit)), p)


def betainccinv_value(a: Any, b: Any, p: Any) -> Any:
    """The u at which betaincc(a, b, u) is p, of mpmath numbers."""
    with mp.workprec(mp.prec + _bits_beside_one(p)):
        return betaincinv_value(a, b, 1 - p)


def stdtrit_value(k: Any, p: Any) -> Any:
    """The t at which the distribution function of Student's t is p, of mpmath numbers."""
    if not (k > 0 and 0 <= p <= 1):
        return mp.nan
    if p in (0, 1):
        return mp.inf if p else -mp.inf
    half = mp.mpf("0.5")
    if p == half:
        return mp.zero
    with mp.workprec(mp.prec + _bits_beside_one(p)):
        tail = 2 * min(p, 1 - p)  # the two sides of -t and t
        share = betaincinv_value(k / 2, half, tail)  # k / (k + t**2)
        size = mp.sqrt(k * (1 - share) / share)
    return size if p > half else -size


def ndtri_exp_value(p: Any) -> Any:
    """The u at which log_ndtr(u) is p, of mpmath numbers."""
    if p >= 0:
        return mp.nan if p > 0 else mp.inf
    logarithm = lambda u: mp.log(mp.erfc(-u / mp.sqrt(2)) / 2)  # noqa: E731
    with mp.workprec(mp.prec + 64 + int(max(0, -mp.log(-p, 2)))):
        slope = lambda u: mp.npdf(u) / mp.ncdf(u)  # noqa: E731
        return _root(logarithm, slope, mp.sinh, p)


def _bits_beside_one(p: Any) -> int:
    return 64 + (int(-mp.log(p, 2)) if 0 < p < 1 else 0) + (int(-mp.log(1 - p, 2)) if 0 < p < 1 else 0)


gammaincinv: Any = evaluated_head("gammaincinv", "The u at which gammainc(a, u) = p.", gammaincinv_value)
gammainccinv: Any = evaluated_head("gammainccinv", "The u at which gammaincc(a, u) = p.", gammainccinv_value)
betaincinv: Any = evaluated_head("betaincinv", "The u at which betainc(a, b, u) = p.", betaincinv_value)
betainccinv: Any = evaluated_head("betainccinv", "The u at which betaincc(a, b, u) = p.", betainccinv_value)
stdtrit: Any = evaluated_head("stdtrit", "The t at which stdtr(k, t) = p.", stdtrit_value)
ndtri_exp: Any = evaluated_head("ndtri_exp", "The u at which log_ndtr(u) = p.", ndtri_exp_value)
