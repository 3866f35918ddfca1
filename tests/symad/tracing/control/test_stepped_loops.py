"""Loops with conditions inside, loops that end by values one after the other, and rows of `if` statements.

Their steps, and the statements, are merged one by one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import BoundWarning

X = np.array([0.7, 1.3, 0.4, 2.1])
OTHERS = [X, np.array([1.1, 0.6, 2.0, 0.3]), np.array([0.2, 2.2, 1.4, 0.9])]


def cubic(t, x):
    return t**3 - x[0] * t - x[1]


def bisected(x):
    low, high = 0.0, 3.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if cubic(middle, x) > 0:
            high = middle
        else:
            low = middle
    return (middle - cubic(middle, x) / (3 * middle**2 - x[0])) * x[2]


def bisected_while(x):
    low, high = 0.0, 3.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if cubic(middle, x) > 0:
            high = middle
        else:
            low = middle
    return middle * x[2]


def bisected_with_break(x):
    a, b = 0.0, 3.0
    fa = cubic(a, x)
    for _ in range(60):
        c = 0.5 * (a + b)
        fc = cubic(c, x)
        if abs(fc) < 1e-12 or b - a < 1e-12:
            break
        if fa * fc < 0:
            b = c
        else:
            a, fa = c, fc
    return c - cubic(c, x) / (3 * c**2 - x[0])


def steps_controlled(x):
    def slope(y):
        return -x[1] * y + x[2]

    t, h, y, refused = 0.0, 0.1, x[0], 0
    while t < 1.0:
        h = min(h, 1.0 - t)
        k1 = slope(y)
        k2 = slope(y + h * k1)
        error = abs(h * (k2 - k1) / 2)
        if error < 1e-2:
            t = t + h
            y = y + h * (k1 + k2) / 2
        else:
            refused += 1
        h = h * 1.5 if error < 5e-3 else h * 0.5
    return y * (1 + refused)


def square_root(a):
    r = a + 1
    while abs(r * r - a) > 1e-12:
        r = 0.5 * (r + a / r)
    return r


def two_in_a_row(x):
    return square_root(x[0]) * square_root(x[1])


def two_inside(x):
    r = x[0] + 1
    while abs(r * r - x[0]) > 1e-12:
        r = 0.5 * (r + x[0] / r)
    s = x[1] + 1
    while abs(s * s - x[1]) > 1e-12:
        s = 0.5 * (s + x[1] / s)
    return r * s


def of_inner_functions(x):
    def root(a):
        r = a + 1
        while abs(r * r - a) > 1e-12:
            r = 0.5 * (r + a / r)
        return r

    return root(x[0]) * root(x[1])


def secant(x):
    a, b = 1.0, 2.0
    for _ in range(50):
        fa, fb = cubic(a, x), cubic(b, x)
        if abs(fb) < 1e-13:
            return b * x[2]
        if fb == fa:
            raise ValueError("it is flat")
        a, b = b, b - fb * (b - a) / (fb - fa)
    raise RuntimeError("no convergence")


def searched(x):
    y = np.array([1.0, -1.0])

    def loss(y):
        return np.sum((y - x[:2]) ** 2 * x[2:])

    for _ in range(4):
        d = -2 * (y - x[:2]) * x[2:]
        t = 1.0
        while loss(y + t * d) > loss(y) - 1e-4 * t * np.sum(d * d):
            t = t / 2
        y = y + t * d
    return np.sum(y**2)


def with_memory(x):
    state, energy = False, 0.0
    for v in np.sin(np.tile(x, 6) * np.arange(24)):
        if v > 0.5:
            state = True
        elif v < -0.5:
            state = False
        energy = energy + (v**2 if state else 2 * v)
    return energy


def reset(x):
    total, out, resets = 0.0, 0.0, 0
    for v in np.tile(x, 5):
        total = total + v - 1
        if total > 1:
            out = out + total**2
            total = 0.0
            resets = resets + 1
            continue
        if total < -0.5:
            total = -0.5 * v
        out = out + 0.1 * total
    return out + total + resets * x[0]


def with_else(x):
    total = 0.0
    for k in range(8):
        if x[k % 4] > 1.5 + 0.1 * k:
            total = total + x[k % 4] ** 2
        if total > 5:
            break
    else:
        total = total * x[0]
    for k in range(8):
        total = total + (x[k % 4] if total < k else -x[0])
    return total


def shifted(x):
    for value in np.tile(x, 5):
        if value > 1:
            x = x - 0.1 * value
    return x[0] * x[2]


def rows_of_ifs(x):
    """Eleven conditions one after the other: of plain and traced values, nested, and with a return."""
    a, b, c, d = x
    total, few = 0.0, len(x) < 9
    if a > 1:
        total = total + a * b
    if few and b > 1:
        total = total - b
        extra = a * total
    elif c > 1:
        extra = c
    else:
        extra = 0.0
    if few:
        total = total * 1.5
    if not c > 1:
        total = total + extra
    if a > b:
        if c > d:
            a, c = c, a
        elif d > 2:
            d = d - 0.1
        b = b + 1
    if b > 5:
        return a
    if total > d:
        total = d
    if 0.3 < a < 0.8:
        total += a**2
    if max(a, c) > 1.2:
        total *= c
    return total * a + b * c + d


def stores_under_conditions(x):
    y, held, count = np.zeros(4), [x[0], 0.0], {"over": 0}
    if x[0] > 1:
        y[0] = x[0]
    if x[1] > 1:
        y += x * 0.5
    if x[2] > 1:
        y = x * y[0]
        held[1] = y[2]
    if x[3] > 1:
        count["over"] += 1
    if y[1] > 0.5:
        y[1] -= x[2]
    if held[0] > held[1]:
        held[0], held[1] = held[1], held[0]
    if x[0] * x[1] > 0.9:
        count["over"] += 2
    if sum(held) > 1:
        y[3] = held[0] * count["over"]
    return np.sum(y * x) + held[1] + count["over"] * x[1]


FUNCTIONS: list[Callable[[Any], Any]] = [
    bisected, bisected_while, bisected_with_break, steps_controlled, two_in_a_row, two_inside, of_inner_functions,
    secant, searched, with_memory, reset, with_else, shifted, rows_of_ifs, stores_under_conditions,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.thinned
@pytest.mark.wide_rows("searched", "steps_controlled", "two_inside")
def test_values_and_derivatives_are_those_on_numbers(function: Callable[[Any], Any]) -> None:
    kernel = sa.compile(sa.value_and_grad(function), X)
    for x in OTHERS:
        value, gradient = kernel(x)
        expected = sa.grad(function)(x)
        assert np.isclose(value, function(x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
@pytest.mark.parametrize("function", [steps_controlled, two_in_a_row, reset], ids=lambda f: f.__name__)
@pytest.mark.wide_rows("steps_controlled")
def test_second_derivatives_are_those_on_numbers(function: Callable[[Any], Any]) -> None:
    kernel = sa.compile(sa.hessian(function), X)
    for x in OTHERS:
        np.testing.assert_allclose(kernel(x), sa.hessian(function)(x), rtol=1e-7, atol=1e-8)


def test_where_a_loop_goes_on_beyond_its_bound_there_is_no_value() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = sa.compile(two_inside, X, max_paths=8)
    assert {warning.category for warning in told} == {BoundWarning}
    assert all("test_stepped_loops.py" in str(warning.message) for warning in told)
    assert np.isclose(kernel(X), two_inside(X), rtol=1e-12)
    assert np.isnan(kernel(np.array([1e8, 1.0, 1.0, 1.0])))


def test_an_error_in_a_step_is_no_value() -> None:
    kernel = sa.compile(secant, X)
    flat = np.array([7.0, 1.0, 1.0, 1.0])  # cubic(1) = cubic(2)
    with pytest.raises(ValueError, match="flat"):
        secant(flat)
    assert np.isnan(kernel(flat))


def reads_it_later(x):
    total, functions = 0.0, []
    for k in range(9):
        functions.append(lambda: k)  # noqa: B023 - the case itself
        if x[k % 4] * (k + 1) > total:
            total = total + x[k % 4] * functions[0]()
    return total


def appends(x):
    kept = []
    for k in range(9):
        if x[k % 4] * (k + 1) > sum(kept):
            kept.append(x[k % 4])
    return sum(kept)


def nested_ends(x):
    total, a = 0.0, x[0]
    while a < 50:
        b = a
        while b > 1:
            b = b / 2 if b > 2 else b - 0.7
            total = total + b * b
        a = a * 1.1
    return total


def test_a_step_that_changes_a_length_has_too_many_paths_still() -> None:
    with pytest.raises(sa.errors.LimitError, match=r"test_stepped_loops.py:\d+: .* has more than \d+ (paths|steps)"):
        sa.compile(appends, X, max_paths=16)


def test_a_variable_that_a_function_inside_reads_is_the_one_that_changes() -> None:
    kernel = sa.compile(sa.value_and_grad(reads_it_later), X, max_paths=16)
    for x in OTHERS:
        np.testing.assert_allclose(kernel(x)[0], reads_it_later(x), rtol=1e-14)
        np.testing.assert_allclose(kernel(x)[1], sa.grad(reads_it_later)(x), rtol=1e-12)


def test_a_while_inside_a_while_has_the_bound_of_both() -> None:
    with pytest.warns(BoundWarning, match="followed for 16 steps"):
        kernel = sa.compile(sa.value_and_grad(nested_ends), X, max_paths=16)
    for start in (3.0, 30.0):
        x = X * 0 + start
        value, gradient = kernel(x)
        assert np.isnan(value) if start == 3.0 else np.isclose(value, nested_ends(x), rtol=1e-12)
        if start == 30.0:
            np.testing.assert_allclose(gradient, sa.grad(nested_ends)(x), rtol=1e-10)


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
def test_the_function_has_its_own_code_afterwards() -> None:
    codes = [function.__code__ for function in (two_in_a_row, square_root, appends)]
    sa.compile(two_in_a_row, X)
    with pytest.raises(sa.errors.LimitError):
        sa.compile(appends, X, max_paths=16)
    assert [function.__code__ for function in (two_in_a_row, square_root, appends)] == codes


@pytest.mark.filterwarnings("ignore::symad.errors.BoundWarning")
def test_several_threads_may_trace_it_while_others_call_it() -> None:
    wrong: list[Any] = []
    code, expected = of_inner_functions.__code__, of_inner_functions(X)

    def traces() -> None:
        if not np.isclose(sa.compile(of_inner_functions, X)(X), expected, rtol=1e-12):
            wrong.append("kernel")

    def calls() -> None:
        wrong.extend("call" for _ in range(200) if of_inner_functions(X) != expected)

    threads = [threading.Thread(target=target) for target in (traces, traces, calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert of_inner_functions.__code__ is code


def test_conditional_expressions_of_a_list_are_merged_one_by_one() -> None:
    """Twelve of them have 4096 paths."""

    def function(x: Any) -> Any:
        return sum([element if element > 0 else element * element for element in x])

    points = np.linspace(-1.0, 1.0, 12)
    expected = np.where(points > 0, 1.0, 2 * points)
    np.testing.assert_allclose(sa.compile(sa.grad(function), points)(points), expected)


def test_a_while_loop_is_traced_once() -> None:
    """Its steps up to the bound, one by one, would be 1400 operations beside the loop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        assert sa.plan(bisected_while, X).primal.traced.count_ops() < 10


def test_elements_of_rows_swapped_at_a_pivot():
    """Paths on which the pivot is no row, which no number takes, have no value; the others are merged."""

    def determinant(z):
        m = 8
        rows = [[z[i * m + j] for j in range(m)] for i in range(m)]
        product = 1.0
        for k in range(m):
            p = k
            for i in range(k + 1, m):
                if abs(rows[i][k]) > abs(rows[p][k]):
                    p = i
            for j in range(m):
                rows[k][j], rows[p][j] = rows[p][j], rows[k][j]
            for i in range(k + 1, m):
                factor = rows[i][k] / rows[k][k]
                for j in range(k, m):
                    rows[i][j] = rows[i][j] - factor * rows[k][j]
            product = product * rows[k][k]
        return product

    z = np.random.default_rng(0).normal(size=64)
    kernel = sa.compile(determinant, z)
    for seed in range(3):
        z = np.random.default_rng(seed).normal(size=64)
        np.testing.assert_allclose(kernel(z), determinant(z), rtol=1e-12)
