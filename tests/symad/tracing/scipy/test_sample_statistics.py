"""Samples of one number or two and points on a line: SciPy's numbers and errors, and slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import symad as sa

FUNCTIONS = {
    "harmonic mean of a number": (lambda x: stats.hmean(x), 1.5),
    "trimmed mean of a number": (lambda x: stats.trim_mean(x, 0.1), 1.5),
    "moment of a number": (lambda x: stats.moment(x, 1, center=0.5), 1.5),
    "mean within limits of a number": (lambda x: stats.tmean(x, (0.0, 2.0)), 1.5),
    "a number beside a sample": (lambda x: stats.ttest_ind(x, [1.0, 2.0, 2.5]).statistic, 2.0),
    "a sample beside a number": (lambda x: stats.ttest_ind(x, 2.5).statistic, np.array([1.5, 2.0, 4.0])),
    "slope by two points": (lambda x: stats.linregress(x, [1.0, 5.0]).slope, np.array([1.0, 3.0])),
    "probability by two points": (lambda x: stats.linregress(x, [1.0, 5.0]).pvalue, np.array([1.0, 3.0])),
    "probability of two equal heights": (lambda x: stats.linregress(x, [2.0, 2.0]).pvalue, np.array([1.0, 3.0])),
    "error by two points": (lambda x: stats.linregress(x, [1.0, 5.0]).stderr, np.array([1.0, 3.0])),
    "error of the height by two points": (
        lambda x: stats.linregress(x, [1.0, 5.0]).intercept_stderr,
        np.array([1.0, 3.0]),
    ),
    "probability of a line": (lambda x: stats.linregress(x, [1.0, 2.0, 2.5, 3.0]).pvalue, np.array([1, 2.5, 3, 4.5])),
    "correlation": (lambda x: stats.pearsonr(x, [1.0, 2.0, 2.5])[0], np.array([1.5, 2.0, 4.0])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_slopes(name):
    f, x = FUNCTIONS[name]
    value, slope = sa.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    compiled = sa.compile(sa.value_and_grad(f), x)(x)
    np.testing.assert_allclose(compiled[0], f(x), rtol=1e-13)
    np.testing.assert_allclose(compiled[1], slope, rtol=1e-12, atol=1e-15)
    for place in np.ndindex(*np.shape(x)):
        h = np.zeros(np.shape(x))
        h[place] = 1e-6
        np.testing.assert_allclose(np.asarray(slope)[place], (f(x + h) - f(x - h)) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", [stats.pearsonr, stats.linregress])
def test_points_on_a_line_have_scipys_probability(function):
    """It is tiny and no zero, for the correlation is rounded as SciPy rounds it."""
    x, y = np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])
    f = lambda x: function(x, y).pvalue  # noqa: E731
    assert f(x) > 0
    assert sa.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-6)


def test_a_line_through_equal_abscissae_is_scipys_error():
    with pytest.raises(ValueError, match="all x values are identical"):
        sa.grad(lambda x: stats.linregress(x, [1.0, 2.0, 3.0]).slope)(np.ones(3))


def test_the_deviation_of_a_single_element_that_a_mask_picks_has_no_slope():
    """Two equal elements have a deviation with a kink: its slope is no number."""
    f = lambda x: x[x > 0].std()  # noqa: E731
    kernel = sa.compile(sa.grad(f), np.ones(3))
    np.testing.assert_array_equal(kernel(np.array([1.4, -1.0, -2.0])), np.zeros(3))
    np.testing.assert_allclose(kernel(np.array([1.0, 2.0, -2.0])), [-0.5, 0.5, 0.0])
    assert np.isnan(kernel(np.array([2.0, 2.0, -2.0]))[:2]).all()
