"""`while` on traced conditions, compiled: a loop with a bound, which is told."""

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
POSITIVE = [0.7, 1.3, 2.4, 0.15, 3.6]


def newton_while(a):
    x = 1.0 + a
    while abs(x * x - a) > 1e-12:
        x = x - (x * x - a) / (2 * x)
    return x


def newton_tol_delta(a):
    x = a
    d = 1.0
    while abs(d) > 1e-12:
        d = (x * x - a) / (2 * x)
        x = x - d
    return x


def newton_while_count(a):
    x = 1.0 + a
    n = 0
    while abs(x * x - a) > 1e-12 and n < 100:
        x = x - (x * x - a) / (2 * x)
        n += 1
    return x


def while_true_break(a):
    x = 1.0 + a
    while True:
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    return new


def fixed_point(a):
    x = 0.5
    old = 10.0
    while abs(x - old) > 1e-10:
        old, x = (x, np.cos(x) / (1 + a))
    return x


def series_until(x):
    t, s, k = (1.0, 0.0, 0)
    while abs(t) > 1e-14:
        s = s + t
        k += 1
        t = t * x / k
    return s


def newton_vector(x):
    a = np.abs(x) + 0.5
    y = a + 1
    while np.max(np.abs(y * y - a)) > 1e-12:
        y = y - (y * y - a) / (2 * y)
    return np.sum(y)


def while_list(a):
    xs = [1.0 + a]
    while abs(xs[-1] ** 2 - a) > 1e-12:
        xs.append(0.5 * (xs[-1] + a / xs[-1]))
    return xs[-1]


def agm(a):
    g, b = (1.0, a)
    while abs(g - b) > 1e-13 * abs(g):
        g, b = (0.5 * (g + b), np.sqrt(g * b))
    return g


def same_with_a_bound(f, points):
    with pytest.warns(
        sa.errors.BoundWarning, match=r"test_bounded_loops\.py:\d+: how often .* for 64 steps.*while_loop"
    ):
        same_as_called(f, points)


@pytest.mark.parametrize(
    "f",
    [newton_while, newton_tol_delta, newton_while_count, while_true_break, fixed_point, series_until, while_list, agm],
    ids=lambda f: f.__name__,
)
@pytest.mark.thinned
def test_loops_of_numbers(f):
    same_with_a_bound(f, POSITIVE)


def test_a_loop_of_a_vector():
    same_with_a_bound(newton_vector, VECTORS[:2])


def halved(x):
    while x > 1:
        x = x / 2
    return x


def test_beyond_the_bound_there_is_no_value():
    with pytest.warns(sa.errors.BoundWarning, match="followed for 5 steps"):
        kernel = sa.compile(sa.value_and_grad(halved), 1.0, max_paths=5)
    assert kernel(31.0) == (31 / 32, 1 / 32)
    assert np.isnan(kernel(65.0)).all()


def test_the_bound_counts_each_run_of_a_loop():
    def both(x):
        return halved(x) + halved(3 * x) * x

    with pytest.warns(sa.errors.BoundWarning):
        kernel = sa.compile(sa.grad(both), 1.0, max_paths=8)
    for x in (0.2, 0.9, 3.0, 9.5):
        assert kernel(x) == sa.grad(both)(x)


def test_a_handler_catches_no_end_of_a_path():
    def f(x):
        try:
            while x > 1:
                x = x / 2
        except BaseException:
            return 0.0 * x
        return x

    with pytest.warns(sa.errors.BoundWarning):
        kernel = sa.compile(f, 1.0, max_paths=3)
    assert kernel(4.0) == 1.0
    assert np.isnan(kernel(100.0))


def test_a_loop_over_a_sequence_has_no_bound():
    with pytest.raises(sa.errors.LimitError, match="more than 64 paths"):
        sa.compile(lambda x: sum([value for value in x if value > 0]), np.zeros(80))


def controlled_steps(p):
    t, y, h = 0.0, 1.0, 0.1
    while t < 1.0:
        first = -p * y
        second = -p * (y + h * first)
        error = abs(h * (second - first) / 2)
        if error < 1e-4:
            y = y + h * (first + second) / 2
            t = t + h
        h = h * min(2.0, max(0.3, 0.9 * (1e-4 / (error + 1e-300)) ** 0.5))
        if t + h > 1.0:
            h = 1.0 - t
        if h < 1e-12:
            break
    return y


def left_or_not(p):
    total, k = 0.0, 0
    while total < 5.0:
        total = total + p * np.exp(-0.1 * k)
        k += 1
        if p * k > 3.0:
            total = total * p
            break
    else:
        total = total + 100.0 * p
    return total


def same_on_numbers_and_in_a_kernel(f, points, **options):
    with pytest.warns(sa.errors.BoundWarning):
        kernel = sa.compile(sa.value_and_grad(f), points[0], **options)
    for x in points:
        np.testing.assert_allclose(kernel(x), [f(x), sa.grad(f)(x)], rtol=1e-9)
    return kernel


def test_a_loop_with_controlled_steps_and_a_break_is_one_body():
    kernel = same_on_numbers_and_in_a_kernel(controlled_steps, [2.0, 0.7, 3.1], max_paths=1000)
    assert kernel.program.operations < 1000  # and not as many as steps


def test_the_else_of_a_loop_follows_a_break():
    same_on_numbers_and_in_a_kernel(left_or_not, [0.4, 1.1, 2.3, 2.9], max_paths=100)


def names_of_flags(p):
    broke, total = p > 2.0, 0.0
    while total < 5.0:
        total = total + p
        if total > 3.0:
            broke = p > 1.0
        if p * total > 9.0:
            break
    return total**2 if broke else -total


def test_variables_may_be_called_as_the_flags_of_a_loop():
    same_on_numbers_and_in_a_kernel(names_of_flags, [0.3, 1.7, 2.6, 4.9], max_paths=100)


def test_a_path_that_nothing_ends_is_left():
    """Without a source, paths are followed one by one; on one that no number takes the loop never ends."""
    text = """
def f(p):
    h = 0.5
    while True:
        if abs(h * p) < 1e-3:
            return h
        h = h * 0.5
        if h * p > 2:
            h = 0.5
        if h < 0.15:
            h = 0.2
"""
    names = {}
    exec(text, names)  # a function without a source
    with pytest.warns(sa.errors.BoundWarning):
        kernel = sa.compile(names["f"], 1e-4)
    assert kernel(1e-4) == 0.5
    assert np.isnan(kernel(1.0))  # where Python's loop never ends
