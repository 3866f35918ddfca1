"""The limits of shadowed names: how often a function runs, what comes back, and what other threads see."""

import functools
import math
import threading

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

X = np.array([1.3, 0.7])
MODULES = (math, np)


def test_every_attempt_gets_fresh_arguments():
    """The first attempt changes its argument before it fails; the second must not see that."""

    def f(x):
        x *= 2
        return math.sin(x[0]) + x[1]

    assert sa.grad(f)(X) == pytest.approx([2 * np.cos(2 * X[0]), 2.0])


def test_a_function_runs_at_most_four_times_and_names_come_back():
    """What no shadow can cure: the float beside a number."""
    runs = []

    def f(x):
        runs.append(1)
        return math.sin(x[0]) + math.nextafter(x[1], 9.0)

    with pytest.raises(TraceError, match="a float"):
        sa.grad(f)(X)
    assert 1 < len(runs) <= 4
    assert (math, np) == MODULES


def test_errors_of_nested_levels_do_not_multiply_the_runs():
    """Six nested levels around a function that cannot be traced."""
    runs = []

    def f(x):
        runs.append(1)
        return math.nextafter(x, 9.0)

    nested = f
    for _ in range(6):
        nested = sa.grad(nested)
    with pytest.raises(TraceError, match="a float"):
        nested(1.0)
    assert len(runs) <= 64


def test_an_array_from_outside_is_never_written_to():
    """The shadows cover what the function makes; an array that exists before keeps its numbers."""
    outside = np.zeros(2)

    def f(x):
        outside[0] = x[0]
        return outside.sum()

    with pytest.raises(TraceError, match=r"test_shadow_limits\.py:\d+: a traced value is stored into an ordinary"):
        sa.grad(f)(X)
    assert outside.tolist() == [0.0, 0.0]


def test_the_users_own_errors_come_out_once():
    """An error that has nothing to do with tracing is not tried again."""
    runs = []

    def f(x):
        runs.append(1)
        return len(None)

    with pytest.raises(TypeError, match="has no len"):
        sa.grad(f)(X)
    assert len(runs) == 1


def test_a_name_that_the_function_binds_stays_bound():
    """A global that is assigned while it is shadowed is the user's."""
    space = {"np": np, "math": math}
    exec("def f(x):\n    global np\n    np = 5\n    return math.sin(x)", space)
    assert sa.grad(space["f"])(0.0) == 1.0
    assert space["np"] == 5
    assert space["math"] is math


def test_other_threads_get_ordinary_results_meanwhile():
    """While one thread runs with shadows, another one uses the same names on plain numbers."""
    inside, done, found = threading.Event(), threading.Event(), []

    def f(x):
        value = math.sin(x)
        inside.set()
        assert done.wait(10)
        return value

    def other():
        assert inside.wait(10)
        found.extend([math.sin(0.5), type(np.zeros(2)), float(3), isinstance(0.5, float), np.add.reduce([1, 2])])
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert sa.grad(f)(0.0) == 1.0
    thread.join()
    assert found == [math.sin(0.5), np.ndarray, 3.0, True, 3]


@functools.lru_cache
def grid(n):
    return np.linspace(0.0, 1.0, n)


@functools.cache
def bump(value):
    return math.exp(-value * value)


def test_cached_functions_keep_no_traced_value():
    """np.linspace makes a traced array in the second run, which a cache would hand to every later call."""

    def f(x):
        y = np.zeros(2)
        y[0] = bump(x[0])
        return (y * grid(2)[::-1]).sum() + x[1] * grid(2).sum()

    bump.cache_clear()
    for _ in range(2):
        assert sa.grad(f)(X) == pytest.approx([-2 * X[0] * np.exp(-(X[0] ** 2)), 1.0])
    assert bump.cache_info().currsize == 0
    assert type(grid(2)) is np.ndarray
    assert f(X) == pytest.approx(np.exp(-(X[0] ** 2)) + X[1])


@pytest.mark.parametrize("share", [np.require, np.asarray_chkfinite, np.lib.stride_tricks.as_strided])
def test_memory_that_cannot_be_shared_is_never_stale(share):
    """The result of these shares memory in NumPy: a later change is seen in it, or refused, but not lost."""

    def f(x):
        doubled = x * 2
        shared = share(doubled)
        doubled[0] = 5 * x[0]
        return shared.sum()

    try:
        found = sa.grad(f)(X)
    except ValueError as error:
        assert "read-only" in str(error)  # noqa: PT017 (either way is right)
    else:
        assert found.tolist() == [5.0, 2.0]
