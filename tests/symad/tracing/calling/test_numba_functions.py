"""Functions of numba inside of a user's function: the Python functions that they were made of are traced."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import symad as sa
from symad.errors import NumbaWarning

X = np.array([0.3, -0.2, 1.1])
SCALE = 2.0


@numba.njit
def half_wave(v):
    return np.sin(v) if v > 0 else v


@numba.njit
def weighted(x, n):
    total = 0.0
    for i in range(n):
        total += half_wave(x[i]) * math.exp(x[i])
    return total


@numba.njit
def stored(x):
    z = np.zeros(3)
    for i in range(3):
        z[i] = x[i] ** 2
    return z.sum() * z[0]


@numba.vectorize
def square(v, w):  # the name of a function of NumPy's
    return 3 * v * w if v > 0 else w


@numba.vectorize
def decayed(v, w):
    return math.exp(-v) * math.pow(w, 3) if v > 0 else weighted_once(v)


@numba.vectorize
def weighted_once(v):
    return math.sin(v) * v


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def summed(x, r):
    r[0] = x.sum()


@numba.njit
def clamped(v):
    if v < -1:
        return -1.0
    return v if v < 1 else 1.0


@numba.njit
def scaled(v):
    return v * SCALE


@numba.njit
def asks_for_more(v):
    return v.more


def plain_weighted(x):
    return sum((np.sin(v) if v > 0 else v) * np.exp(v) for v in x)


def plain_square(x):
    return sum(3 * v * w if v > 0 else w for v, w in zip(x, x[::-1], strict=True))


def plain_decayed(x):
    return sum(np.exp(-v) * w**3 if v > 0 else np.sin(v) * v for v, w in zip(x, x[::-1], strict=True))


def chain(x, helper):
    total = 0.0
    for k in range(40):
        total = total + helper(x[0] * k - x[1] + total * 0.1)
    return total


CASES = {
    "a helper of helpers": (lambda x: weighted(x, 3), plain_weighted),
    "arrays that it makes": (lambda x: stored(x) * x[1], lambda x: np.sum(x**2) * x[0] ** 2 * x[1]),
    "a ufunc": (lambda x: np.sum(square(x, x[::-1])), plain_square),
    "a ufunc of functions of math": (lambda x: np.sum(decayed(x, x[::-1])), plain_decayed),
    "a function with too many paths": (lambda x: chain(x, clamped), lambda x: chain(x, clamped.py_func)),
}


@pytest.mark.filterwarnings("ignore::symad.errors.NumbaWarning")
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_plain_python(name: str) -> None:
    function, plain = CASES[name]
    assert np.isclose(function(X), plain(X), rtol=1e-14)
    for transform in (lambda f: f, sa.grad, sa.hessian):
        expected = transform(plain)(X)
        np.testing.assert_allclose(transform(function)(X), expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(sa.compile(transform(function), X)(X), expected, rtol=1e-12, atol=1e-13)
    steps = 1e-6 * np.eye(3)
    differences = [(function(X + step) - function(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(sa.grad(function)(X), differences, rtol=1e-7, atol=1e-7)


@pytest.mark.filterwarnings("ignore::symad.errors.NumbaWarning")
@pytest.mark.parametrize("transform", [sa.grad, lambda f: sa.compile(sa.grad(f), X), lambda f: sa.jit(sa.grad(f))])
def test_it_may_be_the_function_itself(transform: Callable[..., Any]) -> None:
    np.testing.assert_allclose(transform(stored)(X), sa.grad(stored.py_func)(X), rtol=1e-14)


def test_it_is_told_once_with_the_line_of_the_function() -> None:
    @numba.njit
    def helper(v):
        return v * v

    def squares(x):
        return helper(x[0]) + helper(x[1])

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            sa.grad(squares)(X)
    assert [warning.category for warning in told] == [NumbaWarning]
    assert told[0].filename == __file__
    assert told[0].lineno == helper.py_func.__code__.co_firstlineno
    assert str(told[0].message).startswith("helper is compiled by numba for plain numbers")


@pytest.mark.filterwarnings("ignore::symad.errors.NumbaWarning")
def test_jit_notices_a_global_that_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = sa.jit(lambda x: scaled(x) * 1.0)
    assert kernel(3.0) == 6.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert kernel(3.0) == 9.0


def test_it_runs_as_compiled_for_plain_numbers() -> None:
    assert sa.grad(lambda x: x * half_wave(0.5))(2.0) == half_wave(0.5)


def makes_one(x):
    @numba.njit
    def inside(v):
        return v * v

    return inside(x)


def test_one_that_the_function_makes_is_traced() -> None:
    with pytest.warns(NumbaWarning, match="inside is compiled by numba"):
        assert sa.grad(makes_one)(3.0) == 6.0


@pytest.mark.parametrize("transform", [sa.grad, lambda f: sa.compile(f, 1.0)])
def test_what_no_call_leads_to_is_refused_with_a_way_out(transform: Callable[..., Any]) -> None:
    names = {"functions": [half_wave]}
    exec("def f(x):\n    return functions[0](x)", names)
    with pytest.raises(sa.errors.TraceError, match=r"<string>:\d+: this asks for a float of a traced value"):
        transform(names["f"])(1.0)


def test_a_function_that_writes_into_its_arguments_is_refused_by_name() -> None:
    with pytest.raises(sa.errors.TraceError, match=r"the ufunc summed was called with a traced value"):
        sa.grad(lambda x: summed(x))(X)


def test_errors_of_its_compiler_come_out() -> None:
    with pytest.raises(numba.TypingError, match="more"):
        sa.grad(lambda x: x * asks_for_more(3.0))(2.0)
