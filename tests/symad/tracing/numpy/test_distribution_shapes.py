"""Distributions of scipy.stats: derivatives in shapes, quantiles and counts, by two routes."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import symad as sa
from tests.support.compiled import differences

# a function of (place, shapes...), and a point
CALLS = {
    "gamma.cdf": (lambda v: stats.gamma.cdf(v[0], v[1], scale=v[2]), (1.3, 2.2, 0.7)),
    "gamma.sf in the tail": (lambda v: 1e8 * stats.gamma.sf(v[0], v[1]), (25.0, 2.2)),
    "gamma.ppf": (lambda v: stats.gamma.ppf(v[0], v[1], scale=v[2]), (0.3, 2.2, 0.7)),
    "gamma.isf": (lambda v: stats.gamma.isf(v[0], v[1]), (0.01, 2.2)),
    "chi2.logsf": (lambda v: stats.chi2.logsf(v[0], v[1]), (7.3, 4.2)),
    "chi2.ppf": (lambda v: stats.chi2.ppf(v[0], v[1]), (0.9, 4.2)),
    "beta.logcdf": (lambda v: stats.beta.logcdf(*v), (0.3, 1.2, 2.7)),
    "beta.ppf": (lambda v: stats.beta.ppf(*v), (0.3, 1.2, 2.7)),
    "beta.isf": (lambda v: stats.beta.isf(*v), (0.3, 1.2, 2.7)),
    "t.cdf": (lambda v: stats.t.cdf(v[0], v[1], loc=v[2]), (-1.3, 4.2, 0.2)),
    "t.ppf": (lambda v: stats.t.ppf(*v), (0.95, 4.2)),
    "t.isf": (lambda v: stats.t.isf(*v), (0.01, 2.5)),
    "f.cdf": (lambda v: stats.f.cdf(*v), (1.3, 4.2, 7.1)),
    "f.sf": (lambda v: stats.f.sf(*v), (1.3, 4.2, 7.1)),
    "f.ppf": (lambda v: stats.f.ppf(*v), (0.9, 4.2, 7.1)),
    "invgamma.cdf": (lambda v: stats.invgamma.cdf(*v), (0.6, 2.2)),
    "invgamma.ppf": (lambda v: stats.invgamma.ppf(*v), (0.6, 2.2)),
    "cauchy.ppf": (lambda v: stats.cauchy.ppf(*v), (0.9, 0.3, 1.2)),
    "poisson.cdf": (lambda v: stats.poisson.cdf(3, v[0]), (2.2,)),
    "poisson.logsf": (lambda v: stats.poisson.logsf(3, v[0]), (2.2,)),
    "binom.cdf": (lambda v: stats.binom.cdf(3, 9, v[0]), (0.4,)),
    "nbinom.pmf": (lambda v: stats.nbinom.pmf(3, v[0], v[1]), (4.5, 0.4)),
    "nbinom.logpmf": (lambda v: stats.nbinom.logpmf(3, v[0], v[1]), (4.5, 0.4)),
    "nbinom.cdf": (lambda v: stats.nbinom.cdf(3, v[0], v[1]), (4.5, 0.4)),
    "nbinom.sf": (lambda v: stats.nbinom.sf(3, v[0], v[1]), (4.5, 0.4)),
    "kstwobign.logpdf": (lambda v: stats.kstwobign.logpdf(v[0]), (0.7,)),
    "kstwobign.cdf": (lambda v: stats.kstwobign.cdf(v[0]), (1.1,)),
    "bdtr": (lambda v: special.bdtr(3.7, 9, v[0]), (0.4,)),
    "pdtrc": (lambda v: special.pdtrc(3.7, v[0]), (2.2,)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.thinned
def test_first_and_second_derivatives(name: str) -> None:
    """Values are SciPy's; gradients its differences, and Hessians differences of gradients; kernels have the same."""
    f, point = CALLS[name]
    x = np.array(point)
    value, gradient = sa.value_and_grad(f)(x)
    hessian = sa.hessian(f)(x)
    assert value == pytest.approx(float(f(x)), rel=1e-12)
    assert gradient == pytest.approx(differences(f, x), rel=2e-6, abs=1e-9)
    rows = [differences(lambda v, k=k: sa.grad(f)(v)[k], x) for k in range(x.size)]
    assert hessian == pytest.approx(np.stack(rows), rel=2e-6, abs=1e-8)
    kernel = sa.compile(lambda v: (sa.value_and_grad(f)(v), sa.hessian(f)(v)), x)
    (in_kernel, slopes), bends = kernel(x)
    assert in_kernel == pytest.approx(value, rel=1e-13)
    assert slopes == pytest.approx(gradient, rel=1e-11, abs=1e-15)
    assert bends == pytest.approx(hessian, rel=1e-10, abs=1e-14)


def test_arrays_of_shapes_are_array_nodes() -> None:
    """The log likelihood of a thousand gamma variables in all their shapes, beside numbers one by one."""
    shapes, places = np.linspace(0.3, 40.0, 1000), np.linspace(0.1, 50.0, 1000)

    def total(a):
        return np.sum(np.log(special.gammainc(a, places)))

    found = sa.grad(total)(shapes)
    some = [0, 10, 500, 999]
    alone = [sa.derivative(lambda a, k=k: np.log(special.gammainc(a, places[k])))(shapes[k]) for k in some]
    assert found[some] == pytest.approx(alone, rel=1e-11)
    assert sa.compile(sa.grad(total), shapes)(shapes) == pytest.approx(found, rel=1e-11)


TAILS = [  # shapes and places far from the bulk: nothing is lost there
    (0.01, 0.5), (0.01, 2.0), (3.0, 60.0), (50.0, 8.0), (1000.0, 1100.0), (1000.0, 900.0),
]  # fmt: skip


@pytest.mark.parametrize(("a", "u"), TAILS)
def test_the_smaller_side_has_its_digits(a: float, u: float) -> None:
    """The derivative of the smaller of P and Q in the shape, relative to it, against 60 digits."""
    small, exact = special.gammainc, lambda v: mpmath.gammainc(v, 0, u, regularized=True)
    if u > a:
        small, exact = special.gammaincc, lambda v: mpmath.gammainc(v, u, regularized=True)
    with mpmath.workdps(60):
        wanted = float(mpmath.diff(exact, mpmath.mpf(a)))
    assert sa.derivative(lambda v: small(v, u))(a) == pytest.approx(wanted, rel=2e-11)


def test_at_the_ends() -> None:
    """0 at the ends of the support, whatever the shape."""
    assert sa.grad(lambda v: special.gammainc(v[0], 0.0 * v[1]))(np.array([1.5, 1.0])).tolist() == [0.0, 0.0]
    for end in (0.0, 1.0):
        assert sa.grad(lambda v, end=end: special.betainc(v[0], v[1], end))(np.array([1.5, 2.5])).tolist() == [0.0, 0.0]
    assert sa.derivative(lambda k: special.stdtr(k, 0.0))(3.0) == 0.0
    assert sa.derivative(lambda a: special.gammaincinv(a, 0.0))(3.0) == 0.0
    assert sa.derivative(lambda a: special.gammainc(a, -1.0))(3.0) != 0.0  # NaN, as the value is


@pytest.mark.parametrize("shape", [0.1, 1e-3, 1e-8, 1e-14])
@pytest.mark.parametrize(
    ("f", "exact"),
    [
        (lambda a: special.gammainc(a, 0.3), lambda a: mpmath.gammainc(a, 0, 0.3, regularized=True)),
        (lambda a: special.gammaincc(a, 2.5), lambda a: mpmath.gammainc(a, 2.5, regularized=True)),
        (lambda a: special.betainc(a, 0.6, 0.2), lambda a: mpmath.betainc(a, 0.6, 0, 0.2, regularized=True)),
        (lambda b: special.betainc(1.4, b, 0.8), lambda b: mpmath.betainc(1.4, b, 0, 0.8, regularized=True)),
        (lambda b: special.betainc(0.5, b, 0.1), lambda b: mpmath.betainc(0.5, b, 0, 0.1, regularized=True)),
    ],
)
def test_small_shapes_cancel_nothing(f, exact, shape):
    with mpmath.workdps(80):
        a, h = mpmath.mpf(shape), mpmath.mpf(shape) * mpmath.mpf(10) ** -15
        below, here, above = exact(a - h), exact(a), exact(a + h)
        wanted = float((above - below) / (2 * h)), float((above - 2 * here + below) / h**2)
    assert sa.derivative(f)(shape) == pytest.approx(wanted[0], rel=1e-10)
    assert sa.derivative(f, order=2)(shape) == pytest.approx(wanted[1], rel=1e-9)
    assert sa.compile(sa.derivative(f, order=2), 0.7)(shape) == pytest.approx(wanted[1], rel=1e-9)


def test_modified_bessel_functions_of_large_arguments():
    with mpmath.workdps(40):
        wanted = float(mpmath.besselk(1.5, 700)), float(mpmath.diff(lambda u: mpmath.besselk(1.5, u), 700))
    assert sa.value_and_grad(lambda u: special.kv(1.5, u))(700.0) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("t", [0.7, -2.0])
@pytest.mark.parametrize("freedom", [1e-20, 1e-3, 3.0])
def test_few_degrees_of_freedom(t, freedom):
    with mpmath.workdps(100):
        k, h = mpmath.mpf(freedom), mpmath.mpf(freedom) * mpmath.mpf(10) ** -20

        def tail(k):
            return mpmath.betainc(k / 2, 0.5, 0, k / (k + mpmath.mpf(t) ** 2), regularized=True) / 2

        wanted = float(-mpmath.sign(t) * (tail(k + h) - tail(k - h)) / (2 * h))
    assert sa.derivative(lambda k: special.stdtr(k, t))(freedom) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("ratio", [special.fdtr, special.fdtrc])
@pytest.mark.parametrize("point", [(3.0, 1e-20, 1.3), (1e-20, 3.0, 1.3), (3.0, 4.0, 1e-20), (3.0, 4.0, 1e20)])
def test_ratios_of_variances_have_scipys_values(ratio, point):
    assert sa.value_and_grad(lambda v: ratio(*v))(np.array(point))[0] == pytest.approx(ratio(*point), rel=1e-12)
