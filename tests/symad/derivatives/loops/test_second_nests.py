"""Matrices of nests by columns: what is stored again in each round, and depends on the other argument only."""

import numpy as np
import pytest

import symad as sa

X, Y = np.linspace(0.1, 1, 5), np.linspace(-0.5, 1, 5)


def maps(x, y):
    """A state that goes its own way, and one that follows it."""

    def step(states, _):
        v, w = states
        w = sa.vmap(lambda a: np.sin(a) * 1.1)(w) + 0.1 * w[::-1]
        return (sa.vmap(lambda a, b: a * b + np.sin(a))(v, w), w), None

    return sa.scan(step, (x, y), None, length=4)[0][0]


def sums(x, y):
    def step(states, _):
        v, w = states
        w = sa.vmap(np.sin)(w)
        return (v * sa.sum_over(lambda a: a * a, w) + np.sin(v), w), None

    return sa.scan(step, (x, y), None, length=4)[0][0]


def squares(f):
    return lambda x, y: np.sum(f(x, y) ** 2)


MATRICES = {
    "Jacobian": sa.jacobian,
    "Jacobian by rows": lambda f, wrt: sa.jacobian(lambda x, y: f(x, y)[:2], wrt),
    "Hessian": lambda f, wrt: sa.hessian(squares(f), wrt),
    "mixed derivatives": lambda f, wrt: sa.jacobian(sa.grad(squares(f), 1 - wrt), wrt),
}


@pytest.mark.parametrize("wrt", [0, 1])
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("f", [maps, sums])
@pytest.mark.thinned
def test_loops_and_straight_lines_agree(f, name, wrt, monkeypatch):
    monkeypatch.setattr("symad.derivatives.loops.columns_of_regions.FEWEST_OPERATIONS", 0)
    matrix = MATRICES[name](f, wrt)
    rolled = sa.compile(matrix, X, Y, roll="always")(X, Y)
    straight = sa.compile(matrix, X, Y, roll="never", tier="fast")(X, Y)
    np.testing.assert_allclose(rolled, straight, rtol=1e-12, atol=1e-12 * np.abs(straight).max())
