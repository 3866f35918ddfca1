"""Python control flow on numbers follows the values; on symbols it is refused."""

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

X = np.array([0.5, -1.0, 2.0, 0.25])


def branches(x):
    if x[0] > 0 and not x[1] > 0:
        return x[0] * x[1]
    return x[2]


def while_loop(x):
    total = x[0]
    while total < 10:
        total = total * 2 + x[3]
    return total


def builtin_extrema(x):
    return max(x), min(x), max(x[0], x[1]), sorted(x)


def chained(x):
    return x[0] if 0 < x[0] < 1 else x[1]


def newton(x):
    t = x[2]
    while abs(t * t - 2) > 1e-10:
        t = t - (t * t - 2) / (2 * t)
    return t * x[0]


ORDINARY = np.arange(4.0)


def marks_in_an_ordinary_array(x):
    marks = np.zeros(4)
    marks[x > 0] = 1.0
    marks[np.abs(x[2:]).astype(int)] += 2.0
    return marks * x


ON_NUMBERS = [
    marks_in_an_ordinary_array,
    lambda x: ORDINARY[x > 0] * x[0],
    lambda x: ORDINARY[np.floor(np.abs(x)).astype(int)] * x,
    lambda x: np.outer(ORDINARY, ORDINARY)[x > 0, 1] * x[0],
    branches,
    while_loop,
    builtin_extrema,
    chained,
    newton,
    lambda x: x[np.argmax(x)],
    lambda x: x[x.argmin()],
    lambda x: x[np.argsort(x)],
    lambda x: np.sort(x),
    lambda x: np.sort(x)[::-1],
    lambda x: x[x > 0],
    lambda x: x[np.where(x > 0)],
    lambda x: x[np.nonzero(x > 0)[0]],
    lambda x: np.median(x),
    lambda x: np.median(np.where(x > 0, x, np.nan)),
    lambda x: np.percentile(np.where(x.reshape(2, 2) > 0, x.reshape(2, 2), np.nan), 40, axis=1),
    lambda x: np.median(x.reshape(2, 2), axis=0),
    lambda x: np.percentile(x, 30),
    lambda x: np.quantile(x, [0.25, 0.5]),
    lambda x: np.partition(x, 1)[:1],
    lambda x: x[int(x[2])],
    lambda x: x[int(np.floor(x[2]))],
    lambda x: x * float(np.allclose(x, x)),
    lambda x: x * np.array_equal(x, x),
    lambda x: x * (x[0] in [x[0], 2.0]),
    lambda x: x * (2.0 in x),
    lambda x: np.extract(x > 0, x),
    lambda x: np.searchsorted([0.0, 1.0, 3.0], x) * x,
    lambda x: np.digitize(x, [0.0, 1.0]) * x,
    lambda x: np.isclose(x, 0.5) * x,
    lambda x: x[np.flatnonzero(x > 0)],
    lambda x: np.bincount([0, 1, 1, 2], weights=x),
    lambda x: np.interp(x, X[np.argsort(X)], np.arange(4.0)),
    lambda x: np.array([v if v > 0 else -v for v in x]),
    lambda x: np.sum([v for v in x if v > 0]),
    lambda x: sum(v for v in x if v > 0),
    lambda x: np.max([x[0], x[1]]) * 2,
    lambda x: np.vectorize(lambda t: t if t > 0 else 0.1 * t)(np.array(list(x))),
    lambda x: any(v > 1 for v in x) * x,
    lambda x: x[list(range(int(x[2])))],
    lambda x: np.choose(x > 0, [x, -x]),
    lambda x: np.where(np.any(x > 1), x, 0),
    lambda x: np.argmax(x) * x,
    lambda x: np.isnan(x).any() * x,
    lambda x: x[:: int(x[2])],
]


def identify(function):
    return function.__name__ + str(getattr(getattr(function, "__code__", None), "co_firstlineno", ""))


@pytest.mark.parametrize("function", ON_NUMBERS, ids=identify)
def test_numbers_are_followed(function, agrees_on_numbers):
    agrees_on_numbers(function, X)


@pytest.mark.parametrize(
    "function",
    [branches, while_loop, builtin_extrema, lambda x: x[x > 0], lambda x: x[int(x[0])]],
    ids=identify,
)
def test_symbols_are_refused(function, agrees_on_symbols):
    with pytest.raises(TraceError, match="depends on a symbolic value"):
        agrees_on_symbols(function, X)


def test_inner_levels_follow_the_values_of_outer_ones(scope, number):
    assert number > 0.4
    assert not number * number > 0.3
    assert int(number * 5) == 2
    assert [7, 8, 9][np.floor(number * 5)] == 9


def test_sorted_of_more_numbers_than_paths_is_nan_where_one_is():
    kernel = sa.compile(lambda x: sorted(x, reverse=True)[1], np.ones(5))
    assert kernel(np.array([0.3, 0.5, 0.1, 0.9, 0.2])) == 0.5
    assert np.isnan(kernel(np.array([0.8, 0.2, 0.4, np.nan, 0.9])))
