"""SciPy's distances between points on traced values: its own numbers, and derivatives."""

import numpy as np
import pytest
import scipy
from scipy.spatial import distance
from scipy.spatial.distance import cdist, pdist, squareform

import symad as sa
from symad.errors import TraceError

POINTS = np.random.default_rng(0).normal(size=(6, 3))
OTHERS = np.random.default_rng(1).normal(size=(4, 3))
METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine")


def slope(f, x, step=1e-6):
    """Return central differences."""
    moves = np.eye(x.size).reshape(x.size, *x.shape) * step
    return np.array([(f(x + move) - f(x - move)) / (2 * step) for move in moves]).reshape(x.shape)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("f", [
    lambda x, metric: np.sum(np.sin(cdist(x, OTHERS, metric))),
    lambda x, metric: np.sum(np.sin(distance.cdist(OTHERS, x, metric=metric))),
    lambda x, metric: np.sum(np.sin(scipy.spatial.distance.pdist(x, metric))),
    lambda x, metric: np.sum(np.exp(-squareform(pdist(x, metric))) * np.arange(36).reshape(6, 6)),
])  # fmt: skip
@pytest.mark.thinned
def test_distances(f, metric):
    value, gradient = sa.value_and_grad(lambda x: f(x, metric))(POINTS)
    assert value == pytest.approx(f(POINTS, metric), rel=1e-14)
    np.testing.assert_allclose(gradient, slope(lambda x: f(x, metric), POINTS), rtol=1e-7, atol=1e-8)
    kernel = sa.compile(sa.value_and_grad(lambda x: f(x, metric)), POINTS)
    np.testing.assert_allclose(kernel(POINTS)[1], gradient, rtol=1e-12, atol=1e-13)


def test_squareform_is_its_own_inverse():
    def there_and_back(distances):
        return np.sum(squareform(squareform(distances)) * np.arange(15.0))

    np.testing.assert_allclose(sa.grad(there_and_back)(pdist(POINTS)), np.arange(15.0))
    with pytest.raises(ValueError, match="binomial coefficient"):
        sa.grad(lambda d: np.sum(squareform(d)))(np.ones(4))


@pytest.mark.parametrize("f", [
    lambda x: np.sum(cdist(x, OTHERS, "hamming")),
    lambda x: np.sum(pdist(x, "seuclidean")),
    lambda x: np.sum(pdist(x, "mahalanobis")),
])  # fmt: skip
def test_other_metrics_are_refused(f):
    with pytest.raises(TraceError, match="traced are euclidean"):
        sa.grad(f)(POINTS)


@pytest.mark.parametrize("f", [
    lambda x: np.sum((1 + 3**0.5 * cdist(x, x)) * np.exp(-(3**0.5) * cdist(x, x))),
    lambda x: (lambda y: np.sum(np.exp(-cdist(y, y, "minkowski", p=3))))(x / 2),
    lambda x: np.sum(np.exp(-scipy.spatial.distance_matrix(x, x))),
    lambda x: np.sum(np.sin(cdist(x, x, "seuclidean", V=[1.0, 2.0, 3.0]))),
])  # fmt: skip
def test_points_are_no_distance_from_themselves_with_a_slope_of_0(f):
    """A root has no slope at 0, and there this one stays."""
    gradient = sa.value_and_grad(f)
    kernel, wanted = sa.compile(gradient, POINTS), slope(f, POINTS)
    for value, found in (gradient(POINTS), kernel(POINTS)):
        assert value == pytest.approx(f(POINTS), rel=1e-14)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
    broken = POINTS.copy()
    broken[2, 1] = np.nan
    assert np.isnan(kernel(broken)[0])
    assert np.isnan(sa.value_and_grad(lambda x: cdist(x, x)[2, 2])(broken)[0])
