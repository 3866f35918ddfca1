"""Every word over {F, R} up to length 5, on ten functions: one directional derivative, checked at 50 digits.

Each function is written twice, for NumPy and for SymPy. The reference differentiates f(x + t v) in t with SymPy, at the
same binary numbers, and evaluates it to 50 digits, so it shares neither code nor rounding with the modes under test.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

import symad as sa
from tests.support import mixes

X, T = sp.symbols("x:3", real=True), sp.Symbol("t")
POINT, DIRECTION = np.array([0.3, -0.7, 1.1]), np.array([0.5, -1.0, 0.25])
SQUARES = sum(x**2 for x in X)

# name: (for NumPy, for SymPy, point, direction)
FUNCTIONS = {
    "sin exp": (lambda x: np.sin(np.exp(x)), sp.sin(sp.exp(X[0])), 0.7, 1.0),
    "a quotient": (lambda x: np.log(1 + x * x) / (2 + np.cos(x)), sp.log(1 + X[0] ** 2) / (2 + sp.cos(X[0])), 0.4, 1.0),
    "a real power": (lambda x: (1 + x) ** 2.5 * np.exp(-x), (1 + X[0]) ** sp.Rational(5, 2) * sp.exp(-X[0]), 0.3, 1.0),
    "sines of sines": (lambda x: np.sin(np.sin(np.sin(x))), sp.sin(sp.sin(sp.sin(X[0]))), 1.0, 1.0),
    "arctan and tanh": (lambda x: np.arctan(x) * np.tanh(2 * x), sp.atan(X[0]) * sp.tanh(2 * X[0]), 0.35, -2.0),
    "x^x": (lambda x: x**x, X[0] ** X[0], 1.3, 0.5),
    "an inverse norm": (lambda x: 1 / np.linalg.norm(x), 1 / sp.sqrt(SQUARES), POINT, DIRECTION),
    "a log of a sum": (lambda x: np.log(np.sum(np.exp(x))), sp.log(sum(map(sp.exp, X))), POINT, DIRECTION),
    "a product": (
        lambda x: np.prod(np.sin(x)) * np.exp(x @ x), sp.prod(map(sp.sin, X)) * sp.exp(SQUARES), POINT, DIRECTION),
    "a chain": (
        lambda x: np.sum(np.sqrt(1 + (x[1:] - x[:-1] ** 2) ** 2)),
        sum(sp.sqrt(1 + (b - a**2) ** 2) for a, b in itertools.pairwise(X)), POINT, DIRECTION),
}  # fmt: skip
MAX_ORDER = 5
COMPILED = ("F", "R", "FR", "RF", "RFR", "FRFR", "FFFFF", "RRRRR", "RFRFR", "FRRFR")
ONCE = {
    "F": lambda f, v: lambda x: sa.jvp(f, (x,), (v,))[1],
    "R": lambda f, v: lambda x: np.sum(sa.grad(f)(x) * v),
}


def along(word, f, directions):
    """Return the derivative along one direction after the other; the last letter and direction come first."""
    for mode, v in zip(reversed(word), reversed(directions), strict=True):
        f = ONCE[mode](f, v)
    return f


def at(point):
    """Return the place of a point, `{x: number}`, in SymPy's exact numbers."""
    return {x: sp.Rational(float(a)) for x, a in zip(X, np.atleast_1d(point), strict=False)}


def moved(expression, place, direction):
    """Return f(place + t direction)."""
    steps = zip(place.items(), np.atleast_1d(direction), strict=True)
    return expression.subs({x: a + T * sp.Rational(float(b)) for (x, a), b in steps}, simultaneous=True)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_every_word_gives_the_same_directional_derivative(name):
    function, expression, point, direction = FUNCTIONS[name]
    reference = moved(expression, at(point), direction)
    for order in range(1, MAX_ORDER + 1):
        reference = sp.diff(reference, T)
        right = float(reference.subs(T, 0).evalf(50))
        for word in mixes.words(order):
            g = along(word, function, [direction] * order)
            assert g(point) == pytest.approx(right, rel=1e-10), word
            if word in COMPILED:
                assert sa.compile(g, point)(point) == pytest.approx(right, rel=1e-10), f"{word} compiled"


@pytest.mark.parametrize("name", ["an inverse norm", "a product"])
def test_five_different_directions_in_every_word(name):
    function, expression, point, _ = FUNCTIONS[name]
    directions = list(np.random.default_rng(5).uniform(-1, 1, (MAX_ORDER, 3)))
    for v in directions:
        expression = sp.diff(moved(expression, dict(zip(X, X, strict=True)), v), T).subs(T, 0)
    right = float(expression.subs(at(point)).evalf(50))
    for word in mixes.words(MAX_ORDER):
        assert along(word, function, directions)(point) == pytest.approx(right, rel=1e-10), word
