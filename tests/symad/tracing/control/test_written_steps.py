"""Python loops with conditions inside, of many steps: traced once, or step by step with what each step changes."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import BoundWarning

RNG = np.random.default_rng(5)
POINTS = [RNG.normal(size=70) for _ in range(3)]


def huber(x):
    total = 0.0
    for v in x:
        if abs(v) < 1:  # noqa: SIM108 - the case itself
            total = total + 0.5 * v * v
        else:
            total = total + abs(v) - 0.5
    return total


def one_list_with_two_names(x):
    a = [0.0] * 5
    b = a
    for i in range(len(x)):
        if x[i] > 0:
            a[i % 5] = a[i % 5] + x[i]
        else:
            b[0] = b[0] - x[i] * x[i]
    return sum((k + 1) * v for k, v in enumerate(b))


def lists_in_a_list(x):
    a = [[0.0, 1.0], [2.0, 3.0]]
    row = a[0]
    for i in range(len(x)):
        if x[i] > 0:
            row[1] = row[1] * 0.9 + x[i]
        else:
            a[1][i % 2] = a[0][1] * x[i]
    return a[0][0] + 2 * a[0][1] + 3 * a[1][0] + 4 * a[1][1] + row[1]


def a_view(x):
    y = np.zeros((2, 3))
    row = y[1]
    for i in range(len(x)):
        if x[i] > 0:
            row[i % 3] = row[i % 3] + x[i]
        else:
            y[1, 0] = y[1, 0] * 0.5 + x[i]
    return np.sum(y * np.arange(6).reshape(2, 3)) + row[0]


def in_place(x):
    y = np.zeros(3)
    z = y
    for v in x:
        if v > 0:
            y += v
        else:
            y *= 0.9
    return z[0] + 2 * y[1]


def a_dict(x):
    sums = {"above": 0.0, "below": 0.0}
    for v in x:
        if v > 0:
            sums["above"] = sums["above"] + v
        else:
            sums["below"] += 1
    return sums["above"] * sums["below"]


def attributes(x):
    state = types.SimpleNamespace(total=0.0, last=1.0)
    for v in x:
        if v > 0:
            state.total = state.total + v * state.last
            state.last = v
    return state.total**2


def counters(x):
    n = [0, 0]
    for v in x:
        if v > 0:
            n[0] += 1
        else:
            n[1] += 1
    return n[0] * x[0] + n[1] * x[1] + n[0] // 3


def left_early(x):
    a = [0.0, 0.0]
    for v in x:
        if a[0] > 3:
            break
        if v < 0:
            a[1] = a[1] + v
            continue
        a[0] = a[0] + v
    return a[0] * 2 + a[1]


def returned_from(x):
    a = [0.0, 0.0]
    for v in x:
        a[0] = a[0] + v
        if a[0] > 3:
            return a[0] * v
        if v < 0:
            a[1] = a[0]
    return a[0] * 2 + a[1]


def a_helper_that_stores(x):
    a = np.zeros(3)

    def add(v, k):
        if v > 0:
            a[k] = a[k] + v
        else:
            a[k] *= 0.9

    for k, v in enumerate(x):
        add(v, k % 3)
    return a[0] + 2 * a[1] + 3 * a[2]


def its_argument(x):
    def rectify(z):
        for i in range(len(z)):
            if z[i] < 0:
                z[i] = 0.1 * z[i]

    y = x * 1
    rectify(y)
    return np.sum(y**2)


def the_largest(x):
    best, place = x[0], 0
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
            place = i
    return best * 2 + x[place] ** 2


def the_last_one(x):
    last, total = None, 0.0
    for v in x:
        if last is not None and v > last:
            total = total + v * last
        last = v
    return total


def a_switch(x):
    is_on, total = False, 0.0
    for v in x:
        if v > 1:
            is_on = True
        if v < -1:
            is_on = False
        if is_on:  # noqa: SIM108 - the case itself
            total = total + v * v
        else:
            total = total - v
    return total


def switches(x):
    marks, total = [False] * 4, 0.0
    for i, v in enumerate(x):
        marks[i % 4] = bool(v > 0)
        if marks[0] and marks[1]:
            total = total + v
        elif marks[2]:
            total = total - v
    return total


def first_then_the_others(x):
    is_first, total = True, 0.0
    for v in x:
        if is_first:
            total = 3 * v
            is_first = False
        elif v > total / 10:
            total = total + v
    return total


def a_whole_number_that_is_read_before(x):
    n, total = 0, 0.0
    for v in x:
        total = total + (v if n == 0 else v * v if v > 0 else 0.0)
        n = 5
    return total


def bound_in_the_loop(x):
    total = 0.0
    for i, v in enumerate(x):
        w = v * v if v > 0 else -v
        k = i
        total = total + w
    return total + w + k * v


def names_of_types(x):
    total = 0.0
    for i in range(len(x)):
        total = total + (x[i] if isinstance(i, int) and x[i] > 0 else 0.5)
    return total


def a_tuple(x):
    s = (0.0, 0.0)
    for v in x:
        s = (s[0] + v, s[1]) if v > 0 else (s[0], s[1] - v)
    return s[0] * s[1]


def an_error_that_is_caught(x):
    total, a = 0.0, [0.0]
    for v in x:
        try:
            if v > 0:
                raise ValueError
            total = total + v
        except ValueError:
            a[0] = a[0] + v * v
    return total + a[0]


def memoized(x):
    known, total = {}, 0.0
    for i, v in enumerate(x):
        k = i % 5
        if k not in known:
            known[k] = v * v
        if v > 0:
            total = total + known[k]
    return total


def a_generator(x):
    return sum(v if v > 0 else 0.1 * v for v in x)


def a_comprehension(x):
    y = [v * v if v > 0 else -v for v in x]
    return sum(a * b for a, b in itertools.pairwise(y))


def in_pairs(x):
    total = 0.0
    for a, b in zip(x[1:], x[:-1], strict=True):
        if a > b:
            total = total + (a - b) ** 2
    return total


def rows_of_a_matrix(x):
    total = np.zeros(5)
    for row in np.reshape(x, (14, 5)):
        if np.sum(row) > 0:  # noqa: SIM108 - the case itself
            total = total + row**2
        else:
            total = total * 0.9
    return np.sum(total)


def bubbles(x):
    a = list(x[:9])
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return sum((k + 1) * v for k, v in enumerate(a))


def sweeps_over_a_grid(x):
    y = np.zeros(10)
    for _ in range(8):
        for i in range(10):
            left = y[i - 1] if i > 0 else 0.0
            right = y[i + 1] if i < 9 else 0.0
            new = 0.5 * (left + right + x[i])
            if abs(new - y[i]) > 1e-3:
                y[i] = new
    return np.sum(y**2)


def elimination(x):
    a, det = x[:25].reshape(5, 5).copy(), 1.0
    for k in range(5):
        for i in range(k + 1, 5):
            if abs(a[i, k]) > abs(a[k, k]):
                for j in range(5):
                    kept = a[k, j]
                    a[k, j] = a[i, j]
                    a[i, j] = kept
                det = -det
        det = det * a[k, k]
        for i in range(k + 1, 5):
            factor = a[i, k] / a[k, k]
            for j in range(k, 5):
                a[i, j] = a[i, j] - factor * a[k, j]
    return det


def shortest_path(x):
    w = np.abs(x[:36]).reshape(6, 6)
    d = [0.0] + [1e9] * 5
    for _ in range(5):
        for i in range(6):
            for j in range(6):
                if d[i] + w[i, j] < d[j]:
                    d[j] = d[i] + w[i, j]
    return d[-1]


def steps_of_its_own(x):
    t, y, h, n = 0.0, 1 + x[0] ** 2, 0.1, 0
    while t < 1.0 and n < 40:
        h = min(h, 1.0 - t)
        first = -y * y
        second = -((y + h * first) ** 2)
        error = abs(h * (second - first) / 2)
        if error < 1e-3:
            t = t + h
            y = y + h * (first + second) / 2
        h = h * min(2.0, max(0.2, 0.9 * (1e-3 / max(error, 1e-12)) ** 0.5))
        n = n + 1
    return y * (1 + n)


FUNCTIONS: list[Callable[[Any], Any]] = [
    huber, one_list_with_two_names, lists_in_a_list, a_view, in_place, a_dict, attributes, counters, left_early,
    returned_from, a_helper_that_stores, its_argument, the_largest, the_last_one, a_switch, switches,
    first_then_the_others, a_whole_number_that_is_read_before, bound_in_the_loop, names_of_types, a_tuple,
    an_error_that_is_caught, memoized, a_generator, a_comprehension, in_pairs, rows_of_a_matrix, bubbles,
    sweeps_over_a_grid, elimination, shortest_path, steps_of_its_own,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_slopes_are_those_on_numbers(function: Callable[[Any], Any]) -> None:
    kernel = sa.compile(sa.value_and_grad(function), POINTS[0])
    for x in POINTS:
        value, gradient = kernel(x)
        assert np.isclose(value, function(x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gradient, sa.grad(function)(x), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("function", [huber, in_pairs, a_switch, rows_of_a_matrix], ids=lambda f: f.__name__)
def test_second_derivatives_too(function: Callable[[Any], Any]) -> None:
    kernel = sa.compile(sa.hessian(function), POINTS[0])
    for x in POINTS:
        np.testing.assert_allclose(kernel(x), sa.hessian(function)(x), rtol=1e-7, atol=1e-8)


def swapped_rows(x):
    a = [[1.0 * x[0], 2.0], [2.0, 3.0 * x[1]]]
    for v in x:
        if v > 0:
            a[0], a[1] = a[1], a[0]
        a[0][0] = a[0][0] + v
    return a[0][0] + 2 * a[0][1] + 3 * a[1][0]


def a_stack(x):
    stack = []
    for v in x:
        if v > 0 and len(stack) < 3:
            stack.append(v)
        elif stack:
            stack.pop()
    return sum(stack) + x[0]


def array_or_store(x):
    y = np.zeros(3)
    for v in x:
        if v > 0:
            y = y + v
        else:
            y[0] = y[0] - v
    return y[0] + 2 * y[1]


def a_text(x):
    text, total = "a", 0.0
    for v in x:
        if v > 0:
            text = "b"
        total = total + (v if text == "b" else -v)
    return total


@pytest.mark.parametrize("function", [swapped_rows, a_stack, array_or_store, a_text], ids=lambda f: f.__name__)
def test_what_cannot_be_merged_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(sa.errors.LimitError, match=r"test_written_steps.py:\d+: .* has more than \d+ (paths|steps)"):
        sa.compile(function, POINTS[0], max_paths=16)


def test_the_number_of_steps_is_not_limited_and_the_graph_does_not_grow() -> None:
    kernels = [sa.compile(sa.grad(huber), np.ones(n)) for n in (1000, 100_000)]
    assert kernels[0].stats.code_bytes == kernels[1].stats.code_bytes
    x = np.random.default_rng(0).normal(size=100_000) * 2
    np.testing.assert_allclose(sa.compile(sa.grad(huber), x)(x), np.clip(x, -1, 1), rtol=1e-12)


def test_a_while_has_as_many_steps_as_it_is_given() -> None:
    with pytest.warns(BoundWarning, match="followed for 1000 steps"):
        kernel = sa.compile(steps_counted, 1.0, max_paths=1000)
    assert kernel(900.0) == steps_counted(900.0)
    assert np.isnan(kernel(1100.0))


def steps_counted(x):
    k, total = 0.0, 0.0
    while k < x:
        total = total + (k if total < 50 * x else 1.0)
        k = k + 1
    return total


def test_what_a_function_was_given_stays_as_it_was_where_an_error_comes_out() -> None:
    kept = [1.0, 2.0]

    def f(x):
        for k in range(80):
            if x[k % 3] > 0:
                kept[0] = kept[0] + 1.0
            if k == 70:
                raise RuntimeError("of the user")
        return x[0] * kept[0]

    with pytest.raises(sa.WorkbenchError):
        sa.compile(f, np.ones(3))
    assert all(type(value) is float for value in kept)
