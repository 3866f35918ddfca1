"""Dense derivatives through many sums over the whole input: products of matrices, and no cliff beside their sizes."""

import numpy as np
import pytest

import symad as sa

RANDOM = np.random.default_rng(0)
Z, WEIGHTS = RANDOM.normal(size=(150, 40)), RANDOM.normal(size=40) * 0.3
X = RANDOM.normal(size=(100, 3))


def squares(c):
    return np.sum((Z - c) ** 2, axis=1)


def logits(w):
    return np.log(np.sum(np.exp(X @ w.reshape(3, 25)), axis=1))


FUNCTIONS = {
    "distances": lambda c: np.sum(np.sqrt(1 + squares(c))),
    "terms in the input beside them": lambda c: (
        np.sum(np.log(np.sum(np.exp(Z * c), axis=1)) * squares(c)) + np.sum(c**3)
    ),
    "sums that meet in a quotient": lambda c: np.sum(squares(c) / (1 + np.sum(np.cos(Z * c), axis=1) ** 2)),
    "neighbouring sums": lambda c: np.sum(np.tanh(0.01 * squares(c)[1:] * squares(c)[:-1])),
    "branches": lambda c: np.sum(np.sqrt(np.sum(np.where(c < Z, (Z - c) ** 2, 0.1 * (Z - c) ** 2), axis=1))),
    "some of the numbers": lambda c: np.sum(np.sqrt(1 + np.sum((Z[:, :35] - c[3:38]) ** 2, axis=1))) + np.sum(c**4),
    "sums of sums": lambda c: np.sum(np.sqrt(1 + squares(c))) ** 2,
    "few and many terms": lambda c: (
        np.sum(np.exp(-squares(c) / 80)) + np.sum(np.sqrt(1 + np.sum(Z[:, :3] * c[:3], 1) ** 2))
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians(name):
    f = FUNCTIONS[name]
    kernel = sa.compile(sa.hessian(f), WEIGHTS)
    matrix = kernel(WEIGHTS)
    products = sa.compile(lambda x, v: sa.hvp(f, (x,), (v,)), WEIGHTS, WEIGHTS)
    np.testing.assert_allclose(matrix, [products(WEIGHTS, unit) for unit in np.eye(40)], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(matrix, sa.hessian(f)(WEIGHTS), rtol=1e-10, atol=1e-11)


def test_a_multinomial_regression():
    w = RANDOM.normal(size=75) * 0.1
    hessian = sa.hessian(lambda w: np.sum(logits(w)) + np.sum(w[:5] ** 3))
    np.testing.assert_allclose(sa.compile(hessian, w)(w), hessian(w), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sa.compile(sa.jacobian(logits), w)(w), sa.jacobian(logits)(w), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    "f",
    [
        lambda c: np.sqrt(1 + squares(c)),
        lambda c: np.exp(-squares(c) / 80) + c[0] * squares(c),
        lambda c: np.sin(squares(c)[::-1]) * np.sum(np.cos(Z * c), axis=1),
        lambda c: np.where(squares(c) > 50, np.log(squares(c)), squares(c)),
        lambda c: (np.sqrt(squares(c)), np.sum(c**2)),
    ],
    ids=["rows", "terms beside them", "two sums", "branches", "two results"],
)
def test_jacobians(f):
    kernel, right = sa.compile(sa.jacobian(f), WEIGHTS)(WEIGHTS), sa.jacobian(f)(WEIGHTS)
    for part, right_part in zip(kernel, right, strict=True) if isinstance(right, tuple) else [(kernel, right)]:
        np.testing.assert_allclose(part, right_part, rtol=1e-10, atol=1e-11)


def test_nan_stays_with_its_rows():
    """A product with rows that are 0 for other inputs would make NaN of all entries."""
    x = RANDOM.normal(size=(100, 45))
    x[3] = 0  # here a root has no derivative
    f = sa.hessian(lambda x: np.sum(np.sqrt(np.sum(x.reshape(100, 45) ** 2, axis=1))))
    assert np.isnan(sa.compile(f, x.ravel())(x.ravel())).sum() == 45**2


def test_slopes_of_branches_not_taken_do_not_count():
    def f(c):
        roots = np.sum(np.sqrt(np.abs(Z - c)), axis=1)
        return np.sum(
            np.where(np.arange(150) < 3, 0.0, np.sum((Z - c) ** 2, axis=1) ** 2) + np.where(c[0] > 9, roots, 0)
        )

    c = WEIGHTS.copy()
    c[1] = Z[0, 1]  # an infinite slope of a root that is not chosen
    matrix = sa.compile(sa.hessian(f), c)(c)
    assert np.isfinite(matrix).all()
    np.testing.assert_allclose(matrix, sa.hessian(f)(c), rtol=1e-10, atol=1e-10)


def operations(f, x):
    planned = sa.plan(f, x)
    (executed,) = [way.executed for way in planned.candidates if way.way == planned.chosen]
    return executed


@pytest.mark.parametrize("size", [12, 16, 32, 40, 64])
def test_one_more_column_costs_little_more(size):
    """At 41 columns the 100 x n numbers were more than are searched for loops, and cost 12 times as much."""
    costs = []
    for columns in (size, size + 1):
        data = np.random.default_rng(columns).normal(size=(100, columns))
        centre = sa.hessian(lambda c, data=data: np.sum(np.exp(-0.01 * np.sum((data - c) ** 2, axis=1))))
        costs.append(operations(centre, np.zeros(columns)))
    assert costs[1] < 1.3 * costs[0] * ((size + 1) / size) ** 2


@pytest.mark.parametrize("atoms", [52, 64])
def test_one_more_atom_costs_little_more(atoms):
    """At 53 atoms the differences of places were more than are searched for loops; sums of 3 squares are unrolled."""
    costs = []
    for count in (atoms, atoms + 1):
        i, j = np.triu_indices(count, 1)

        def energy(x, i=i, j=j, count=count):
            squares = np.sum((x.reshape(count, 3)[i] - x.reshape(count, 3)[j]) ** 2, axis=1)
            return np.sum(squares**-6 - squares**-3)

        costs.append(operations(sa.grad(energy), np.arange(3.0 * count)))
    assert costs[1] < 1.3 * costs[0]
