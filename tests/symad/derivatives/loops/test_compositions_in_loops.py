"""Compositions whose inner function another loop computes have the derivatives of straight lines, where it has none."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from codegen.loops.find.compositions import Outer, compositions
from symad.tracing.trace import to_program, trace

N = 4100  # an array that is loops from the start
W = np.linspace(1.0, 2.0, N)
X = np.linspace(0.0, 1.0, N)  # a root at 0, and exp that overflows


def steep(x):
    return 800.0 * (1.0 - x)


def sigmoid(z):
    return np.exp(-np.logaddexp(0.0, -z))


CASES = {
    "root": (lambda x: np.sum(np.sqrt(x)[::-1] ** 2 * W), W[::-1]),
    "root times root": (lambda x: (lambda n: np.sum(n * n * W))(np.sqrt(x)[::-1]), W[::-1]),
    "root to the fourth": (lambda x: np.sum(np.sqrt(x)[::-1] ** 4 * W), 2 * X * W[::-1]),
    "log of 1 + exp": (lambda x: np.sum(np.log(1 + np.exp(steep(x))[::-1]) * W), -800 * sigmoid(steep(X)) * W[::-1]),
    "log read backward": (
        lambda x: np.sum(np.log((1 + np.exp(steep(x)))[::-1]) * W),
        -800 * sigmoid(steep(X)) * W[::-1],
    ),
    "log1p": (lambda x: np.sum(np.log1p(np.exp(steep(x))[::-1]) * W), -800 * sigmoid(steep(X)) * W[::-1]),
    "inverse": (
        lambda x: np.sum(1 / (1 + np.exp(steep(x))[::-1]) * W),
        800 * sigmoid(steep(X)) * sigmoid(-steep(X)) * W[::-1],
    ),
    "log of cosh": (lambda x: np.sum(np.log(np.cosh(steep(x))[::-1]) * W), -800 * np.tanh(steep(X)) * W[::-1]),
    "two loops behind": (
        lambda x: (lambda n: np.sum(n[::-1] ** 2 * W) + np.sum(n**2 * W))(np.sqrt(x)),
        W + W[::-1],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_inner_functions_that_are_read_in_another_order(name: str) -> None:
    f, expected = CASES[name]
    kernel = sa.compile(sa.grad(f), X, roll="always")
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-9, atol=1e-300)


def test_second_derivatives_of_absolute_values_squared() -> None:
    def product(x, v):
        return sa.hvp(lambda x: np.sum(np.abs(x)[::-1] ** 2 * W), (x,), (v,))

    kernel = sa.compile(product, X, W, roll="always")
    np.testing.assert_allclose(kernel(np.zeros(N), W), 2 * W * W[::-1])


def test_values_are_the_same_bits() -> None:
    def f(x):
        n, e = np.sqrt(x), np.exp(x)
        return n[::-1] ** 2 + np.log(1 + e[::-1]) + n + e

    np.testing.assert_array_equal(sa.compile(f, X)(X)[:50], sa.compile(f, X, roll="never")(X)[:50])


def test_roots_of_unlike_neighbours() -> None:
    """Some roots that a loop stores are squared in straight lines, others are not."""

    def f(x):
        n = [np.sqrt(np.sin(a) ** 2 + a * a) for a in x]
        total = sum(n[k] * (k + 1) for k in range(1, len(n)))
        return total * (n[0] * n[0]) + n[0] ** 4

    x = np.linspace(0.0, 1.0, 60)
    kernel, straight = (sa.compile(sa.grad(f), x, roll=roll) for roll in ("always", "never"))
    assert np.isfinite(straight(x)).all()
    np.testing.assert_allclose(kernel(x), straight(x), rtol=1e-12)


def test_a_root_of_straight_lines_is_taken_again_in_a_body() -> None:
    def f(x):
        n = np.sqrt(x[0])
        return sa.sum_over(lambda a: np.sin(a) * (n * n), x[1:])

    x = np.linspace(0.0, 1.0, 200)
    kernel = sa.compile(sa.grad(f), x, roll="always")
    np.testing.assert_allclose(kernel(x), np.concatenate([[np.sin(x[1:]).sum()], 0 * x[1:]]), rtol=1e-12)


def test_what_is_a_composition() -> None:
    program = to_program(trace(lambda x: np.log(1 + np.exp(x)) + x**-4 + x * x + 1 / x + x**3 + x * 2, 0.5))
    found = [outer for _, outer in compositions(program, range(len(program)))]
    assert sorted(outer.name for outer in found) == ["EVEN_POWER", "EVEN_POWER", "INVERSE", "LOGARITHM", "OF_EXP"]
    assert Outer.OF_EXP in found
