"""Indexing, joining and reshaping on symbols, against NumPy itself."""

import numpy as np
import pytest

import symad as sa

GENERATOR = np.random.default_rng(7)
X = GENERATOR.uniform(0.2, 1.5, 5)
Y = GENERATOR.uniform(-2.0, 2.0, 5)
CONSTANT = GENERATOR.uniform(-1.0, 1.0, 5)
MASK = np.array([True, False, True, True, False])

SHAPES = [
    lambda x, y: x[0],
    lambda x, y: x[-1],
    lambda x, y: x[1:3],
    lambda x, y: x[::-1],
    lambda x, y: x[[0, 2, 2]],
    lambda x, y: x[MASK],
    lambda x, y: x[None, :] + x[:, None],
    lambda x, y: x[..., np.newaxis],
    lambda x, y: x[np.array([1, 0])],
    lambda x, y: x.reshape(5, 1),
    lambda x, y: x.reshape((1, 5)),
    lambda x, y: np.reshape(x, (5, 1)),
    lambda x, y: x.T,
    lambda x, y: np.concatenate([x, y]),
    lambda x, y: np.concatenate([x, [1.0, 2.0]]),
    lambda x, y: np.concatenate((x, CONSTANT)),
    lambda x, y: np.stack([x, y]),
    lambda x, y: np.stack([x, CONSTANT], axis=1),
    lambda x, y: np.vstack([x, y]),
    lambda x, y: np.hstack([x, y]),
    lambda x, y: np.dstack([x, y]),
    lambda x, y: np.column_stack([x, y]),
    lambda x, y: np.block([[x, y], [y, x]]),
    lambda x, y: np.append(x, 3.0),
    lambda x, y: np.append(x, y[:2]),
    lambda x, y: np.insert(x, 1, 5.0),
    lambda x, y: np.insert(x, 0, y[0]),
    lambda x, y: np.delete(x, 2),
    lambda x, y: np.r_[x, y, 1.0],
    lambda x, y: np.c_[x, y],
    lambda x, y: np.tile(x, 2),
    lambda x, y: np.tile(x, (2, 1)),
    lambda x, y: np.repeat(x, 2),
    lambda x, y: x.repeat(3),
    lambda x, y: np.roll(x, 1),
    lambda x, y: np.roll(x, -2),
    lambda x, y: np.flip(x),
    lambda x, y: np.split(x, [2, 3]),
    lambda x, y: np.array_split(x, 2),
    lambda x, y: np.pad(x, 1),
    lambda x, y: np.pad(x, (1, 2), constant_values=3.0),
    lambda x, y: np.pad(x, 2, mode="edge"),
    lambda x, y: np.pad(x, 1, mode="reflect"),
    lambda x, y: np.pad(x, 1, "wrap"),
    lambda x, y: np.diag(x),
    lambda x, y: np.diag(np.diag(x)),
    lambda x, y: np.outer(x, y),
    lambda x, y: np.meshgrid(x, y),
    lambda x, y: np.meshgrid(x, CONSTANT, indexing="ij"),
    lambda x, y: np.broadcast_to(x, (2, 5)),
    lambda x, y: np.broadcast_arrays(x, y[:, None]),
    lambda x, y: np.atleast_2d(x),
    lambda x, y: np.expand_dims(x, 0),
    lambda x, y: np.squeeze(x[None]),
    lambda x, y: np.take(x, [3, 1]),
    lambda x, y: x.take([0, 0]),
    lambda x, y: np.ravel(x),
    lambda x, y: x.flatten(),
    lambda x, y: x.copy(),
    lambda x, y: np.copy(x),
    lambda x, y: list(x),
    lambda x, y: x.tolist(),
    lambda x, y: np.array([x, y]) + 0,
    lambda x, y: np.array([x[0], y[1], 2.0]) * 1,
    lambda x, y: np.asarray(x) * 2,
    lambda x, y: np.array(x) + np.sin(np.array(y)),
    lambda x, y: np.array([t**2 for t in x]),
    lambda x, y: np.array(list(x)) @ y,
    lambda x, y: np.stack([t**2 for t in x]),
    lambda x, y: x[0] * y,
    lambda x, y: np.zeros_like(x) + y,
    lambda x, y: np.ones_like(x) * y,
    lambda x, y: np.full_like(x, 2.5) * y,
    lambda x, y: np.full_like(x, y[0]),
    lambda x, y: np.zeros(5) + x,
    lambda x, y: np.ones((2, 5)) * x,
    lambda x, y: np.eye(5) * x,
    lambda x, y: len(x) * x,
    lambda x, y: x.shape[0] * x,
    lambda x, y: x.size * x.ndim * x,
    lambda x, y: np.size(x) * np.ndim(x) * np.shape(x)[0] * x,
    lambda x, y: np.compress(MASK, x),
    lambda x, y: np.resize(x, (2, 4)),
    lambda x, y: np.lib.stride_tricks.sliding_window_view(x, 3),
    lambda x, y: np.choose([0, 1, 0, 1, 0], [x, y]),
    lambda x, y: x.squeeze() + x.ravel() + x.swapaxes(0, 0),
    lambda x, y: np.vectorize(lambda t: t * t)(np.array(list(x))),
    lambda x, y: np.apply_along_axis(np.sum, 0, np.array(list(x))),
    lambda x, y: np.unstack(x),
    lambda x, y: np.vectorize(lambda t: t * t)(x),
    lambda x, y: np.frompyfunc(lambda t, u: t * u + 1, 2, 1)(x, y).astype(float),
]


def identify(function):
    return f"{function.__code__.co_firstlineno}"


@pytest.mark.parametrize("function", SHAPES, ids=identify)
def test_vectors(function, agrees_on_symbols):
    agrees_on_symbols(function, X, Y)


def test_an_inner_product_of_vectors_is_a_number():
    """It was an array without axes, which has no round()."""
    x = np.array([0.3, 0.2, 0.5])

    def f(x):
        return round(np.inner(x, x), 1) + np.inner(x, x) + np.inner(np.outer(x, x), x).sum()

    assert sa.grad(f)(x) == pytest.approx(sa.grad(lambda x: x @ x + np.outer(x, x).dot(x).sum())(x))
    assert sa.compile(f, x)(x) == pytest.approx(f(x))
