"""What is stored in the elements that a traced mask picks, also through a view of them, reaches them when compiled."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from tests.support.compiled import same_as_called

VECTORS = [np.array([0.5, -1.0, 1.0, 0.7]), np.array([0.3, 0.9, 0.4, 0.8]), np.array([-0.2, 0.9, 0.65, -0.1])]


def source_changed(x):
    y = x * 1.0
    v = y[y > 0]
    y[0] = 5.0
    return np.sum(v)


def sorted_in_place(x):
    v = x[x > 0]
    v.sort()
    return v[0] + 10 * v[-1]


def filled(x):
    v = x[x > 0]
    v.fill(2.0)
    return np.sum(v) * x[0]


def flat(x):
    v = x[x > 0]
    v.flat[0] = 7.0
    return np.sum(v)


def reshape_view(x):
    v = x[x > 0]
    w = v.reshape(-1, 1)
    w[0, 0] = 7.0
    return np.sum(v)


def slice_view(x):
    v = x[x > 0]
    w = v[::2]
    w[0] = 7.0
    return np.sum(v)


def view_with_axis(x):
    v = x[x > 0]
    w = v[:, None]
    w += 1
    return np.sum(v * v)


def in_place(x):
    v = x[x > 0]
    v *= 2
    return np.sum(v * v)


def element(x):
    v = x[x > 0]
    v[0] = 3.0
    return np.sum(v * v)


def all_elements(x):
    v = x[x > 0]
    v[:] = 3.0
    return np.sum(v * v) * x[0]


def chosen_elements(x):
    v = x[x > 0]
    v[v > 0.6] = 3.0
    return np.sum(v * v)


def second_name(x):
    v = x[x > 0]
    w = v
    w += 1
    return np.sum(v * v)


def put(x):
    v = x[x > 0]
    np.put(v, [0], [9.0])
    return np.sum(v * v)


def put_by_mask(x):
    v = x[x > 0]
    np.putmask(v, v > 0.6, 0.0)
    return np.sum(v * v)


def with_out(x):
    v = x[x > 0]
    np.exp(v, out=v)
    return np.sum(v * v)


def copied_to(x):
    v = x[x > 0]
    np.copyto(v, 2.0)
    return np.sum(v * v) * x[0]


def swapped(x):
    v = x[x > 0]
    v[0], v[1] = v[1], v[0]
    return v[0] + 10 * v[1]


def added_at(x):
    v = x[x > 0]
    np.add.at(v, [0, 0], 1.0)
    return v[0] + 10 * v[1]


def raveled(x):
    v = x[x > 0]
    np.ravel(v)[0] = 8.0
    return np.sum(v)


def reshaped(x):
    v = x[x > 0]
    np.reshape(v, (-1, 1))[0] = 8.0
    return np.sum(v)


def in_a_loop(x):
    v = x[x > 0]
    for k in range(len(v)):
        v[k] *= 2
    return np.sum(v)


def places(x):
    v = np.flatnonzero(x > 0)
    v += 1
    return np.sum(v * x[0])


def partitioned(x):
    v = x[x > 0]
    v.partition(1)
    return v[1]


def unique_flat(x):
    v = np.unique(x)
    v.flat[::2] = x[0]
    return np.sum(v)


def compressed(x):
    v = np.compress(x > 0, x)
    v.real[0] = 3.0
    return np.sum(v)


def with_where(x):
    v = x[x > 0]
    np.multiply(v, 2.0, out=v, where=v > 0.6)
    return np.sum(v)


def rows_and_columns(x):
    m = np.outer(x, x)
    v = m[x > 0]
    v[0, 1] = 3.0
    v.T[1] += 2
    return np.sum(v * v)


def column(x):
    m = np.outer(x, x)
    v = m[x > 0]
    v[:, 1] = 3.0
    return np.sum(v * v)


def clipped(x):
    v = x[x > 0]
    v.clip(0, 0.6, out=v)
    return np.sum(v)


def copied(x):
    v = x[x > 0]
    w = v.copy()
    w += 3
    v[0] = 100
    return np.sum(v) + 3 * np.sum(w)


def as_array(x):
    v = x[x > 0]
    w = np.asarray(v)
    w[0] = 3
    return np.sum(v) + 3 * np.sum(w)


def new_array(x):
    v = x[x > 0]
    w = np.array(v)
    w[0] = 3
    return np.sum(v) + 3 * np.sum(w)


def view_after_length(x):
    v = x[x > 0]
    n = len(v)
    w = v[:2]
    w[:] = 1
    return np.sum(v) * n


def part(x):
    v = x[x > 0]
    a = np.array_split(v, 2)[0]
    a[0] = 77.0
    return np.sum(v)


def sorted_list(x):
    return sorted(np.sort(np.unique(x)))[0]


def lengths_agree(x):
    v = np.unique(x)
    return np.sum(v * np.arange(v.size).reshape(v.shape))


FUNCTIONS = [
    source_changed,
    sorted_in_place,
    filled,
    flat,
    reshape_view,
    slice_view,
    view_with_axis,
    in_place,
    element,
    all_elements,
    chosen_elements,
    second_name,
    put,
    put_by_mask,
    with_out,
    copied_to,
    swapped,
    added_at,
    raveled,
    reshaped,
    in_a_loop,
    places,
    partitioned,
    unique_flat,
    compressed,
    with_where,
    rows_and_columns,
    column,
    clipped,
    copied,
    as_array,
    new_array,
    view_after_length,
    part,
    lengths_agree,
    sorted_list,
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.thinned
def test_what_is_stored_in_what_a_mask_picks_reaches_it(f):
    same_as_called(f, VECTORS)


def test_the_first_of_none_has_no_value():
    kernel = sa.compile(lambda x: next(iter(np.flip(x[x > 0]))) * x[0], np.ones(3))
    assert kernel(np.array([0.5, -1.0, 2.0])) == 1.0
    assert np.isnan(kernel(-np.ones(3)))


def test_the_determinant_of_a_matrix_without_rows_is_one():
    def f(x):
        v = x[x > 0]
        return np.linalg.det(np.outer(v, v) + 2 * np.eye(len(v))) + x[0]

    assert sa.value_and_grad(f)(-np.ones(2))[0] == f(-np.ones(2)) == 0.0
    kernel = sa.compile(f, np.ones(2))
    for x in (-np.ones(2), np.array([1.0, -2.0]), np.array([1.0, 2.0])):
        np.testing.assert_allclose(kernel(x), f(x), rtol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        np.vander,
        lambda v: np.linalg.inv(np.eye(len(v)) * np.sum(v)),
        lambda v: np.linalg.lstsq(np.eye(len(v)) * np.sum(v), v, rcond=None)[0],
        lambda v: np.linalg.pinv(np.eye(len(v)) * np.sum(v)),
        lambda v: np.linalg.svdvals(np.outer(v, v)),
        lambda v: np.linalg.matrix_rank(np.outer(v, v)) * 1.0,
        lambda v: np.histogram_bin_edges(v, 2) - [0.0, 0.5, 1.0],
        lambda v: np.histogram(v, [0.0, 1.0])[0] * 1.0,
        np.unique,
        np.unwrap,
        lambda v: np.setdiff1d(v, [1.0]),
        lambda v: np.where((v > 0) & ~(v < 1) | (v == 2), v, 0.0),
    ],
)
def test_arrays_of_nothing_are_as_numpys(f):
    x = -np.ones(2)
    np.testing.assert_array_equal(sa.jvp(lambda x: f(x[x > 0]), (x,), (x,))[0], f(x[x > 0]))
    assert np.sum(f(x[x > 0])) == sa.value_and_grad(lambda x: np.sum(f(x[x > 0])) + 0 * x[0])(x)[0] == 0.0


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")  # of NumPy
def test_a_median_of_nothing_is_nan_and_no_error():
    def f(x):
        return np.sum(x) + np.where(x[0] < 0, 0.0, np.median(x[x > 0]))

    kernel = sa.compile(f, np.ones(3))
    for x in (-np.ones(3), np.array([0.0, -1.0, -2.0]), np.array([1.0, -3.0, 5.0])):
        np.testing.assert_array_equal(kernel(x), f(x))
