"""Functions that mix traced values and SymPy: the same code with NumPy is the oracle, as are SymPy's own numbers."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.errors import EscapedValueError, TraceError
from symad.tracing.calling.scope import open_scope
from symad.tracing.values.sympy_symbols import TracedSymbol

A, B = sp.symbols("a b", real=True)
SQUARE = sp.Matrix([[1, 2], [3, 4]])
IN_MATH = sp.lambdify([A, B], A**2 * sp.sin(B), "math")


def rotated(x: Any) -> Any:
    return (sp.Matrix([[sp.cos(x[0]), -sp.sin(x[0])], [sp.sin(x[0]), sp.cos(x[0])]]) * sp.Matrix([x[1], 2]))[0]


def lambdified(x: Any) -> Any:
    return sp.lambdify([A, B], A**2 * sp.sin(B) + sp.Max(A, B) + sp.Piecewise((A, A > 1), (B, True)))(x[0], x[1])


MIXED = {
    "a function": (lambda x: sp.sin(x[0]) * x[1], lambda x: np.sin(x[0]) * x[1]),
    "an expression": (lambda x: sp.exp(-(x[0] ** 2)), lambda x: np.exp(-(x[0] ** 2))),
    "max and min": (
        lambda x: sp.Max(x[0], 0) * sp.Min(x[1], x[0]),
        lambda x: np.maximum(x[0], 0) * np.minimum(x[1], x[0]),
    ),
    "constants": (
        lambda x: sp.sqrt(x[0]) + sp.pi * x[1] - sp.E / x[0] + sp.Rational(1, 3) ** x[1],
        lambda x: np.sqrt(x[0]) + np.pi * x[1] - np.e / x[0] + (1 / 3) ** x[1],
    ),
    "subs": (lambda x: (A**2 * sp.sin(B)).subs({A: x[0], B: x[1]}), lambda x: x[0] ** 2 * np.sin(x[1])),
    "xreplace": (lambda x: (A**2 * sp.sin(B)).xreplace({A: x[0], B: x[1]}), lambda x: x[0] ** 2 * np.sin(x[1])),
    "Lambda": (lambda x: sp.Lambda((A, B), A * sp.cos(B))(x[0], x[1]), lambda x: x[0] * np.cos(x[1])),
    "lambdify, numpy": (
        lambdified,
        lambda x: x[0] ** 2 * np.sin(x[1]) + np.maximum(x[0], x[1]) + np.where(x[0] > 1, x[0], x[1]),
    ),
    "lambdify, math": (lambda x: IN_MATH(x[0], x[1]), lambda x: x[0] ** 2 * np.sin(x[1])),
    "lambdify, sympy": (
        lambda x: sp.lambdify([A, B], A**2 * sp.sin(B), "sympy")(x[0], x[1]),
        lambda x: x[0] ** 2 * np.sin(x[1]),
    ),
    "Piecewise, traced condition": (
        lambda x: sp.Piecewise((x[0] ** 2, x[0] > 1), (x[1], True)),
        lambda x: np.where(x[0] > 1, x[0] ** 2, x[1]),
    ),
    "Piecewise, SymPy's condition": (
        lambda x: sp.Piecewise((x[0] ** 2, sp.Gt(x[0], 1)), (x[1], True)),
        lambda x: np.where(x[0] > 1, x[0] ** 2, x[1]),
    ),
    "And of both": (
        lambda x: sp.Piecewise((x[0] ** 2, sp.And(x[0] > 1, sp.Gt(x[1], 0), A**2 > -1)), (x[1], True)),
        lambda x: np.where(np.logical_and(x[0] > 1, x[1] > 0), x[0] ** 2, x[1]),
    ),
    "a matrix of functions": (rotated, lambda x: np.cos(x[0]) * x[1] - 2 * np.sin(x[0])),
    "a determinant": (lambda x: sp.Matrix([[x[0], 1], [x[1], 2]]).det(), lambda x: 2 * x[0] - x[1]),
    "scalar times matrix": (lambda x: (x[0] * SQUARE * sp.Matrix([1, x[1]]))[1], lambda x: x[0] * (3 + 4 * x[1])),
    "matrix times scalar": (
        lambda x: (SQUARE * x[0] / x[1] * sp.Matrix([1, x[1]]))[1],
        lambda x: x[0] / x[1] * (3 + 4 * x[1]),
    ),
    "a matrix of an array": (
        lambda x: (sp.Matrix(x).T * SQUARE * sp.Matrix(x))[0],
        lambda x: x @ np.array([[1.0, 2.0], [3.0, 4.0]]) @ x,
    ),
    "Add of a list": (lambda x: sp.Add(*x, 1) + sum(sp.Array([x[0], x[1]])), lambda x: 2 * (x[0] + x[1]) + 1),
    "a polynomial": (lambda x: sp.legendre(3, x[0]), lambda x: (5 * x[0] ** 3 - 3 * x[0]) / 2),
    "kinks": (lambda x: sp.Abs(x[0]) * sp.sign(x[1]), lambda x: abs(x[0]) * np.sign(x[1])),
    "Poly": (lambda x: sp.Poly(A**2 + 1, A).eval(x[0]) + x[1], lambda x: x[0] ** 2 + 1 + x[1]),
    "a returned Poly": (lambda x: sp.Poly(x[0] * A, A).as_expr().subs(A, x[1]), lambda x: x[0] * x[1]),
    "comparisons": (
        lambda x: sp.Piecewise((x[1], sp.Integer(1) < x[0]), (x[0] ** 2, sp.Rational(1, 2) >= x[0])),
        lambda x: np.where(x[0] > 1, x[1], x[0] ** 2),
    ),
    "SymPy's derivative": (
        lambda x: sp.diff(A**3 * B, A).subs({A: x[0], B: x[1]}),
        lambda x: 3 * x[0] ** 2 * x[1],
    ),
    "SymPy's derivative of a traced value": (
        lambda x: sp.diff(sp.sin(A * x[0]), A).subs(A, x[1]),
        lambda x: np.cos(x[0] * x[1]) * x[0],
    ),
    "SymPy's integral": (
        lambda x: sp.integrate(A * x[0], (A, 0, x[1])),
        lambda x: x[0] * x[1] ** 2 / 2,
    ),
    "subs in a traced value": (
        lambda x: sp.sin(A * x[0] + B).subs({A: x[1], B: 2}),
        lambda x: np.sin(x[1] * x[0] + 2),
    ),
    "Sum over a traced value": (
        lambda x: sp.Sum(A * x[0], (A, 1, 3)).doit() * x[1],
        lambda x: 6 * x[0] * x[1],
    ),
    "a derivative inside": (
        lambda x: sp.sin(sa.grad(lambda y: sp.exp(y) * x[0] * y)(x[1])),
        lambda x: np.sin(np.exp(x[1]) * x[0] * (1 + x[1])),
    ),
    "captured from around": (
        lambda x: sa.derivative(lambda y: sp.sin(x[0] + 0 * y) * y * x[1])(x[0]) * sp.cos(x[1]),
        lambda x: np.sin(x[0]) * x[1] * np.cos(x[1]),
    ),
}
POINTS = [np.array([1.3, 0.7]), np.array([0.4, 1.1])]


@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize(("function", "plain"), MIXED.values(), ids=MIXED)
@pytest.mark.thinned
def test_mixed_code_has_the_derivatives_of_plain_code(function, plain, point):
    for transform in (lambda f: f, sa.grad, sa.jacfwd, sa.hessian):
        wanted = transform(plain)(point)
        np.testing.assert_allclose(np.array(transform(function)(point), dtype=float), wanted, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(sa.compile(transform(function), point)(point), wanted, rtol=1e-12, atol=1e-14)


def test_perturbations_are_not_confused():
    assert sa.derivative(lambda x: x * sa.derivative(lambda y: sp.Add(x, y))(1.0))(1.0) == 1.0
    assert sa.derivative(lambda x: sa.derivative(lambda y: sp.Mul(x, y))(x))(3.0) == 1.0


def test_operators_stay_traced_and_functions_give_expressions(symbol, number):
    for value in (
        sp.pi * symbol,
        symbol + A,
        sp.Integer(2) ** symbol,
        sp.Gt(A, 2) & (symbol > 0),
        A < symbol,  # noqa: SIM300
        A == symbol,  # noqa: SIM300
        sp.sin(symbol) + symbol,
    ):
        assert type(value) is type(symbol)
    assert isinstance(sp.sin(symbol), sp.sin)
    assert sp.sin(symbol) == sp.sin(symbol)
    assert sp.Max(symbol, symbol) - sp.Max(symbol) == 0
    assert sp.sqrt(sp.Pow(symbol, 2)) == sp.Abs(symbol)  # it is real
    assert sp.Not(symbol > 0) == (sp.Symbol("x", real=True) <= 0)
    assert sp.Not(number > 0).args[0].is_real is None  # a truth value is not


def test_a_symbol_in_gives_a_symbol_out():
    x = sp.Symbol("x", real=True)
    assert sa.derivative(lambda t: sp.sin(t) * A)(x) == A * sp.cos(x)
    assert sa.trace(lambda t: sp.exp(t) + t, 1.0).expr() == sp.exp(x.func("t", real=True)) + x.func("t", real=True)


def test_an_array_is_refused_by_sympy_functions(vector):
    with pytest.raises(TraceError, match=r"a traced array was given to a SymPy function.*one element at a time"):
        sp.sin(vector)


def test_an_array_times_a_sympy_matrix_is_the_matrix_product():
    """As for ndarrays: NumPy leaves * to SymPy, and elementwise products would be silently other numbers."""
    x = np.arange(4.0).reshape(2, 2)

    def entry(product: Any) -> Any:
        return lambda y: product(y)[1, 0]

    for product in (lambda y: y * SQUARE, lambda y: SQUARE * y, lambda y: SQUARE @ y, lambda y: SQUARE + y):
        found = sa.jvp(entry(product), (x,), (np.ones((2, 2)),))[0]
        assert found == float(product(x)[1, 0])
    with pytest.raises(TypeError, match="unsupported operand"):
        sa.grad(lambda y: SQUARE + y)(1.0)  # as with a number


def test_symbols_of_a_closed_level_are_refused():
    kept = []

    def f(x: Any) -> Any:
        kept.append(sp.sin(x))
        return x * x

    sa.grad(f)(1.0)
    with pytest.raises(EscapedValueError, match=r"test_sympy_mixed.py:\d+"):
        sa.grad(lambda x: x * kept[0])(2.0)
    with pytest.raises(EscapedValueError):
        sa.grad(lambda x: sp.Add(x, kept[0]))(2.0)
    with pytest.raises(EscapedValueError):
        sa.grad(lambda x: kept[0])(2.0)


def test_symbols_of_another_trace_are_refused():
    with pytest.raises(TraceError, match="two independent traces"):
        sa.grad(lambda x: sa.trace(lambda y: y * sp.sin(x), 1.0).count_ops() * x)(1.0)


def test_a_value_of_an_inner_level_binds_the_array_it_is_stored_in():
    def outer(x: Any) -> Any:
        kept = np.zeros_like(x)

        def inner(y: Any) -> Any:
            kept[0] = sp.sin(y)
            return y * y

        return sa.derivative(inner)(x[0]) * kept[0]

    with pytest.raises(EscapedValueError):
        sa.grad(outer)(np.array([1.0, 2.0]))


def test_sympys_caches_do_not_keep_graphs():
    with open_scope() as scope:
        from_symad = sa.tracing.values.scalar.Scalar(scope.graph.alias(scope.graph.number(0.5)), scope)
        expression = sp.exp(sp.sin(from_symad) ** 2) + sp.Max(from_symad, 0)
        assert expression.atoms(TracedSymbol)
        known = weakref.ref(scope)
    del scope, from_symad
    gc.collect()
    assert known() is None
    (symbol,) = expression.atoms(TracedSymbol)
    with open_scope() as scope, pytest.raises(EscapedValueError):
        symbol.node_in(scope)


def test_many_traces_with_the_same_functions_do_not_disturb_each_other():
    """SymPy's caches compare their keys by ==, which on traced values is a new node or an error."""
    for k in range(50):
        assert sa.grad(lambda x: sp.sin(x) + sp.Add(x, 1) * sp.Pow(x, 2))(k / 7) == pytest.approx(
            np.cos(k / 7) + 3 * (k / 7) ** 2 + 2 * k / 7, rel=1e-14
        )


def test_code_made_anew_at_every_call_is_traced():
    assert sa.grad(lambda x: sp.lambdify(A, sp.sin(A), "math")(x))(1.0) == np.cos(1.0)


QUESTIONS = [
    lambda x: x if sp.sin(x) > 0.5 else 2 * x,
    lambda x: x * float(sp.sin(x)),
    lambda x: x * math.sin(sp.exp(x)),
]


@pytest.mark.parametrize("function", QUESTIONS)
def test_a_number_asked_of_an_expression_is_explained(function):
    with pytest.raises(TraceError, match=r"asked for a number or a truth value.*use the NumPy function") as caught:
        sa.grad(function)(1.0)
    assert str(caught.value).startswith(__file__)


def test_expressions_are_copied_and_not_pickled(number):
    expression = sp.exp(number) + 1
    assert copy.deepcopy(expression) == copy.copy(expression) == expression
    assert sa.grad(lambda x: copy.deepcopy(sp.exp(x)))(0.0) == 1.0
    with pytest.raises(TraceError, match="cannot be pickled"):
        pickle.dumps(expression)


NUMPY_WITH_EXPRESSIONS = {
    "sin": (lambda x: np.sin(sp.exp(x)), lambda x: np.sin(np.exp(x))),
    "array": (lambda x: np.sum(np.array([sp.exp(x), x, 1])), lambda x: np.exp(x) + x + 1),
    "stack": (lambda x: np.prod(np.stack([sp.exp(x), x])), lambda x: np.exp(x) * x),
    "where": (lambda x: np.where(x > 0, sp.exp(x), x), np.exp),
    "maximum": (lambda x: np.maximum(sp.exp(x), x), np.exp),
    "max": (lambda x: max(sp.exp(x), x), np.exp),
    "matrix": (
        lambda x: (sp.Matrix([[x, 1], [2, x + 3]]).inv() * sp.Matrix([1, x]))[0],
        lambda x: (x + 3 - x) / (x * (x + 3) - 2),
    ),
    "integrate": (lambda x: sp.integrate(sp.exp(-x * A), (A, 0, 1)), lambda x: (1 - np.exp(-x)) / x),
    "solve": (lambda x: sp.solve(A**2 - x, A)[1], np.sqrt),
}


@pytest.mark.parametrize(("function", "plain"), NUMPY_WITH_EXPRESSIONS.values(), ids=NUMPY_WITH_EXPRESSIONS)
def test_numpy_functions_of_expressions(function, plain):
    assert sa.grad(function)(1.3) == pytest.approx(sa.grad(plain)(1.3), rel=1e-12)
    assert sa.derivative(function, 2)(1.3) == pytest.approx(sa.derivative(plain, 2)(1.3), rel=1e-12)
