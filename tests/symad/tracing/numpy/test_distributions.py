"""SciPy's distributions on traced values: values are SciPy's, derivatives those of differences, in every mode."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import RuleError, TraceError

stats = pytest.importorskip("scipy.stats")

LOC, SCALE = 0.1, 1.4
CONTINUOUS = {
    "norm": (), "expon": (), "uniform": (), "laplace": (), "logistic": (), "cauchy": (), "lognorm": (0.7,),
    "weibull_min": (1.7,), "pareto": (2.1,), "gamma": (2.3,), "beta": (2.3, 3.1), "t": (4.5,), "chi2": (3.2,),
    "gumbel_r": (), "genextreme": (-0.2,), "triang": (0.3,), "rayleigh": (), "invgauss": (0.8,), "genpareto": (0.4,),
}  # fmt: skip
DENSITIES = ("pdf", "logpdf")
TAILS = ("cdf", "logcdf", "sf", "logsf")
POINTS = {"pareto": (1.9, 3.0, 0.3), "triang": (0.3, 1.2, 9.0)}  # inside the support, there too, outside; for others:
OTHERS = (0.6, 1.1, -2.0)
SHAPES_UNKNOWN = {"gamma", "beta", "t", "chi2"}  # in whose shapes the derivative of a tail is no special function
DISCRETE = {"poisson": (2.6,), "geom": (0.3,), "binom": (9, 0.4), "bernoulli": (0.4,)}

MODES = {
    "interpreted": lambda f, x: sa.value_and_grad(f)(x),
    "compiled": lambda f, x: sa.compile(sa.value_and_grad(f), x)(x),
    "forward": lambda f, x: (f(x), sa.jacfwd(f)(x)),
}


def slope_of(f, x, k):
    """Return an extrapolated central difference in element k."""
    steps = [1e-3 / 2**j for j in range(4)]
    column = [(f(x + h * np.eye(len(x))[k]) - f(x - h * np.eye(len(x))[k])) / (2 * h) for h in steps]
    for order in range(1, len(steps)):
        pairs = zip(column[1:], column, strict=False)
        column = [(4**order * fine - rough) / (4**order - 1) for fine, rough in pairs]
    return column[0]


def check(f, x, modes=tuple(MODES), rtol=1e-8):
    with np.errstate(all="ignore"):
        known = f(x)
        expected = [slope_of(f, x, k) for k in range(len(x))] if math.isfinite(known) else [0.0] * len(x)
        found = {mode: MODES[mode](f, x) for mode in modes}
    for mode, (value, slopes) in found.items():
        assert value == pytest.approx(known, rel=1e-12, abs=1e-15), mode
        np.testing.assert_allclose(slopes, expected, rtol, atol=1e-9, err_msg=mode)


@pytest.mark.parametrize("method", [*DENSITIES, *TAILS])
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.thinned
def test_continuous(name, method):
    of_all = method in DENSITIES or name not in SHAPES_UNKNOWN
    shapes, distribution = CONTINUOUS[name], getattr(stats, name)
    for point in POINTS.get(name, OTHERS):
        if of_all:
            check(lambda v: getattr(distribution, method)(v[0], *v[1:]), np.array([point, *shapes, LOC, SCALE]))
        else:
            check(
                lambda v: getattr(distribution, method)(v[0], *shapes, loc=v[1], scale=v[2]),
                np.array([point, LOC, SCALE]),
            )


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize(
    "name", ["norm", "expon", "uniform", "laplace", "logistic", "lognorm", "weibull_min", "pareto"]
)
@pytest.mark.thinned
def test_quantiles(name, method):
    shapes = CONTINUOUS[name]
    for probability in (0.03, 0.4, 0.9):
        x = np.array([probability, *shapes, LOC, SCALE])
        check(lambda v: getattr(getattr(stats, name), method)(*v), x, rtol=1e-7)


@pytest.mark.parametrize("method", ["pmf", "logpmf"])
@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.thinned
def test_discrete(name, method):
    density = getattr(getattr(stats, name), method)
    *counts, p = DISCRETE[name]  # the number of trials is whole, and no variable
    for k in (0, 1, 4, 2.5, -1):
        check(partial(lambda k, v: density(k, *counts, v[0]), k), np.array([p]))


def test_a_likelihood_of_data_and_its_hessian():
    """The sum over data, frozen or not; second derivatives by difference of exact first ones."""
    data = np.array([0.3, 1.2, -0.4, 2.2])

    def likelihood(v):
        return np.sum(stats.norm.logpdf(data, v[0], v[1])) + np.sum(stats.gamma(2.0, scale=v[1]).logpdf(abs(data)))

    x = np.array([0.4, 1.3])
    check(likelihood, x, ("interpreted", "compiled"))
    hessian = sa.compile(sa.hessian(likelihood), x)(x)
    gradient = sa.grad(likelihood)
    expected = [(gradient(x + h) - gradient(x - h)) / 2e-5 for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(hessian, expected, 1e-7)


log_density = stats.norm.logpdf


def test_methods_that_were_taken_from_their_distribution_before():
    enclosed = stats.expon.logpdf
    for f in (lambda v: log_density(v[0], v[1], 1.2), lambda v: enclosed(v[0], 0.1, v[1])):
        check(f, np.array([0.5, 0.4]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda v: stats.norm.logpdf(v[0], 0.0, v[1]), -1.0),  # no scale
        (lambda v: stats.gamma.pdf(v[1], -v[0]), -1.0),  # no shape
        (lambda v: stats.norm.cdf(v[0] * math.nan, 0.0, v[1]), 1.0),
        (lambda v: stats.norm.ppf(1.5 * v[0], 0.0, 1.0), 1.0),
    ],
)
def test_what_has_no_value_is_nan(f, expected, mode):
    x = np.array([1.0, expected])
    with np.errstate(invalid="ignore"):
        assert math.isnan(f(x))
        assert math.isnan(MODES[mode](f, x)[0])


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_the_ends_of_the_support(mode):
    for end in (0.0, 1.0):
        for method in ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"):
            f = partial(lambda method, v: getattr(stats.uniform, method)(v[0], 0.0, v[1]), method)
            assert MODES[mode](f, np.array([end, 1.0]))[0] == f(np.array([end, 1.0]))


def test_what_is_not_known_is_refused_by_name():
    with pytest.raises(RuleError, match="ive has no derivative in its operand 0"):
        sa.grad(lambda a: stats.ncx2.logpdf(0.7, a, 2.0))(1.5)
    with pytest.raises(TraceError, match="nctdtr"):
        sa.grad(lambda a: stats.nct.cdf(0.7, a, 2.0))(1.5)


def test_scipy_is_as_it_was_afterwards():
    kind = type(stats.norm).__mro__[1]
    before = {name: vars(kind)[name] for name in ("logpdf", "cdf", "ppf")}
    sa.compile(sa.grad(lambda v: stats.norm.logpdf(v)), 0.5)
    assert {name: vars(kind)[name] for name in before} == before
    assert kind.logpdf.__globals__["asarray"] is np.asarray


COVARIANCES = np.array([[2.0, 0.3, -0.2], [0.3, 1.5, 0.4], [-0.2, 0.4, 0.9]])
POINT, MEAN = np.array([0.3, -0.7, 1.1]), np.array([0.1, 0.2, -0.4])
ONES = np.ones(3)
VECTORS = {
    "a point": (lambda v: ("logpdf", v, MEAN, COVARIANCES), POINT),
    "density": (lambda v: ("pdf", v, MEAN, COVARIANCES), POINT),
    "mean": (lambda v: ("logpdf", POINT, v, COVARIANCES), MEAN),
    "no mean": (lambda v: ("pdf", v, None, COVARIANCES), POINT),
    "variances": (lambda v: ("logpdf", POINT, MEAN, v), np.array([0.5, 1.5, 0.9])),
    "one variance": (lambda v: ("logpdf", POINT, MEAN, v[0]), np.array([0.5])),
    "factor": (lambda v: ("logpdf", POINT, MEAN, COVARIANCES * v[0] + np.eye(3) * v[1]), np.array([1.2, 0.4])),
    "everything": (lambda v: ("pdf", v[:3], v[3:6], COVARIANCES * v[6]), np.concatenate([POINT, MEAN, [1.3]])),
    "one dimension": (lambda v: ("logpdf", v[0], v[1], v[2]), np.array([0.3, -0.2, 0.8])),
    "singular": (lambda v: ("logpdf", v[0] * ONES, v[1] * ONES, np.outer(ONES, ONES), True), np.array([0.3, -0.2])),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_normal_vectors(name):
    arguments, x = VECTORS[name]

    def f(v):
        method, *given = arguments(v)
        return getattr(stats.multivariate_normal, method)(*given)

    check(f, x)


def test_many_normal_vectors_of_a_known_distribution():
    known = stats.multivariate_normal(MEAN, COVARIANCES)
    shifts = np.linspace(0, 1, 4)[:, None]
    check(lambda v: np.sum(known.logpdf(v + shifts) * [1.0, 2.0, 3.0, 4.0]) + known.pdf(v), POINT)


def test_vectors_outside_of_a_singular_distribution():
    f = lambda v: stats.multivariate_normal.pdf(v, np.zeros(3), np.outer(ONES, ONES), True)  # noqa: E731
    assert sa.value_and_grad(f)(POINT)[0] == 0.0 == f(POINT)


def test_covariances_of_another_size_are_refused():
    with pytest.raises(ValueError, match="covariances have shape"):
        sa.grad(lambda v: stats.multivariate_normal.logpdf(POINT, MEAN, np.outer(v, v)))(np.ones(2))


TRUNCATED: dict[str, tuple[Any, float]] = {
    "logpdf": (lambda x: stats.truncnorm.logpdf(x, -1.0, 2.0), 0.7),
    "location": (lambda m: stats.truncnorm.logpdf(0.5, -m, 1.0 - m, loc=m), 0.3),
    "bound": (lambda b: stats.truncnorm.logpdf(0.5, -1.0, b), 1.5),
    "right tail": (lambda a: stats.truncnorm.logpdf(9.0, a, 12.0), 8.0),
    "left tail": (lambda b: stats.truncnorm.logpdf(-9.0, -12.0, b), -8.0),
    "cdf": (lambda x: stats.truncnorm.cdf(x, -1.0, 2.0), 0.7),
    "logcdf": (lambda x: stats.truncnorm.logcdf(x, -1.0, 2.0), 0.7),
    "ppf": (lambda q: stats.truncnorm.ppf(q, -1.0, 2.0), 0.4),
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_the_truncated_normal_distribution(name: str) -> None:
    """SciPy computes it with complex numbers."""
    f, x = TRUNCATED[name]
    value, slope = sa.value_and_grad(f)(x)
    assert value == pytest.approx(float(f(x)), rel=1e-12)
    assert slope == pytest.approx(float(f(x + 1e-5) - f(x - 1e-5)) / 2e-5, rel=1e-7)
    assert sa.compile(sa.value_and_grad(f), x)(x) == pytest.approx((value, slope), rel=1e-12)
