"""Functions that return containers of functions: each part is differentiated as a function-valued result is."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.errors import ArgumentError, TraceError

ONCE = [sa.derivative, sa.grad]
W = math.pi + 3


def pair(x: Any) -> Any:
    return lambda y: np.sin(x * y), lambda g: lambda z: g(x + z)


def central(f: Any, x: float, h: float = 1e-5) -> float:
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.parametrize("transform", ONCE)
def test_one_part_applied_to_the_other(transform: Any) -> None:
    first, second = transform(pair)(3.0)
    assert first(2.0) == pytest.approx(2 * math.cos(6), rel=1e-15)
    assert second(first)(math.pi) == pytest.approx(math.cos(3 * W) - 3 * W * math.sin(3 * W), rel=1e-14)
    assert second(np.exp)(1.0) == pytest.approx(math.exp(4), rel=1e-15)
    assert second(first)(math.pi) == pytest.approx(central(lambda x: pair(x)[1](first)(math.pi), 3.0), rel=1e-8)


class Parts(NamedTuple):
    value: Any
    at: Any


@pytest.mark.parametrize("transform", ONCE)
@pytest.mark.parametrize("made", [Parts, lambda value, at: {"value": value, "at": [at]}], ids=["named tuple", "dict"])
def test_numbers_beside_functions(transform: Any, made: Any) -> None:
    found = transform(lambda x: made(x**3, lambda y: x * x * y))(3.0)
    value, at = (found.value, found.at) if isinstance(found, Parts) else (found["value"], found["at"][0])
    assert (value, at(5.0)) == (27.0, 30.0)


def test_jvp_has_the_values_too() -> None:
    (first, number), (tangent, slope) = sa.jvp(lambda x, c: (lambda y: c * x * y, c * x), (3.0, 2.0), (1.0, 10.0))
    assert (first(5.0), number, tangent(5.0), slope) == (30.0, 6.0, 160.0, 32.0)


def test_inside_other_derivatives() -> None:
    outer = sa.derivative(lambda a: sa.derivative(lambda x: (lambda y: a * a * np.sin(x * y),))(3.0)[0](2.0))
    assert outer(0.5) == pytest.approx(2 * 0.5 * 2 * math.cos(6), rel=1e-15)
    (second,) = sa.derivative(lambda x: (lambda y: np.sin(x * y),), 2)(3.0)
    assert second(2.0) == pytest.approx(-4 * math.sin(6), rel=1e-15)
    assert sa.derivative(second)(2.0) == pytest.approx(-4 * math.sin(6) - 12 * math.cos(6), rel=1e-14)


def test_on_symbols() -> None:
    x = sp.Symbol("x")
    (found,) = sa.derivative(lambda u: (lambda y: u**2 * y,))(x)
    assert found(3) == 6 * x
    assert sa.derivative(lambda u: sp.Symbol("a"))(2.0) == 0
    assert sa.derivative(lambda u: [sp.Symbol("a"), u])(2.0) == [0, 1.0]


@pytest.mark.parametrize(
    "transform",
    [sa.jacobian, sa.hessian, lambda f: lambda x: sa.vjp(f, x), sa.value_and_grad],
    ids=["jacobian", "hessian", "vjp", "value_and_grad"],
)
def test_other_transforms_say_which_do_it(transform: Any) -> None:
    with pytest.raises(ArgumentError, match="pair returned a function: only derivative, grad and jvp"):
        transform(pair)(3.0)


def test_a_kernel_returns_numbers() -> None:
    with pytest.raises(TraceError, match=r"result of pair\[0\] is of type function: a function is no number"):
        sa.compile(pair, 3.0)
