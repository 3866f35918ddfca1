"""Ranks, trimmed means, moments within limits: SciPy's numbers, with ties and NaN, on axes; derivatives; kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import symad as sa

RANDOM = np.random.default_rng(8)
A = np.round(RANDOM.normal(size=(3, 7)), 1)
TIED = np.array([[2.0, 1.0, 2.0, 0.5, 1.0, 2.0, -1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [3, 1, np.nan, 2, 5, 4, 1]])


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.thinned
def test_ranks_are_scipys(method, axis):
    """In a kernel, with equal elements and NaN; and they have no derivative."""
    f = lambda x: stats.rankdata(x, method, axis=axis) * np.float64(1.0)  # noqa: E731
    for x in (A, TIED[:2], TIED):
        np.testing.assert_array_equal(sa.compile(f, x)(x), f(x))
    value, tangent = sa.jvp(f, (A,), (A,))
    np.testing.assert_array_equal(value, f(A))
    assert not tangent.any()


FUNCTIONS = {
    "trimmed": lambda x: stats.trim_mean(x, 0.2, axis=1),
    "deviation": lambda x: stats.median_abs_deviation(x, axis=1, scale="normal"),
    "deviation of all": lambda x: stats.median_abs_deviation(x, axis=None),
    "mean": lambda x: stats.tmean(x, (-0.9, 0.9), axis=1),
    "mean of all": lambda x: stats.tmean(x, (None, 0.75), (True, False)),
    "variance": lambda x: stats.tvar(x, (-1.05, 1.0), (False, True), axis=1),
    "deviation within": lambda x: stats.tstd(x, (-1.05, None), axis=1, ddof=0),
    "error": lambda x: stats.tsem(x, axis=1),
    "spearman": lambda x: np.stack([stats.spearmanr(x[0], x[1])[0], stats.spearmanr(x[0], x[2]).pvalue]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_values_and_derivatives(name):
    """By two modes, and by differences where no order changes."""
    f, x = FUNCTIONS[name], A + RANDOM.uniform(-0.04, 0.04, A.shape)
    value, slope = f(x), sa.jacobian(f)(x)
    np.testing.assert_allclose(sa.jacfwd(f)(x), slope, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        sa.compile(sa.value_and_grad(lambda x: np.sum(f(x))), x)(x)[0], np.sum(value), rtol=1e-13
    )
    np.testing.assert_allclose(sa.compile(sa.jacobian(f), x)(x), slope, rtol=1e-12, atol=1e-14)
    for place in np.ndindex(*x.shape):
        h = np.zeros(x.shape)
        h[place] = 1e-6
        np.testing.assert_allclose(slope[..., *place], (f(x + h) - f(x - h)) / 2e-6, rtol=1e-6, atol=1e-8)


def test_nothing_within_limits():
    """SciPy's error where the numbers are known; NaN in a kernel."""
    f, x = lambda x: stats.tmean(x, (8.0, 9.0)), np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="No array values within given limits"):
        sa.grad(f)(x)
    assert np.isnan(sa.compile(f, x)(x))
    assert sa.compile(f, x)(x + 7) == 8.5  # 8 lies within, and 9


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: (stats.iqr(x), stats.siegelslopes(x, x**2)[0])[1], "siegelslopes.x, x..2.. asks for a float"),
        (lambda x: np.random.default_rng(1).permutation(x)[0], r"permutation got.*draw the places"),
        (lambda x: stats.spearmanr(np.outer(x, x))[0], "give two samples"),
        (lambda x: stats.trim_mean(x, 0.1, keepdims=True), "leave keepdims out"),
    ],
)
def test_refusals_name_what_was_called(f, why):
    """Also where another function stands in the same line."""
    with pytest.raises(sa.errors.TraceError, match=why):
        sa.jacobian(f)(np.array([0.5, 2.0, 1.0]))
