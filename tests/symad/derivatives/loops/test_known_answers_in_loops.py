"""KNOWN_ANSWERS A, B, D, E and F inside loops: what the loops add up to is the known answer.

Weighted copies with weights of sum 1, each form of loop, orders 1 to 3 under all mode mixes in turns.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.special as sps
import sympy as sp

import symad as sa
from tests.support import mixes
from tests.symad.derivatives.test_confusion import CLOSED, NESTED, X, derivative_at, short
from tests.symad.derivatives.test_known_answers import FAMILIES, SPECIAL, rosenbrock2, six_sines, tower
from tests.symad.derivatives.test_nan_policy import SCALAR

WEIGHTS = np.array([16, 4, 4, 2, 2, 2, 1, 1]) / 32
SCALES = 2.0 ** np.arange(40)  # with which a number is multiplied and divided without rounding


def copies(f):
    """40 copies in straight lines, which are told apart by scales."""
    return lambda x: sum(f((x * scale) * (1 / scale)) * 0.025 for scale in SCALES)


def nest(f):
    """A chain around a sum."""
    return lambda x: sa.fori_loop(0, 4, lambda _, c: c + sa.sum_over(lambda w: w * f(x), WEIGHTS) / 4, 0.0)


FORMS = {
    "sum": lambda f: lambda x: sa.sum_over(lambda w, a: w * f(a), WEIGHTS, x * np.ones(8)),
    "sum, shared": lambda f: lambda x: sa.sum_over(lambda w: w * f(x), WEIGHTS),
    "map": lambda f: lambda x: WEIGHTS @ sa.vmap(f)(x * np.ones(8)),
    "chain": lambda f: lambda x: sa.scan(lambda c, w: (c + w * f(x), None), 0.0, WEIGHTS)[0],
    "stack": lambda f: lambda x: WEIGHTS @ sa.scan(lambda c, _: (c, f(c)), x, None, length=8)[1],
    "nest": nest,
    "copies": copies,
}
# name: (function, point, {order: value})
CASES = {
    **FAMILIES,
    **{name: (f, point, {order: value}) for name, (f, point, order, value) in SPECIAL.items()},
    **{name: (f, point, dict(enumerate(values))) for name, (f, point, values) in SCALAR.items()},
}


PAIRS = [(name, form) for name, form in product(CASES, FORMS) if form != "copies" or not name.startswith("if:")]


@pytest.mark.parametrize(("name", "form"), PAIRS)
@pytest.mark.thinned
def test_known_derivatives(name, form):
    f, point, values = CASES[name]
    turn = list(CASES).index(name) + list(FORMS).index(form)
    orders = [order for order in values if 0 < order < 4] or list(values)
    order = orders[turn % len(orders)]
    words = mixes.words(order)
    kernel = sa.compile(mixes.nested(words[turn % len(words)], FORMS[form](f)), 1.0, roll="always")
    assert kernel.stats.strategy == "rolled"
    assert kernel(point) == pytest.approx(values[order], rel=1e-12, abs=1e-13), words[turn % len(words)]


def test_40_conditions_in_calls_are_merged_one_by_one():
    f, point, expected = CASES["if: sqrt not taken"]
    for order in range(2):
        derivative = sa.derivative(copies(f), order)
        kernel = sa.compile(derivative, point, roll="always")
        assert kernel(point) == expected[order]
        for other in (0.7, 2.5):
            assert kernel(other) == pytest.approx(derivative(other), rel=1e-13)


@pytest.mark.parametrize("form", ["sum", "sum, shared", "map", "chain", "stack", "nest"])
@pytest.mark.parametrize("case", NESTED)
@pytest.mark.thinned
def test_nested_derivatives(case, form):
    """A derivative inside of the body, one or two around the loop."""
    body, point, _, _ = NESTED[case]
    turn = list(NESTED).index(case) + list(FORMS).index(form)
    inner, word = "FR"[turn % 2], ["F", "R", *mixes.words(2)][turn % 6]
    f = FORMS[form](lambda x: body(lambda g, a: derivative_at(inner, g, a), x))
    expected = float(sp.diff(CLOSED[short(case)], X, len(word)).subs(X, point))
    kernel = sa.compile(mixes.nested(word, f), 1.0)
    assert kernel(point) == pytest.approx(expected, rel=1e-14), word


@pytest.mark.parametrize("word", mixes.words(3))
def test_a_loop_in_a_derivative_in_a_loop(word):
    """The derivative of sin(x y) in y at y = x is x cos(x**2); there are loops around it, and inside."""

    def inner(x):
        return sa.derivative(lambda y: sa.sum_over(lambda v: v * np.sin(x * y), WEIGHTS))(x)

    kernel = sa.compile(mixes.nested(word, lambda x: sa.sum_over(lambda w: w * inner(x), WEIGHTS)), 1.0, roll="always")
    assert kernel(0.7) == pytest.approx(float(sp.diff(X * sp.cos(X**2), X, 3).subs(X, sp.Rational(7, 10))), rel=1e-13)


CHAINS = {
    "six sines": (lambda x: sa.fori_loop(0, 6, lambda _, y: np.sin(y), x), six_sines, 1.0),
    "tower": (lambda x: sa.scan(lambda y, _: (np.sin(y) * y, None), x, None, length=16)[0], tower, 0.9),
    "until": (lambda x: sa.while_loop(lambda y: y > 0.8, np.sin, x, max_steps=20), lambda x: six_sines(x, 2), 1.0),
}


@pytest.mark.parametrize("word", [word for order in (1, 2, 3) for word in mixes.words(order)])
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.thinned
def test_compositions_are_chains(name, word):
    loop, straight, point = CHAINS[name]
    expected = mixes.nested(word, straight)(point)
    assert sa.compile(mixes.nested(word, loop), 0.5, roll="always")(point) == pytest.approx(expected, rel=1e-12)


def test_six_sines_as_a_chain_have_their_first_derivative():
    assert sa.compile(sa.grad(CHAINS["six sines"][0]), 0.5, roll="always")(1.0) == pytest.approx(
        0.13877489681259086, rel=1e-15
    )


@pytest.mark.parametrize("word", ["F", "R", "FF", "FR", "RF", "RR"])
@pytest.mark.parametrize("checkpoints", ["all", "sqrt", "none"])
@pytest.mark.thinned
def test_gradient_steps(word, checkpoints):
    """E: three steps of gradient descent on (a/2) (t - c)**2, and L = t**2 / 2; d2L/dh2 = 70.2135 to its digits."""
    a, c, start = 3.0, 1.0, 2.0

    def loss(h):
        end = sa.fori_loop(0, 3, lambda _, t: t - h * sa.grad(lambda u: a / 2 * (u - c) ** 2)(t), start)
        return end**2 / 2

    closed = (c + (1 - a * X) ** 3 * (start - c)) ** 2 / 2
    expected = float(sp.diff(closed, X, len(word)).subs(X, sp.Rational(1, 10)))
    assert expected == pytest.approx({1: -5.92263, 2: 70.2135}[len(word)], rel=1e-6)
    kernel = sa.compile(mixes.nested(word, loss), 0.5, roll="always", checkpoints=checkpoints)
    assert kernel(0.1) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("word", mixes.words(3))
@pytest.mark.thinned
def test_newton_steps(word):
    """E: y**3 + y = x at (2, 1): the derivatives are 1/4, -3/32, 21/256."""

    def solved(x):
        return sa.fori_loop(0, 8, lambda _, y: y - (y**3 + y - x) / (3 * y**2 + 1), 0.5 * x)

    expected = [1 / 4, -3 / 32, 21 / 256]
    for order in (1, 2, 3):
        found = sa.compile(mixes.nested(word[:order], solved), 1.0, roll="always")(2.0)
        assert found == pytest.approx(expected[order - 1], rel=1e-13)


HESSIANS = {
    "rosenbrock": (lambda x: sa.sum_over(lambda a, b: rosenbrock2([a, b]), x[:-1], x[1:]), np.ones(4),
                   np.diag([802.0, 1002, 1002, 200]) - 400 * (np.eye(4, k=1) + np.eye(4, k=-1))),
    "arwhead": (lambda x: sa.sum_over(lambda a: (a**2 + x[-1] ** 2) ** 2 - 4 * a + 3, x[:-1]), np.ones(6),
                np.diag([16.0] * 5 + [80.0]) + 8 * (np.arange(6) == 5) * (np.arange(6) < 5)[:, None]
                + 8 * (np.arange(6) < 5) * (np.arange(6) == 5)[:, None]),
    "Speelpenning": (lambda x: sa.scan(lambda c, a: (c * a, None), 1.0, x)[0], np.array([0.0, 2, 0, 3, 4]),
                     24.0 * np.array([[0, 0, 1, 0, 0], [0] * 5, [1, 0, 0, 0, 0], [0] * 5, [0] * 5])),
    "norm": (lambda x: np.sqrt(sa.sum_over(lambda a: a * a, x)), np.array([3.0, 4.0]),
             np.array([[16.0, -12.0], [-12.0, 9.0]]) / 125),
    "kernel": (lambda x: np.exp(-sa.sum_over(lambda a, b: np.abs((a - b) / 0.7) ** 2, x[:2], x[2:])),
               np.array([0.3, -0.2, 0.3, -0.2]),
               2 / 0.7**2 * np.block([[-np.eye(2), np.eye(2)], [np.eye(2), -np.eye(2)]])),
    "sum of exp": (lambda x: np.log(sa.sum_over(np.exp, x)), np.log([1.0, 2.0, 5.0]),
                   np.diag([1 / 8, 1 / 4, 5 / 8]) - np.outer([1 / 8, 1 / 4, 5 / 8], [1 / 8, 1 / 4, 5 / 8])),
}  # fmt: skip


IN_STRAIGHT_LINES = ("Speelpenning",)  # roll="always" is refused: matrices of a chain


@pytest.mark.parametrize("name", HESSIANS)
def test_known_hessians(name):
    f, point, expected = HESSIANS[name]
    for transform in (sa.hessian(f), sa.jacobian(sa.grad(f)), sa.hessian(f, sparse="full")):
        found = sa.compile(transform, point, roll="auto" if name in IN_STRAIGHT_LINES else "always")
        matrix = found(point) if found.sparsity is None else found.scipy(point).toarray()
        np.testing.assert_allclose(matrix, expected, rtol=1e-13, atol=1e-14)


def test_the_order_of_a_bessel_function_has_no_derivative():
    with pytest.raises(sa.errors.RuleError, match="besselj has no derivative in its operand 0"):
        sa.compile(sa.grad(FORMS["sum"](lambda nu: sps.jv(nu, 1.0))), 0.5)
