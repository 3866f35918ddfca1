"""Forms of SymPy: sums over an index against SymPy's own doit, and what is refused, without symad."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from codegen import LoweringError, UnboundSymbolError, lambdify, program_from_sympy
from codegen.expressions.sympy_forms import TERMS, array_of, can_be_input, read_form

X, Y = sp.symbols("x y", real=True)
I, J, N = sp.symbols("i j n", integer=True)
T = sp.Symbol("t")
F = sp.Function("f")

SUMS = [
    sp.Sum(X**I, (I, 0, 6)),
    sp.Sum(sp.sin(I * X) * sp.cos(I), (I, -2, 3)),
    sp.Sum(I * J * X, (I, J, 4), (J, 1, 4)),
    sp.Sum(X + I, (I, 7, 3)),
    sp.Sum(X + I, (I, 4, 3)),
    sp.Product(X + I, (I, 7, 3)),
    sp.Product(sp.Sum(X**J, (J, 0, I)), (I, 0, 3)),
    sp.Sum(sp.Sum(I * X, (I, 1, 2)) * I, (I, 1, 3)),
    sp.Sum(sp.KroneckerDelta(I, 2) * X + sp.binomial(4, I), (I, 0, 4)),
    sp.Sum(I * X ** (I - 1), (I, 0, 3)),
    sp.Sum(sp.Subs(sp.Symbol("u") * I, sp.Symbol("u"), X).doit(), (I, 1, 3)),
]


@pytest.mark.parametrize("expression", SUMS, ids=str)
@pytest.mark.parametrize("point", [0.7, -1.3])
def test_sums_and_products(expression: Any, point: float) -> None:
    assert lambdify(X, expression)(point) == pytest.approx(float(expression.doit().subs(X, point)), rel=1e-13)


def test_a_term_that_vanishes_leaves_no_division_by_zero() -> None:
    """The first term of the derivative of a polynomial is 0, not 0 * x**(-1)."""
    assert lambdify(X, sp.Sum(I * X ** (I - 1), (I, 0, 3)))(0.0) == 1.0


def test_a_sum_of_shared_terms_is_linear() -> None:
    tower: Any = X
    for _ in range(10):  # SymPy itself needs exponential time for more
        tower = sp.Mul(sp.sin(tower), tower, evaluate=False)
    assert len(program_from_sympy([X], [sp.Sum(tower * I, (I, 1, 50))])) < 21 + 4 * 50


REFUSED = [
    (sp.Sum(X, (I, 1, N)), "bound n is symbolic"),
    (sp.Product(X, (I, 1, sp.oo)), "bound oo is infinite"),
    (sp.Sum(X, (I, 1, TERMS + 1)), f"more than {TERMS} terms"),
    (sp.Sum(X, (I, 1, sp.pi)), "no whole number apart"),
    (sp.Integral(X * Y, (Y, 0, 1)), "unevaluated Integral"),
    (sp.Derivative(X**2, X), "unevaluated Derivative"),
    (X + sp.O(X), "unevaluated Order"),
    (X * sp.I, "complex number I"),
    (sp.MatrixSymbol("A", 2, 2)[0, 0], r"A\[0, 0\]"),
]


@pytest.mark.parametrize(("expression", "text"), REFUSED, ids=str)
def test_refused(expression: Any, text: str) -> None:
    with pytest.raises((LoweringError, UnboundSymbolError), match=text):
        program_from_sympy([X], [expression])


def test_logarithms_to_a_base() -> None:
    expression = sp.log(X, 3, evaluate=False)
    assert len(expression.args) == 2
    assert lambdify([X], expression)(9.0) == pytest.approx(2.0, rel=1e-15)
    assert lambdify([X, Y], sp.log(X + 1, Y, evaluate=False))(7.0, 2.0) == pytest.approx(3.0, rel=1e-15)


def test_inputs() -> None:
    base, matrix = sp.IndexedBase("b"), sp.MatrixSymbol("A", 2, 2)
    for yes in (X, F(T), F(T).diff(T, 2), F(X, Y).diff(X, Y), base[0], base[I, 2], matrix[0, 1], sp.Dummy()):
        assert can_be_input(yes)
    for no in (
        X + 1,
        sp.pi,
        sp.Integer(2),
        base,
        matrix,
        F,
        sp.Derivative(X**2, X),
        sp.Derivative(F(T) ** 2, T),
        "x",
        1.0,
    ):
        assert not can_be_input(no)


def test_arrays_need_a_size() -> None:
    assert array_of(sp.IndexedBase("b", shape=(2, 1)))[0] == (2, 1)  # type: ignore[index]
    assert array_of(X) is None
    for unknown in (sp.IndexedBase("b"), sp.MatrixSymbol("A", N, 2), sp.IndexedBase("b", shape=(N,))):
        with pytest.raises(LoweringError, match="size is not known"):
            array_of(unknown)


def test_ordinary_objects_are_read_as_they_are() -> None:
    for expression in (X, X + Y, sp.Integer(2), sp.true, X > 0, sp.Piecewise((X, X > 0), (Y, True)), F(T), sp.pi):
        assert read_form(expression) is None
