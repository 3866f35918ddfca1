"""Programs by which others found failures, as they wrote them; `docs/robustness.md` tells the cause of each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.cli import main

X = np.array([3.0, 1.0, 2.0])


def truncated(x: Any, trunc: float = 1.79e308) -> Any:
    try:
        return math.exp(x)
    except:  # noqa: E722 (as people write it)
        return trunc


def sorted_copy(x: Any) -> Any:
    v = np.array(x * 1.0)
    v.sort()
    return v[0] * v[1] ** 2


def put(x: Any) -> Any:
    v = np.array(x * 1.0)
    np.put(v, [0, 2], [x[1] * 2, 5.0])
    return np.sum(v * v)


def weighted_on_a_path(x: Any) -> Any:
    v = x if x[0] > 0 else -x
    return np.average(v, weights=np.abs(v) + 1)


def raises_on_a_path(x: Any) -> Any:
    if x[0] > 100:
        raise RuntimeError("never")
    return 1 / x[0] if x[1] != 77 else 1 / 0


def largest_of_scalars(x: Any) -> Any:
    return np.sum(np.maximum(np.array([x[0], x[1], x[2]]), 0.0)) ** 2


PROGRAMS = (sorted_copy, put, weighted_on_a_path, raises_on_a_path, largest_of_scalars)


def differences(f: Any, x: Any, h: float = 1e-5) -> Any:
    return np.array([(f(x + h * step) - f(x - h * step)) / (2 * h) for step in np.eye(len(x))])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients_are_those_of_numbers(f: Any) -> None:
    for found in (sa.value_and_grad(f)(X), sa.compile(sa.value_and_grad(f), X)(X)):
        assert found[0] == pytest.approx(f(X), rel=1e-14)
        np.testing.assert_allclose(found[1], differences(f, X), rtol=1e-8, atol=1e-8)


def test_an_error_that_is_caught() -> None:
    for found in (sa.value_and_grad(truncated)(3.0), sa.compile(sa.value_and_grad(truncated), 1.0)(3.0)):
        assert found == pytest.approx((math.exp(3.0), math.exp(3.0)), rel=1e-15)


@pytest.mark.parametrize("f", [np.max, np.min, np.maximum.reduce, largest_of_scalars], ids=lambda f: f.__name__)
@pytest.mark.parametrize("place", range(3))
def test_nan_among_traced_scalars(f: Any, place: int) -> None:
    x = X.copy()
    x[place] = math.nan

    def of_scalars(x: Any) -> Any:
        return f(np.array([x[0], x[1], x[2]]))

    assert np.isnan(sa.value_and_grad(of_scalars)(x)[0])
    assert np.isnan(sa.compile(of_scalars, X)(x))


@pytest.mark.parametrize(
    ("answer", "function", "verdict"),
    [
        ("n abs(x)^(n-1)", "x^n", "wrong"),
        ("n x^(n-1)", "x^n", "right"),
        ("2x + (sin(x)^2+cos(x)^2-1) + 1e-33", "x^2", "wrong"),
        ("2x + (sin(x)^2+cos(x)^2-1)", "x^2", "right"),
        ("2x + gamma(1e-5*x)*0", "x^2", "right"),  # its poles are removable, as those of x/x
        ("2x + gamma(1e-5*x)*1e-30", "x^2", "wrong"),
    ],
)
def test_answers(answer: str, function: str, verdict: str) -> None:
    shown = sa.check_derivative(answer, function, "x").text(100)
    assert ("✗ wrong" in shown, "✓ right" in shown) == (verdict == "wrong", verdict == "right")


def test_nan_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "sin(x)/x", "--at", "x=0"]) == 1
    assert "no error could be told" in capsys.readouterr().out


def test_the_second_derivative_of_a_kink_squared() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for k in range(20):
            u = x[k % 3] * (k + 1)
            total = total + abs(u) * abs(u)
        return total

    zeros, expected = np.zeros(3), np.diag([2.0 * sum((k + 1) ** 2 for k in range(20) if k % 3 == i) for i in range(3)])
    for kernel in (sa.compile(sa.hessian(f), zeros), sa.compile(sa.hessian(f), zeros, roll="never")):
        np.testing.assert_array_equal(kernel(zeros), expected)


def test_conditions_in_a_few_rounds_are_compiled_in_time_and_in_many_too() -> None:
    def f(x: Any, rounds: int) -> Any:
        total = 0.0
        for k in range(rounds):
            near = min([x[0] + k * 0.1, x[1] - k * 0.2, x[2]], key=abs)
            total = total + (near**3 if np.all(x > -1 - k) else near**2 * np.hypot(x[0], x[1]) * np.sign(x[2]))
        return total

    kernel = sa.compile(sa.partials(lambda x: f(x, 3), 3), X, max_seconds=60)
    np.testing.assert_allclose(kernel(X), sa.partials(lambda x: f(x, 3), 3)(X), rtol=1e-12)
    many = sa.compile(sa.grad(lambda x: f(x, 64)), X, max_seconds=60)
    np.testing.assert_allclose(many(X), sa.grad(lambda x: f(x, 64))(X), rtol=1e-10)
