"""SciPy's special functions on traced values: every row of the table, against SciPy and against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special

import symad as sa
from symad.errors import LoweringError, RuleError, TraceError
from tests.support.special_table import DOCUMENT, REFUSED, ROWS, Row, document

DIGITS = 30
DIRECTION = (1.0, 0.7, -0.4)  # along which the arguments move: mixed partial derivatives take part
MODES = {"F": sa.jacfwd, "R": sa.jacrev}
ROUTES = ("", "F", "R", "FF", "FR", "RF", "RR")


def along_lines(row: Row):
    """The function at all points of a row, each moved by t along a line: only what has a derivative moves."""
    function, points, slopes = row.function, row.points, dict(zip(row.active(), DIRECTION, strict=False))

    def moved(t):
        lines = [[v + slopes[k] * t if k in slopes else v for k, v in enumerate(point)] for point in points]
        return np.stack([function(*line) for line in lines])

    return moved


def nested(word, f):
    for letter in reversed(word):
        f = MODES[letter](f)
    return f


def exact_derivatives(row: Row, point):
    """Value, first and second derivative along the line, at 30 digits; what is 0 but for rounding is 0."""
    with mpmath.workdps(DIGITS + 20):
        base = [v if isinstance(v, int) else mpmath.mpf(v) for v in point]

        def line(t):
            made = list(base)
            for slope, k in zip(DIRECTION, row.active(), strict=False):
                made[k] = base[k] + mpmath.mpf(slope) * t
            return row.exact(*made)

        found = [line(mpmath.mpf(0)), *[mpmath.diff(line, 0, order) for order in (1, 2)]]
        scale = max(abs(value) for value in found)
        return [float(value) if abs(value) > scale * mpmath.mpf(10) ** -DIGITS else 0.0 for value in found], float(
            scale
        )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.thinned
def test_values_and_derivatives(row: Row):
    """Values are SciPy's; values, first and second derivatives in every mix of modes are mpmath's, in both ways."""
    f = along_lines(row)
    kernel = sa.compile(lambda t: [nested(route, f)(t) for route in ROUTES], 0.0)
    compiled = kernel(0.0)
    np.testing.assert_allclose(compiled[0], np.real(f(0.0)), rtol=1e-9, atol=1e-15)
    exact = [exact_derivatives(row, point) for point in row.points]
    for route, found in zip(ROUTES, compiled, strict=True):
        interpreted = nested(route, f)(0.0) if route else found
        for k, (wanted, scale) in enumerate(exact):
            truth = wanted[len(route)]
            tolerance = row.digits * abs(truth) if truth else 1e-14 * scale
            for way, value in (("compiled", found[k]), ("interpreted", interpreted[k])):
                assert abs(value - truth) <= tolerance, (row.points[k], route, way, value, truth)


@pytest.mark.parametrize("row", [row for row in ROWS if row.constants], ids=lambda row: row.name)
def test_arguments_without_a_derivative_are_refused(row: Row):
    """An order, a degree or a shape that is traced: an error that names the function, never a derivative of 0."""
    for k in row.constants:
        point = list(row.points[-1])

        def f(value, point=point, k=k):
            return row.function(*point[:k], value, *point[k + 1 :])

        with pytest.raises((RuleError, TraceError, LoweringError)):
            sa.derivative(f)(float(point[k]))


@pytest.mark.parametrize("name", REFUSED)
def test_functions_without_a_traced_form_are_refused_by_name(name):
    with pytest.raises(TraceError, match=rf"{name}\b"):
        sa.derivative(lambda x: getattr(special, name)(*REFUSED[name], x))(0.5)


def second(f, x, mode):
    return MODES[mode](sa.jacfwd(f))(x)


EDGES = {
    "entr at 0": (special.entr, 0.0, 0.0, np.inf),
    "entr below 0": (special.entr, -1.0, -np.inf, np.nan),
    "xlogy at 0": (lambda x: special.xlogy(x, 2.0), 0.0, 0.0, np.log(2.0)),
    "xlog1py at 0, -1": (lambda x: special.xlog1py(0.0 * x, x), -1.0, 0.0, np.nan),
    "kl_div at equal arguments": (lambda x: special.kl_div(x, 3.0), 3.0, 0.0, 0.0),
    "kl_div at 0": (lambda x: special.kl_div(0.0, x), 2.0, 2.0, 1.0),
    "rel_entr at 0": (lambda x: special.rel_entr(0.0, x), 2.0, 0.0, 0.0),
    "logsumexp of thousands": (lambda x: special.logsumexp(np.stack([x, x - 1])), 1e3, 1e3 + np.log1p(np.exp(-1)), 1.0),
    "logsumexp with -inf": (lambda x: special.logsumexp(np.stack([x, x - np.inf, 0 * x])), 0.0, np.log(2.0), 0.5),
    "logsumexp, far below": (lambda x: special.logsumexp(np.stack([x, 0.0])), -40.0, np.exp(-40.0), np.exp(-40.0)),
    "softmax of thousands": (lambda x: special.softmax(np.stack([x, 1e3]))[0], 1e3, 0.5, 0.25),
    "log_ndtr, far right": (special.log_ndtr, 40.0, 0.0, 0.0),
    "log_ndtr, far left": (special.log_ndtr, -1e6, special.log_ndtr(-1e6), 1e6 + 1e-6),
    "log_expit": (special.log_expit, -800.0, -800.0, 1.0),
    "ndtri at 1": (special.ndtri, 1.0, np.inf, np.inf),
    "rgamma at a pole": (special.rgamma, -1.0, 0.0, -1.0),
    "gammainc(1, 0)": (lambda x: special.gammainc(1.0, x), 0.0, 0.0, 1.0),
    "gammainc(2, 0)": (lambda x: special.gammainc(2.0, x), 0.0, 0.0, 0.0),
    "betainc(2, 1, 1)": (lambda x: special.betainc(2.0, 1.0, x), 1.0, 1.0, 2.0),
    "boxcox at lmbda = 0": (lambda x: special.boxcox(2.0, x), 0.0, np.log(2.0), np.log(2.0) ** 2 / 2),
    "inv_boxcox at lmbda = 0": (lambda x: special.inv_boxcox(2.0, x), 0.0, np.exp(2.0), -2 * np.exp(2.0)),
    "boxcox at 0": (lambda x: special.boxcox(x, 2.0), 0.0, -0.5, 0.0),
    "exprel at 0": (special.exprel, 0.0, 1.0, 0.5),
    "lambertw outside": (special.lambertw, -1.0, np.nan, np.nan),
    "huber beyond": (lambda x: special.huber(1.0, x), -1e200, 1e200, -1.0),
    "pseudo_huber beyond": (lambda x: special.pseudo_huber(1.0, x), 1e200, 1e200, 1.0),
    "huber(-1)": (lambda x: special.huber(-1.0, x), 1.0, np.inf, 0.0),
    "poch at a pole": (lambda x: special.poch(x, 3), -1.0, 0.0, -1.0),
    "poch(x, 0)": (lambda x: special.poch(x, 0) + x, 0.5, 1.5, 1.0),
    "betaln of unlike arguments": (lambda x: special.betaln(x, 0.5), 1e8, special.betaln(1e8, 0.5), -5.0000000125e-9),
    "gammaln far right": (special.gammaln, 1e300, special.gammaln(1e300), np.log(1e300)),
    "comb outside": (lambda x: special.comb(5.0, x), 6.5, 0.0, 0.0),
    "factorial below 0": (lambda x: special.factorial(x), -1.5, 0.0, 0.0),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_and_tails(name):
    """Values and derivatives where naive formulas overflow, cancel or multiply 0 by infinity."""
    f, x, value, slope = EDGES[name]
    found = sa.compile(lambda t: [np.real(f(t)), sa.jacfwd(f)(t), sa.jacrev(f)(t)], 0.0)(x)
    np.testing.assert_allclose(found, [value, slope, slope], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(sa.jacrev(f)(x), slope, rtol=1e-12, atol=1e-300)


BRANCHES = {
    "log of a guarded argument": lambda x: np.where(x > 0, special.entr(np.where(x > 0, x, 1.0)), 0.0),
    "gammaln": lambda x: np.where(x > 0, special.gammaln(x), 0.0),
    "logit": lambda x: np.where(x > 0, special.logit(x), 0.0),
    "digamma": lambda x: np.where(x > 0, special.digamma(x), 0.0),
    "yv": lambda x: np.where(x > 0, special.yv(1, x), 0.0),
    "kl_div": lambda x: np.where(x > 0, special.kl_div(x, x), 0.0),
    "boxcox": lambda x: np.where(x > 0, special.boxcox(x, 0.5), 0.0),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_not_taken_contribute_nothing(name):
    f = BRANCHES[name]
    for point in (0.0, -1.0):
        for mode in MODES:
            assert MODES[mode](f)(point) == 0.0
            assert second(f, point, mode) == 0.0
            assert sa.compile(MODES[mode](sa.jacfwd(f)), 0.0)(point) == 0.0


VALUES = np.array([[0.3, -1.2, 2.0], [1000.0, 999.0, 2.5]])
WEIGHTS = np.array([[1.0, 0.0, 2.0], [0.5, 3.0, 0.0]])


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (1,)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_logsumexp_has_scipys_arguments(axis, keepdims, weighted):
    keywords = {"axis": axis, "keepdims": keepdims, "b": WEIGHTS if weighted else None}
    f = lambda x: special.logsumexp(x, **keywords)  # noqa: E731
    np.testing.assert_allclose(sa.compile(f, VALUES)(VALUES), f(VALUES), rtol=1e-14)
    weights = (WEIGHTS if weighted else 1.0) * np.exp(VALUES - np.max(VALUES, axis=axis, keepdims=True))
    wanted = weights / weights.sum(axis=axis, keepdims=True)
    for transform in (sa.jacfwd, sa.jacrev):
        found = transform(f)(VALUES)
        np.testing.assert_allclose(found.reshape(-1, 2, 3).sum(axis=0), wanted, rtol=1e-12, atol=1e-300)


def test_logsumexp_with_signs():
    weights = np.array([1.0, -3.0, 0.5])
    f = lambda x: special.logsumexp(x, b=weights, return_sign=True)  # noqa: E731
    x = np.array([0.3, 0.2, -1.0])
    value, sign = sa.compile(f, x)(x)
    np.testing.assert_allclose([value, sign], f(x), rtol=1e-14)
    np.testing.assert_allclose(
        sa.grad(lambda x: f(x)[0])(x), weights * np.exp(x) / np.sum(weights * np.exp(x)), rtol=1e-13
    )
    value, sign = sa.compile(lambda x: special.logsumexp(x, return_sign=True), x)(x)
    np.testing.assert_allclose([value, sign], special.logsumexp(x, return_sign=True), rtol=1e-14)


def test_logsumexp_at_ties_has_the_right_hessian():
    """The largest element, by which the sum is shifted, must leave no trace in a derivative."""
    for f in (lambda x: special.logsumexp(x), lambda x: special.logsumexp(x, b=np.ones(3))):
        weights = np.exp([1.0, 1.0, 0.0]) / np.sum(np.exp([1.0, 1.0, 0.0]))
        wanted = np.diag(weights) - np.outer(weights, weights)
        np.testing.assert_allclose(sa.hessian(lambda x, f=f: f(x))(np.array([1.0, 1.0, 0.0])), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_softmax_has_scipys_arguments(name, axis):
    f = lambda x: getattr(special, name)(x, axis=axis)  # noqa: E731
    np.testing.assert_allclose(sa.compile(f, VALUES)(VALUES), f(VALUES), rtol=1e-13, atol=1e-300)
    forward, reverse = sa.jacfwd(f)(VALUES), sa.jacrev(f)(VALUES)
    np.testing.assert_allclose(forward, reverse, rtol=1e-11, atol=1e-14)
    steps = np.eye(6).reshape(6, 2, 3) * 1e-4
    numeric = np.stack([(f(VALUES + step) - f(VALUES - step)) / 2e-4 for step in steps], axis=-1)
    np.testing.assert_allclose(forward, numeric.reshape(forward.shape), rtol=1e-5, atol=1e-6)


def test_several_outputs_and_orders_broadcast():
    x = np.array([0.5, 1.5, 2.5])
    for f in (special.sici, special.airy, special.fresnel, lambda x: special.ellipj(x, 0.3)):
        np.testing.assert_allclose(sa.compile(f, x)(x), f(x), rtol=1e-12)
    orders = np.arange(4)[:, None]
    f = lambda x: special.jv(orders, x)  # noqa: E731
    np.testing.assert_allclose(sa.compile(f, x)(x), f(x), rtol=1e-12)
    np.testing.assert_allclose(sa.jacfwd(f)(x).sum(axis=-1), special.jvp(orders, x), rtol=1e-10, atol=1e-14)


def test_counting_functions_have_scipys_conventions():
    for n in (-1.5, 0.0, 2.5, 6.0):
        for f in (
            lambda x: special.comb(x, 2), lambda x: special.comb(x, 2, repetition=True), lambda x: special.perm(x, 2),
            lambda x: special.factorial(x), lambda x: special.comb(6, x), lambda x: special.comb(x, 0, repetition=True),
        ):  # fmt: skip
            np.testing.assert_allclose(sa.compile(lambda x, f=f: f(x), 0.0)(n), f(n), rtol=1e-12, atol=1e-14)
    for f in (lambda x: special.comb(x, 2, exact=True), lambda x: special.factorial(x, exact=True)):
        with pytest.raises(TraceError, match="use exact=False"):
            sa.grad(f)(5.0)


OUTSIDE = {
    "pdtr": [(-1.0, 0.7), (-0.5, 3.0), (2.0, 0.7), (2.0, -0.1)],
    "pdtrc": [(-1.0, 0.7), (-0.5, 3.0), (2.0, 0.7)],
    "bdtr": [(-1.0, 3, 0.3), (6.0, 5, 0.3), (5.0, 5, 0.3), (2.0, 5, 1.2), (2.0, 5, -0.1), (5.0, 5, 1.2), (2.0, 5, 0.3)],
    "bdtrc": [(-1.0, 3, 0.3), (6.0, 5, 0.3), (5.0, 5, 0.3), (2.0, 5, 1.2), (-1.0, 5, 1.2), (2.0, 5, 0.3)],
    "fdtr": [
        (0.0, 4.5, 0.7),
        (np.inf, 4.5, 0.7),
        (3.0, 0.0, 0.7),
        (3.0, np.inf, 0.7),
        (-1.0, 2.0, 0.7),
        (3.0, 4.5, 0.7),
    ],
    "fdtrc": [(0.0, 4.5, 0.7), (np.inf, 4.5, 0.7), (3.0, 0.0, 0.7), (3.0, np.inf, 0.7), (3.0, 4.5, 0.7)],
    "kolmogorov": [(np.nan,), (-1.0,), (0.0,), (0.7,)],
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_of_their_domains_distributions_are_nan_as_scipys(name: str) -> None:
    f = getattr(special, name)
    for *others, last in OUTSIDE[name]:
        expected = f(*others, last)
        value, slope = sa.value_and_grad(lambda x, o=others: f(*o, x))(last)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(sa.compile(lambda x, o=others: f(*o, x), 0.5)(last), expected, rtol=1e-12)
        assert np.isnan(slope) or not np.isnan(expected)


def test_lambertw_is_real():
    assert sa.compile(special.lambertw, 0.0)(2.0) == pytest.approx(special.lambertw(2.0).real, rel=1e-15)
    with pytest.raises(TraceError, match="lambertw on branch 1"):
        sa.grad(lambda x: special.lambertw(x, 1))(0.5)


def test_derivatives_of_spherical_bessel_functions():
    for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"):
        f = lambda x, name=name: getattr(special, name)(2, x, derivative=True)  # noqa: E731
        g = lambda x, name=name: getattr(special, name)(2, x)  # noqa: E731
        assert sa.compile(f, 0.0)(1.3) == pytest.approx(f(1.3), rel=1e-12)
        assert sa.compile(f, 0.0)(1.3) == pytest.approx(sa.grad(g)(1.3), rel=1e-14)


@pytest.mark.wide
def test_the_documentation_is_generated_from_the_table():
    assert DOCUMENT.read_text(encoding="utf-8") == document()
