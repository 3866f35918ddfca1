"""Whole numbers that are computed, as places, keys and counts, compiled: as plain calls and central differences."""

from __future__ import annotations

import bisect
import math
import operator

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
NUMBERS = [0.7, -1.3, 2.4, 0.15, 3.6]
TABLE = np.array([0.5, 1.5, -2.0, 3.0, 4.5])
GRID = np.array([-2.0, -0.5, 0.25, 1.0, 2.5])
V = np.array([0.3, -0.7, 1.2, 0.9])
DICT = {0: 1.0, 1: -2.0, 2: 0.5, 3: 4.0, 4: 1.5}


def int_index(x):
    return TABLE[int(abs(x))] * x**2


def int_index_list(x):
    return [1.0, 2.0, 4.0, 8.0][int(abs(x))] * x**2


def round_index(x):
    return TABLE[round(abs(x))] * x**2


def floor_index(x):
    return TABLE[int(np.floor(abs(x)))] * x**2


def math_floor_index(x):
    return TABLE[math.floor(abs(x))] * x**2


def astype_index(x):
    return np.sum(TABLE[np.floor(np.abs(x)).astype(int)] * x**2)


def int_interp(x):
    s = min(max(abs(x), 0), 3.999)
    k = int(s)
    return TABLE[k] + (s - k) * (TABLE[k + 1] - TABLE[k])


def int_in_arith(x):
    return int(x) * x**2


def int_cmp(x):
    return x**2 if int(x) == 0 else x**3


def digitize(x):
    return np.sum(TABLE[np.clip(np.digitize(x, GRID), 0, 4)] * x**2)


def digitize_scalar(x):
    return TABLE[np.digitize(x, GRID[:4])] * x**2


def argmin_plain(x):
    return TABLE[np.argmin(x)] * x[1] ** 2


def searchsorted_plain(x):
    return TABLE[min(np.searchsorted(GRID, x), 4)] * x**2


def searchsorted_interp(x):
    k = np.clip(np.searchsorted(GRID, x) - 1, 0, 3)
    t = (x - GRID[k]) / (GRID[k + 1] - GRID[k])
    return TABLE[k] * (1 - t) + TABLE[k + 1] * t


def bisect_bisect(x):
    k = min(max(bisect.bisect(list(GRID), x) - 1, 0), 3)
    return TABLE[k] * x**2


def clip_index(x):
    k = np.clip(np.floor(x * 2).astype(int), 0, 4)
    return np.sum(TABLE[k] * x**2)


def fancy_2d(x):
    T = np.outer(TABLE, TABLE)
    i, j = (int(abs(x[0])), int(abs(x[1])))
    return T[i, j] * x[2] ** 2


def fancy_2d_arr(x):
    T = np.outer(TABLE, TABLE)
    i = np.floor(np.abs(x)).astype(int)
    return np.sum(T[i, i] * x**2)


def bilinear(x):
    T = np.outer(TABLE, TABLE)
    a, b = (min(abs(x[0]), 3.5), min(abs(x[1]), 3.5))
    i, j = (int(a), int(b))
    s, t = (a - i, b - j)
    return T[i, j] * (1 - s) * (1 - t) + T[i + 1, j] * s * (1 - t) + T[i, j + 1] * (1 - s) * t + T[i + 1, j + 1] * s * t


def dict_table(x):
    return DICT[int(abs(x))] * x**2


def dict_get(x):
    return DICT.get(round(x), 9.0) * x**2


def tuple_bool(x):
    return (2.0, 3.0)[x > 0] * x**2


def dict_functions(x):
    return {0: math.sin, 1: math.cos}.get(int(abs(x)), math.exp)(x)


def functions_argmax(x):
    return [np.sin, np.cos, np.exp, np.tanh][np.argmax(x)](x[0] * x[1])


def functions_int(x):
    return [math.sin, math.cos, math.exp, math.tanh][int(abs(x))](x)


def match_int(x):
    match int(abs(x)):
        case 0:
            return x**2
        case 1:
            return x**3
        case _:
            return math.sin(x)


def argmax_axis(x):
    a = np.outer(x, V)
    return np.sum(V[np.argmax(a, axis=1)] * x)


def try_index(x):
    try:
        return [1.0, 2.0, 3.0][int(abs(x))] * x
    except IndexError:
        return x**2


def int_array_index(x):
    k = np.arange(4)
    k = (k + int(abs(x[0]))) % 4
    return x[k[0]] ** 2


def int_scalar_div(x):
    return 7 // max(int(abs(x)), 1) * x**2


def int_pow2(x):
    return 2 ** int(x) * x**2


def list_times(x):
    return sum([x] * (min(int(abs(x)), 9) + 1)) * x


def int_bool(x):
    return int(x > 0) * x**2


def int_even(x):
    return x**2 if int(abs(x)) % 2 == 0 else x**3


def arr_of_int(x):
    return np.sum(np.array([int(v) for v in x]) * x**2)


def store_at_index(x):
    y = np.zeros(4)
    y[np.argmax(x)] = x[0] ** 2
    return np.sum(y * V)


def add_at(x):
    y = np.zeros(4)
    np.add.at(y, np.floor(np.abs(x)).astype(int), x**2)
    return np.sum(y * V)


@pytest.mark.parametrize(
    "f",
    [
        astype_index,
        digitize,
        argmin_plain,
        clip_index,
        fancy_2d,
        fancy_2d_arr,
        bilinear,
        functions_argmax,
        argmax_axis,
        int_array_index,
        arr_of_int,
        store_at_index,
        add_at,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.thinned
def test_places_of_vectors(f):
    same_as_called(f, VECTORS)


@pytest.mark.parametrize(
    "f",
    [
        int_index,
        int_index_list,
        round_index,
        floor_index,
        math_floor_index,
        int_interp,
        int_in_arith,
        int_cmp,
        digitize_scalar,
        searchsorted_plain,
        searchsorted_interp,
        bisect_bisect,
        dict_table,
        dict_get,
        tuple_bool,
        dict_functions,
        functions_int,
        match_int,
        try_index,
        int_scalar_div,
        int_pow2,
        list_times,
        int_bool,
        int_even,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.thinned
def test_places_of_numbers(f):
    same_as_called(f, NUMBERS)


KINDS = {
    "int(x)": lambda n, x: n,
    "a quotient that is rounded": lambda n, x: n // 2,
    "a quotient": lambda n, x: n / 2,
    "sums and remainders": lambda n, x: -n % 4 + abs(n) + 1,
    "a product with x": lambda n, x: n * x,
    "a power": lambda n, x: n**2,
    "round(x)": lambda n, x: round(x),
    "round(x, 1)": lambda n, x: round(x, 1),
    "math.floor(x)": lambda n, x: math.floor(x) - math.ceil(x),
    "a half more": lambda n, x: n + 0.5,
    "times 1.0": lambda n, x: n * 1.0,
    "x": lambda n, x: x,
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_an_int_in_python_is_one_compiled(name):
    def told(x):
        made = KINDS[name](int(x), x)
        return x * (2.0 if isinstance(made, int) else 3.0) * (5.0 if isinstance(made, float) else 7.0)

    assert sa.compile(told, 1.0)(3.7) == pytest.approx(told(3.7), rel=1e-15)
    assert sa.grad(told)(3.7) == pytest.approx(told(3.7) / 3.7, rel=1e-15)


def sines(values):
    return sum(np.sin(value) for value in values)


def repeated_in_place(x):
    values = other = [x[0], x[2]]
    values *= min(max(int(x[1]), 0), 4)
    return sines(other)


def repeated_out_of_sight(x):
    repeat, values = operator.imul, [x[0], x[2]]
    repeat(values, min(max(int(x[1]), 0), 4))
    return sum(values)


def repeated_by_imul(x):
    values = [x[0], x[2]]
    operator.imul(values, min(max(int(x[1]), 0), 4))
    return sines(values)


def filled(x):
    count = min(max(int(x[1]), 0), 4)
    values = [0.0] * count
    for k in range(count):
        values[k] = x[0] * (k + 1)
    return sines(values)


REPEATED = {
    "a list that is filled": filled,
    "a list": lambda x: sines([x[0], x[2]] * min(max(int(x[1]), 0), 4)),
    "a tuple, reflected": lambda x: sines(min(max(int(x[1]), 0), 4) * (x[0], x[2])),
    "by a length": lambda x: sines([x[0], x[2]] * len(x[x > 0.35])),
    "by an element": lambda x: sines([x[2]] * np.clip(x.astype(int), 0, 5)[1]),
    "by a place": lambda x: sines([x[2]] * np.argmax(x)) + x[0],
    "arguments": lambda x: (lambda *values: len(values) * x[0])(*[1.0] * len(x[x > 0.35])),
    "a text": lambda x: len("ab" * min(max(int(x[1]), 0), 4)) * x[0],
    "in place": repeated_in_place,
    "in place, by a function": repeated_by_imul,
    "in place, by another name of it": repeated_out_of_sight,
    "by a function": lambda x: sines(operator.mul([x[0], x[2]], min(max(int(x[1]), 0), 4))),
}


@pytest.mark.parametrize("name", REPEATED)
def test_whole_numbers_repeat_what_python_repeats(name):
    f, points = REPEATED[name], [np.array(x) for x in ([0.5, 3.2, 1.7], [0.5, 1.2, 0.4], [0.3, 0.4, -1.0])]
    kernels = [sa.compile(made, points[0]) for made in (f, sa.grad(f))]
    for x in points:
        np.testing.assert_allclose([kernels[0](x), sa.value_and_grad(f)(x)[0]], f(x), rtol=1e-14)
        np.testing.assert_allclose(kernels[1](x), sa.grad(f)(x), rtol=1e-14)


LAYERS = {"k1": 2.0, "k03": 4.0, "k3": 8.0}
NAMED = {
    "an f-string": lambda n: LAYERS.get(f"k{n}", 9.0),
    "with a specification": lambda n: LAYERS.get(f"k{n:02d}", 9.0),
    "str": lambda n: LAYERS.get("k" + str(n), 9.0),
    "format": lambda n: LAYERS.get("k{}".format(n), 9.0),  # noqa: UP032
    "percent": lambda n: LAYERS.get("k%d" % n, 9.0),  # noqa: UP031
    "compared": lambda n: 2.0 if str(n) == "3" else 5.0,
    "its length": lambda n: len(str(n * 4)),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_text_of_a_whole_number_is_that_of_the_number(name):
    def f(x):
        return NAMED[name](min(max(int(x), 0), 5)) * x

    kernels = sa.compile(f, 1.0), sa.compile(sa.grad(f), 1.0)
    for x in (3.7, 1.2, -2.0, 4.4):
        assert [kernel(x) for kernel in kernels] == [f(x), sa.grad(f)(x)]


def test_a_whole_number_that_is_printed_is_no_path(capsys):
    def f(x):
        n = int(x)
        print(f"n is {n}")
        return n * x

    assert sa.compile(f, 1.0)(70.5) == 70 * 70.5
    assert "n is trunc(x)" in capsys.readouterr().out


def test_the_length_of_a_traced_text_is_not_read():
    with pytest.raises(sa.errors.TraceError, match="the text of a traced value is read"):
        sa.compile(lambda x: len(str(x)) * x, 1.0)


def _put(a, key, value):
    a[key] = value
    return a


PLACES = {  # of a matrix of 4 x 5: a place p from the values, and the vector x
    "rows change": lambda a, p, x: _put(a, [1, p], a[[p, 1]]),
    "columns change": lambda a, p, x: _put(a, (slice(None), [p, 0]), a[:, [0, p]]),
    "a row": lambda a, p, x: _put(a, (-p, ...), x[3:8]),
    "a column": lambda a, p, x: _put(a, (slice(None), p), x[3:7]),
    "in a known column": lambda a, p, x: _put(a, (p, 2), x[3] * x[4]),
    "in a known row": lambda a, p, x: _put(a, (1, p), x[3] * x[4]),
    "two places": lambda a, p, x: _put(a, (p, int(x[1])), x[3] * x[4]),
    "a part of a row": lambda a, p, x: _put(a, (p, slice(1, None)), a[p, 1:] - x[3] * a[0, 1:]),
    "pairs": lambda a, p, x: _put(a, ([p, 0], [1, 2]), x[3:5]),
    "a grid": lambda a, p, x: _put(a, ([[p], [0]], [1, 2]), x[3]),
    "one row twice": lambda a, p, x: _put(a, [p, p], np.stack([x[:5], x[5:10]])),
    "a middle axis": lambda a, p, x: _put(a.reshape(2, 2, 5), (slice(None), p - 1, slice(1, 3)), x[3]),
    "lists of places": lambda a, p, x: a[[p, 1]][1, 2] * a[[1, p], 1].sum() * a[p][[p, 0]].sum(),
    "a row of before": lambda a, p, x: _put(a, [0, p], a[[p, 0]])[p, 2] * a[p, 1],
    "rows of a table": lambda a, p, x: (np.arange(12.0).reshape(4, 3) ** 2)[[p, 0]] * x[:6].reshape(2, 3),
}


@pytest.mark.parametrize("name", PLACES)
def test_lists_of_places_and_places_in_matrices(name):
    def f(x):
        found = PLACES[name](x.reshape(4, 5) * 1.0, int(x[0]), x)
        return np.sum(found * np.arange(1.0, np.size(found) + 1).reshape(np.shape(found)))

    x = np.linspace(0.7, 1.9, 20)
    kernel = sa.compile(sa.value_and_grad(f), x)
    for place in (0.3, 1.2, 2.5, 3.7, -1.5, 4.5):
        x[0] = place
        value, slopes = kernel(x)
        try:
            expected, wanted = sa.value_and_grad(f)(x)
        except IndexError:  # outside
            expected, wanted = np.nan, slopes
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(slopes, wanted, rtol=1e-13)


def test_elimination_with_pivots_as_numpy_users_write_it():
    def solved(v):
        a, b = v.reshape(3, 3).copy(), np.arange(1.0, 4) * v[0]
        for k in range(3):
            p = k
            for i in range(k + 1, 3):
                if abs(a[i, k]) > abs(a[p, k]):
                    p = i
            if p != k:
                a[[k, p]] = a[[p, k]]
                b[[k, p]] = b[[p, k]]
            for i in range(k + 1, 3):
                b[i] = b[i] - a[i, k] / a[k, k] * b[k]
                a[i, k:] = a[i, k:] - a[i, k] / a[k, k] * a[k, k:]
        x = np.zeros(3) * v[0]
        for k in (2, 1, 0):
            x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
        return x.sum()

    kernel, random = sa.compile(sa.value_and_grad(solved), np.ones(9)), np.random.default_rng(5)
    for _ in range(20):
        v = random.uniform(-1, 1, 9)
        value, slopes = kernel(v)
        assert value == pytest.approx(np.linalg.solve(v.reshape(3, 3), np.arange(1.0, 4) * v[0]).sum(), rel=1e-8)
        np.testing.assert_allclose(slopes, sa.grad(solved)(v), rtol=1e-8)
