"""Special functions of mpmath numbers in the form and domain in which SciPy defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp


def polygamma(order: Any, u: Any) -> Any:
    """Polygamma function of a natural order; nan of others, which no kernel has."""
    return mp.polygamma(int(order), u) if mp.isint(order) and order >= 0 else mp.nan


def polygamma_difference(order: Any, a: Any, b: Any) -> Any:
    """polygamma(n, a + b) - polygamma(n, a), with as many digits more as it loses."""
    with mp.extraprec(120):
        return mp.polygamma(int(order), a + b) - mp.polygamma(int(order), a)


def spherical_bessel(order: Any, u: Any) -> Any:
    """j_n(u), of either sign of u."""
    if u == 0:
        return mp.mpf(1 if order == 0 else 0)
    return mp.sqrt(mp.pi / (2 * abs(u))) * mp.besselj(order + mp.mpf("0.5"), abs(u)) * (mp.sign(u) if order % 2 else 1)


def elliptic_moment(a: Any, b: Any, m: Any) -> Any:
    """pi/2 (1/2)_a / a! times 2F1(a + 1/2, b + 1/2; a + 1; m)."""
    half = mp.mpf("0.5")
    return mp.pi / 2 * mp.rf(half, a) / mp.factorial(a) * mp.hyp2f1(a + half, b + half, a + 1, m)


def erfc_ratio(order: Any, u: Any) -> Any:
    """The upward recurrence, with as many digits more as it loses."""
    with mp.extraprec(40 + int(order) * (16 + 4 * int(abs(u)).bit_length())):
        ratio = mp.sqrt(mp.pi) / 2 * mp.exp(u * u) * mp.erfc(u)
        for k in range(1, int(order) + 1):
            ratio = (1 / (2 * ratio) - u) / k
        return ratio


def log_ndtr(u: Any) -> Any:
    """Logarithm of the normal distribution."""
    tail = mp.erfc(abs(u) / mp.sqrt(2)) / 2
    return mp.log1p(-tail) if u > 0 else mp.log(tail)


def lower_gamma(a: Any, u: Any) -> Any:
    """gammainc, nan outside a > 0 and u >= 0; its limit for a = 0."""
    if a == 0 and u > 0:
        return mp.mpf(1)
    return mp.gammainc(a, 0, u, regularized=True) if a > 0 and u >= 0 else mp.nan


def upper_gamma(a: Any, u: Any) -> Any:
    """gammaincc, nan outside a > 0 and u >= 0; its limit for a = 0."""
    if a == 0 and u > 0:
        return mp.mpf(0)
    return mp.gammainc(a, u, regularized=True) if a > 0 and u >= 0 else mp.nan


def modified_bessel(order: Any, u: Any) -> Any:
    """besseli, real left of 0 too where the order is whole; of a whole order and its negative it is the same."""
    whole = mp.isint(order)
    if mp.isinf(u):
        return mp.mpf("nan") if u < 0 and not whole else (-1 if u < 0 and order % 2 else 1) * mp.inf
    return mp.besseli(abs(order), u) if whole else mp.besseli(order, u)


def orthogonal(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a polynomial of mpmath that may vanish: what is smaller than all floats times its terms is 0."""
    return lambda *operands: function(*operands, zeroprec=mp.prec + 2400, maxprec=20 * mp.prec + 20000)


def incomplete_beta(a: Any, b: Any, u: Any) -> Any:
    """betainc, nan outside [0, 1] and for a or b that is not positive."""
    return mp.betainc(a, b, 0, u, regularized=True) if 0 <= u <= 1 and a > 0 and b > 0 else mp.nan


def spherical(function: Callable[..., Any]) -> Callable[..., Any]:
    """sqrt(pi/(2u)) times a Bessel function of order n + 1/2, with the parity of order n."""

    def value(order: Any, u: Any) -> Any:
        found = mp.sqrt(mp.pi / (2 * abs(u))) * function(order + mp.mpf("0.5"), abs(u))
        return -found if u < 0 and order % 2 else found

    return value


def spherical_in(order: Any, u: Any) -> Any:
    """i_n(u), of either sign of u."""
    return mp.mpf(order == 0) if u == 0 else spherical(mp.besseli)(order, u)


def spherical_yn(order: Any, u: Any) -> Any:
    """y_n(u), of either sign of u; -inf at 0."""
    return -mp.inf if u == 0 else (-1 if u < 0 else 1) * spherical(mp.bessely)(order, u)


def entropy(u: Any, v: Any, rest: Any) -> Any:
    """u log(u/v) + rest inside, rest at u = 0, inf outside."""
    if u > 0 and v > 0:
        return u * mp.log(u / v) + rest
    return rest if u == 0 and v >= 0 else mp.inf


def entr(u: Any) -> Any:
    """-u log(u); 0 at 0 and -inf below."""
    return -u * mp.log(u) if u > 0 else mp.mpf(0) if u == 0 else -mp.inf


def pseudo_huber(d: Any, u: Any) -> Any:
    """d (hypot(d, u) - d), inf for d < 0."""
    return d * (mp.hypot(d, u) - d) if d >= 0 else mp.inf


def box_cox(logarithm: Any, power: Any) -> Any:
    """expm1(p l)/p, l at p = 0."""
    return mp.expm1(power * logarithm) / power if power else logarithm


def inverse_box_cox(u: Any, power: Any) -> Any:
    """(1 + p u)**(1/p), exp(u) at p = 0."""
    return mp.exp(mp.log1p(power * u) / power if power else u)


def inverse_box_cox_1p(u: Any, power: Any) -> Any:
    """inverse_box_cox - 1."""
    return mp.expm1(mp.log1p(power * u) / power if power else u)


def stdtr(freedom: Any, t: Any) -> Any:
    """The distribution function, by the incomplete beta function of the complement."""
    if not freedom > 0:
        return mp.nan
    half = mp.mpf("0.5")
    tail = mp.betainc(freedom / 2, half, 0, freedom / (freedom + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def owens_t(h: Any, a: Any) -> Any:
    """Owen's T, by its integral."""
    integrand = lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t)  # noqa: E731
    return mp.quad(integrand, [0, a]) / (2 * mp.pi)


def normal_hermite(order: Any, u: Any) -> Any:
    """He_n(u)."""
    return 2 ** (-mp.mpf(order) / 2) * mp.hermite(order, u / mp.sqrt(2))


def of_degrees(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a trigonometric function as a function of degrees."""
    return lambda u: function(mp.pi * u / 180)


def spherical_kn(order: Any, u: Any) -> Any:
    """k_n by its finite sum (DLMF 10.49.12), which holds for u < 0 too."""
    n = int(order)
    terms = [mp.factorial(n + k) / (mp.factorial(k) * mp.factorial(n - k) * (2 * u) ** k) for k in range(n + 1)]
    return mp.pi * mp.exp(-u) / (2 * u) * mp.fsum(terms)
