"""What masks without values pick, compiled: as plain calls and central differences have it, on either side."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from tests.support.compiled import same_as_called

VECTORS = [
    np.array([0.3, -0.7, 1.2, 0.9]),
    np.array([-0.4, 0.8, -1.3, 0.2]),
    np.array([1.7, 0.1, -0.2, -2.1]),
    np.array([0.6, 2.1, 0.7, 1.9]),
]
TABLE = np.array([0.5, 1.5, -2.0, 3.0, 4.5])
GRID = np.array([-2.0, -0.5, 0.25, 1.0, 2.5])
V = np.array([0.3, -0.7, 1.2, 0.9])


def mask_std(x):
    return np.std(x[x > -1.0])


def mask_max(x):
    return np.max(x[x < 1.0]) ** 2


def mask_len(x):
    return np.sum(x[x > 0] ** 2) / len(x[x > 0])


def mask_size(x):
    y = x[x > 0]
    return np.sum(y**2) / y.size


def mask_shape(x):
    y = x[x > 0]
    return np.sum(y**2) / y.shape[0]


def mask_first(x):
    return x[x > 0][0] ** 2


def mask_last(x):
    return x[x > 0][-1] ** 2


def mask_plain_array(x):
    return np.sum(V[x > 0]) * x[0] ** 2


def mask_of_2d(x):
    a = np.outer(x, V)
    return np.sum(a[a > 0] ** 2)


def mask_rows(x):
    a = np.outer(x, V) + 1
    return np.sum(a[x > 0] ** 2)


def mask_rows_axis(x):
    a = np.outer(x, V) + 1
    return np.sum(a[x > 0].sum(axis=0) ** 2)


def mask_rows_mean_axis(x):
    a = np.outer(x, V) + 1
    return np.sum(a[x > 0].mean(axis=0) ** 2)


def mask_column(x):
    a = np.outer(x, V) + 1
    return np.sum(a[:, x > 0] ** 2)


def mask_sort(x):
    return np.sort(x[x > 0])[0] ** 2


def mask_sorted_top(x):
    y = np.sort(x[x > 0])
    return y[-1] ** 2


def mask_median(x):
    return np.median(x[x > 0]) ** 2


def mask_cumsum(x):
    return np.cumsum(x[x > 0])[-1] ** 2


def mask_var(x):
    return np.var(x[x > -1.0])


def mask_diff(x):
    return np.sum(np.diff(x[x > 0]) ** 2)


def mask_iter(x):
    return sum(v**2 for v in x[x > 0])


def mask_empty_test(x):
    y = x[x > 1.0]
    if y.size == 0:
        return x[0] ** 2
    return np.sum(y) ** 2


def mask_argmax(x):
    y = x[x > 0]
    return y[np.argmax(y)] ** 2


def mask_norm(x):
    return np.linalg.norm(x[x > 0])


def mask_concat(x):
    return np.sum(np.concatenate([x[x > 0], x[x <= 0]]) ** 2)


def where_one(x):
    return np.sum(x[np.where(x > 0)] ** 2)


def where_one_index(x):
    (k,) = np.where(x > 0)
    return x[k[0]] ** 2


def where_one_len(x):
    return len(np.where(x > 0)[0]) * x[0] ** 2


def nonzero(x):
    return np.sum(x[np.nonzero(x > 0)] ** 2)


def flatnonzero(x):
    return np.sum(x[np.flatnonzero(x > 0)] ** 2)


def flatnonzero_first(x):
    return x[np.flatnonzero(x > 0)[0]] ** 2


def argwhere(x):
    return np.sum(x[np.argwhere(x > 0)[:, 0]] ** 2)


def where_store(x):
    y = x.copy()
    y[np.where(x < 0)] = 0.0
    return np.sum(y**2)


def extract(x):
    return np.sum(np.extract(x > 0, x) ** 2)


def compress(x):
    return np.sum(np.compress(x > 0, x) ** 2)


def putmask(x):
    y = x.copy()
    np.putmask(y, x > 0, y * 3)
    return np.sum(y**2)


def delete_where(x):
    return np.sum(np.delete(x, np.where(x > 0)) ** 2)


def isin(x):
    return np.sum(np.where(np.isin(np.round(x), [0.0, 1.0]), x**2, x))


def allclose(x):
    return x[0] ** 2 if np.allclose(x, np.abs(x)) else np.sum(x**3)


def array_equal(x):
    return x[0] ** 2 if np.array_equal(x > 0, [True, False, True, True]) else np.sum(x**3)


def choose(x):
    return np.sum(np.choose((x > 0).astype(int), [x**2, x**3]))


@pytest.mark.parametrize(
    "f",
    [
        mask_std,
        mask_max,
        mask_len,
        mask_size,
        mask_shape,
        mask_first,
        mask_last,
        mask_plain_array,
        mask_of_2d,
        mask_rows,
        mask_rows_axis,
        mask_rows_mean_axis,
        mask_column,
        mask_sort,
        mask_sorted_top,
        mask_median,
        mask_cumsum,
        mask_var,
        mask_diff,
        mask_iter,
        mask_empty_test,
        mask_argmax,
        mask_norm,
        mask_concat,
        where_one,
        where_one_index,
        where_one_len,
        nonzero,
        flatnonzero,
        flatnonzero_first,
        argwhere,
        where_store,
        extract,
        compress,
        putmask,
        delete_where,
        isin,
        allclose,
        array_equal,
        choose,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.thinned
def test_masks(f):
    same_as_called(f, VECTORS)


@pytest.mark.parametrize("x", [2.0, -2.0, np.nan])
def test_a_traced_truth_value_indexes_an_ordinary_array_without_axes(x):
    """All of it or nothing: found in pvlib's `perez`, which ended in NumPy's IndexError."""

    def f(x):
        count = np.array(3)
        count[np.isnan(x)] = 0
        count[x < 0] = 5
        return x * int(count)

    assert sa.grad(f)(x) == sa.compile(sa.grad(f), 1.0)(x) == {2.0: 3.0, -2.0: 5.0}.get(x, 0.0)
