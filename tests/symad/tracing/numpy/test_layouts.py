"""The order of elements in memory decides which of ravel's, reshape's and flat's results are views, as in NumPy."""

import numpy as np
import pytest

import symad as sa

POINT = np.linspace(1, 2, 6)
MADE = {
    "broadcast, copied": lambda x: np.broadcast_to(x[:3], (2, 3)).copy(),
    "broadcast, np.copy": lambda x: np.copy(np.broadcast_to(x[:3], (2, 3))),
    "copied": lambda x: x.reshape(2, 3).T.copy(),
    "copied in order F": lambda x: x.reshape(2, 3).copy(order="F"),
    "copied in order K": lambda x: x.reshape(2, 3).T.copy(order="K"),
    "np.copy": lambda x: np.copy(x.reshape(2, 3).T),
    "np.array": lambda x: np.array(x.reshape(2, 3).T),
    "np.array in order C": lambda x: np.array(x.reshape(2, 3).T, order="C"),
    "np.asarray in order F": lambda x: np.asarray(x.reshape(2, 3), order="F"),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x.reshape(2, 3).T),
    "asfortranarray": lambda x: np.asfortranarray(x.reshape(2, 3)),
    "astype": lambda x: x.reshape(2, 3).T.astype(float),
    "astype in order C": lambda x: x.reshape(2, 3).T.astype(float, order="C"),
    "zeros_like": lambda x: np.zeros_like(x.reshape(2, 3).T) + x[0],
    "zeros_like in order C": lambda x: np.zeros_like(x.reshape(2, 3).T, order="C") + x[0],
    "times a number": lambda x: x.reshape(2, 3).T * 2.0,
    "sine": lambda x: np.sin(x.reshape(2, 3).T),
    "transposed twice": lambda x: x.reshape(2, 3).T + x.reshape(2, 3).T,
    "of both orders": lambda x: x.reshape(2, 3).T + x.reshape(3, 2),
    "with a row": lambda x: x.reshape(3, 2).T + x[:3],
    "with a column": lambda x: x.reshape(3, 2).T * x[:2, None],
    "three axes": lambda x: np.swapaxes(x.reshape(1, 2, 3), 0, 2) * 1.0,
    "where": lambda x: np.where(x.reshape(2, 3).T > 1.45, x.reshape(2, 3).T, 0.5),
    "clip": lambda x: x.reshape(2, 3).T.clip(1.1, 1.9),
    "cumsum": lambda x: np.cumsum(x.reshape(2, 3).T, axis=0),
    "cumsum of rows": lambda x: np.cumsum(x.reshape(2, 3), axis=1),
    "sort": lambda x: np.sort(x.reshape(2, 3).T, axis=0),
    "sum": lambda x: np.sum(x.reshape(1, 2, 3).T, axis=2),
    "select": lambda x: np.select([x.reshape(2, 3).T > 1.5], [x.reshape(2, 3).T], 0.3),
    "solve": lambda x: np.linalg.solve(2 * np.eye(3), x.reshape(2, 3).T),
    "qr": lambda x: np.linalg.qr(np.outer(x[:3], x[1:4]) + np.eye(3))[1],
    "concatenated": lambda x: np.concatenate([x.reshape(2, 3).T, x.reshape(2, 3).T]),
    "fancy": lambda x: x.reshape(2, 3).T[:, [1, 0]],
}


def ravel(array, value):
    array.ravel()[1] = value


def ravel_kept(array, value):
    array.ravel("K")[1] = value


def reshape(array, value):
    array.reshape(-1)[1] = value


def reshape_columns(array, value):
    array.reshape(-1, order="F")[1] = value


def flat(array, value):
    array.flat[1] = value
    array.flat[::4] *= value


@pytest.mark.parametrize("store", [ravel, ravel_kept, reshape, reshape_columns, flat])
@pytest.mark.parametrize("made", MADE)
def test_a_store_is_seen_where_numpy_has_a_view(made, store):
    def f(x):
        array = MADE[made](x)
        store(array, 3 * x[-1])
        return np.sum(array * array * np.cos(np.arange(array.size)).reshape(array.shape))

    value, slope = sa.value_and_grad(f)(POINT)
    assert value == pytest.approx(f(POINT.copy()), rel=1e-12)
    step = 1e-6 * np.eye(6)
    differences = [(f(POINT + h) - f(POINT - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)
    assert sa.compile(f, POINT)(POINT) == pytest.approx(value, rel=1e-12)


def test_what_is_read_from_flat_is_what_is_there_now():
    def f(x):
        array = x.reshape(2, 3).T * 1.0
        flat = array.flat
        array[0, 1] = 5.0
        flat[0] = flat[1] * x[0]
        array[2] = 0.0
        return np.sum(array * array) + flat[-1]

    value, slope = sa.value_and_grad(f)(POINT)
    assert value == pytest.approx(f(POINT.copy()), rel=1e-13)
    assert slope[0] == pytest.approx(2 * 25 * POINT[0])
