"""More paths than the limit: calls of the user's functions are followed one by one, and merged where they return."""

import functools

import numpy as np
import pytest

import symad as sa
from symad.errors import LimitError

COUNTS = {"calls": 0}


def bounded(value, low, high):
    """As in the recursions of GARCH models."""
    if value < low:
        value = low
    elif value > high:
        value = high + np.log(value / high) if not np.isinf(value) else high + 1000
    return value


def decorated(f):
    @functools.wraps(f)
    def call(*args, **keywords):
        return f(*args, **keywords)

    return call


@decorated
def absolute(value, *, scale=1.0):
    return value * scale if value > 0 else -value * scale


def positive_part(values):
    return sum(value if value > 0 else 0.1 * value for value in values)


def with_generators(x):
    return sum(positive_part([x[0] - k, x[1] * k, x[2]]) ** 2 for k in range(40))


def with_decorated(x):
    return sum(absolute(x[k % 3] - k, scale=1 / (k + 1)) ** 2 for k in range(70))


def recursion(x, steps=100):
    variances = np.zeros(steps)
    variances[0] = x[0]
    for t in range(1, steps):
        variances[t] = bounded(0.1 + x[1] * variances[t - 1] + x[2] * (t % 7), 0.3, 2.5)
    return np.sum(np.log(variances) + 1 / variances)


def with_extrema(x):
    total = 0.0
    for k in range(40):
        total = total + max(x[0] - k * x[1], 0.1) ** 2 + min(x[2] * k, x[0], 3.0) * min(-x[1], x[2], key=abs)
    return total + max([x[0], x[1], 0.5]) + min((value for value in x), default=1.0)


def sides(value, edge):
    """Two numbers, and a constant that is the same on every path."""
    if value > edge:
        return value - edge, (2, value)
    return 0.0, (2, edge)


def with_two_results(x):
    total = 0.0
    for k in range(30):
        over, (count, kept) = sides(x[k % 3] * (k + 1), 10.0)
        total = total + over**2 * count + kept
    return total


def counting(value):
    COUNTS["calls"] += 1
    return value if value > 0 else -value


def clipped_in_place(values, k):
    if values[k] > 1:
        values[k] = values[k] * 0.9
    return values[k]


def root(value, edge):
    if value < edge:
        raise ValueError(value)
    return value**0.5 + edge


def with_roots(x):
    total = 0.0
    for k in range(70):
        try:
            total = total + root(x[0], k)
        except ValueError:
            total = total - 1.0
    return total


def repetitions(value, edge):
    return 2 if value > edge else 3


def is_large(value):
    while value > 3:
        return True
    return False


def picked(left, right):
    return left if left[0] > right[0] else right


POINTS = [np.array(point) for point in ([1.5, 0.7, 0.3], [0.2, -0.4, 5.0], [3.0, 0.01, -1.0], [0.1, 0.1, 0.1])]


@pytest.mark.parametrize("f", [recursion, with_extrema, with_two_results, with_decorated, with_generators])
@pytest.mark.wide_rows("recursion")
def test_calls_are_merged_where_the_paths_are_too_many(f):
    value, gradient = sa.compile(f, POINTS[0]), sa.compile(sa.grad(f), POINTS[0])
    hessian = sa.compile(sa.hessian(f), POINTS[0])
    for x in POINTS:
        np.testing.assert_allclose(value(x), f(x), rtol=1e-13)
        np.testing.assert_allclose(gradient(x), sa.grad(f)(x), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(hessian(x), sa.hessian(f)(x), rtol=1e-11, atol=1e-11)


def test_jit_compiles_once_what_is_merged():
    kernel = sa.jit(sa.grad(recursion))
    kernel(POINTS[0])
    with sa.choices() as made:
        for x in POINTS:
            np.testing.assert_allclose(kernel(x), sa.grad(recursion)(x), rtol=1e-12, atol=1e-13)
    assert made == []


def test_the_names_are_put_back():
    before = bounded
    sa.compile(recursion, POINTS[0])
    assert bounded is before
    assert "max" not in globals()


def test_nan_takes_the_path_that_python_takes():
    point = np.array([np.nan, 0.5, 1.0])
    np.testing.assert_equal(sa.compile(recursion, POINTS[0])(point), recursion(point))
    assert max(np.nan, 1.0) is np.nan
    kernel = sa.compile(lambda x: sum(max(x[0], k * 1.0) + max(k * 1.0, x[1]) for k in range(90)), POINTS[0])
    np.testing.assert_equal(kernel(np.array([np.nan, 1.0, 1.0])), np.nan)
    np.testing.assert_equal(kernel(np.array([1.0, np.nan, 1.0])), sum(max(1.0, k) + k for k in range(90)))


@pytest.mark.parametrize("f", [
    lambda x: sum(x[k % 3] if is_large(x[0] - k) is True else 0.0 for k in range(80)),
    lambda x: sum(np.sum(picked(x + k, x[::-1] * k)) for k in range(80)),
])  # fmt: skip
def test_calls_that_show_outside_are_not_merged(f):
    """They return `True` itself, or an array of theirs."""
    with pytest.raises(LimitError, match="more than 64 paths"):
        sa.compile(f, POINTS[0])


@pytest.mark.parametrize("f", [
    lambda x: sum(counting(x[k % 3] - k) for k in range(80)),
    lambda x: sum(clipped_in_place(values, k % 3) for values in [x * 2.0] for k in range(90)),
])  # fmt: skip
def test_what_calls_change_is_merged_too(f):
    kernel = sa.compile(sa.value_and_grad(f), POINTS[0])
    for x in POINTS:
        value, gradient = kernel(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-13)
        np.testing.assert_allclose(gradient, sa.grad(f)(x), rtol=1e-12, atol=1e-13)


@pytest.mark.wide
def test_what_is_left_to_the_paths_around_is_right_with_more_of_them():
    for f in (with_roots, lambda x: sum(x[0] for k in range(66) for _ in range(repetitions(x[1], k)))):
        with pytest.raises(LimitError, match="more than 64 paths"):
            sa.compile(f, POINTS[0])
        kernel = sa.compile(f, POINTS[0], max_paths=200)
        for x in POINTS:
            np.testing.assert_allclose(kernel(x), f(x), rtol=1e-13)


def test_derivatives_of_order_three_of_many_conditions():
    edges = np.linspace(-1, 1, 3)

    def f(x):
        total = 0.0
        for k in range(64):
            a, b = x[k % 3], x[(k + 1) % 3]
            total = total + np.hypot(a, k + 1.0) * np.sign(a - b) + np.maximum(a * b, 0.1 * k)
            total = total + min(a, b * k, key=abs) * b
        return total * 2 if np.all(x > edges) else total + np.sum(x) ** 2

    tensor = sa.compile(sa.partials(f, 3), POINTS[0], max_seconds=30)
    hessian = sa.compile(sa.hessian(f, mode="fwd-rev"), POINTS[0], max_seconds=30)
    for x in POINTS[:3]:
        np.testing.assert_allclose(tensor(x), sa.partials(f, 3)(x), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(hessian(x), sa.hessian(f)(x), rtol=1e-11, atol=1e-11)
