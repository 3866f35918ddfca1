"""Derivatives of formulas of matrices by differentials: results as books have them, shapes, conditions, refusals."""

from __future__ import annotations

import pytest
import sympy as sp

import symad as sa
from symad.classroom.matrix_calculus.differentials import Differentials
from symad.classroom.matrix_calculus.matrix_formulas import MatrixFormula, plain_text
from symad.display.mathematics import signs_of
from symad.errors import ArgumentError, InvariantError, RuleError, WorkbenchError

RESULTS = [
    ("x^T A x", "x", "(A + Aᵀ) x"),
    ("x^T A x, A = A^T", "x", "2 A x"),
    ("½x^T A x - b^T x", "x", "(A + Aᵀ) x/2 - b"),
    ("‖Ax - b‖²", "x", "2 Aᵀ (A x - b)"),
    ("‖Ax - b‖² + λ‖x‖²", "x", "2 λ x + 2 Aᵀ (A x - b)"),
    ("‖x‖", "x", "x/‖x‖"),
    ("sqrt(x^T A x)", "x", "(A + Aᵀ) x/(2·√(xᵀ A x))"),
    ("(x^T a)^2", "x", "2 (xᵀ a) a"),
    ("exp(x^T x)", "x", "2 e^(xᵀ x) x"),
    ("log(sum(exp(x)))", "x", "e^x/sum(e^x)"),
    ("-y^T log softmax(x)", "x", "(yᵀ 𝟏) softmax(x) - y"),
    ("-y^T log softmax(x), sum(y) = 1", "x", "softmax(x) - y"),
    ("-y^T log softmax(W x), sum(y) = 1", "W", "(softmax(W x) - y) xᵀ"),
    ("softmax(x)", "x", "diag(softmax(x)) - softmax(x) softmax(x)ᵀ"),
    ("A x", "x", "A"),
    ("x x^T a", "x", "(xᵀ a) I + x aᵀ"),
    ("tr(A X)", "X", "Aᵀ"),
    ("tr(X^T A X B)", "X", "A X B + Aᵀ X Bᵀ"),
    ("tr(X^{-1} A)", "X", "-X⁻ᵀ Aᵀ X⁻ᵀ"),
    ("tr(X^2)", "X", "2 Xᵀ"),
    ("a^T X b", "X", "a bᵀ"),
    ("a^T X^{-1} b", "X", "-X⁻ᵀ a bᵀ X⁻ᵀ"),
    ("‖A X - B‖²", "X", "2 Aᵀ (A X - B)"),
    ("log det X", "X", "X⁻ᵀ"),
    ("det X", "X", "det(X) X⁻ᵀ"),
    ("log det(X^T X)", "X", "2 X (Xᵀ X)⁻¹"),
    ("X^T X", "X", "Xᵀ dX + dXᵀ X"),
    ("X^{-1}", "X", "-X⁻¹ dX X⁻¹"),
    ("X^3", "X", "X dX X + X² dX + dX X²"),
]


@pytest.mark.parametrize(("formula", "variable", "result"), RESULTS)
def test_the_result_is_that_of_books_and_an_answer_that_is_right(formula: str, variable: str, result: str) -> None:
    differentials = Differentials(formula, variable)
    assert signs_of(differentials.result) == result
    assert sa.check_derivative(signs_of(differentials.result), formula, variable, layout="either")


@pytest.mark.parametrize(("formula", "variable"), [("tr(X^T A X B)", "X"), ("‖A X - B‖²", "X"), ("x^T A x", "x")])
def test_entries_are_the_partial_derivatives_of_written_out_matrices(formula: str, variable: str) -> None:
    shapes = {"X": (2, 3), "A": (2, 2), "B": (3, 3) if "tr" in formula else (2, 3), "x": (2, 1)}
    letters = {
        name: sp.Matrix(rows, columns, lambda j, k, name=name: sp.Symbol(f"{name}{j}{k}"))
        for name, (rows, columns) in shapes.items()
    }
    x, a, b = letters[variable], letters["A"], letters["B"]
    f = {
        "tr(X^T A X B)": lambda: (x.T * a * x * b).trace(),
        "‖A X - B‖²": lambda: sum(entry**2 for entry in a * x - b),
        "x^T A x": lambda: (x.T * a * x)[0, 0],
    }[formula]()
    result = {
        "tr(X^T A X B)": lambda: a * x * b + a.T * x * b.T,
        "‖A X - B‖²": lambda: 2 * a.T * (a * x - b),
        "x^T A x": lambda: (a + a.T) * x,
    }[formula]()
    assert all(sp.expand(sp.diff(f, x[k]) - result[k]) == 0 for k in range(len(x)))


def test_every_line_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symad.classroom.matrix_calculus.differentials._collected", lambda total: 2 * total)
    with pytest.raises(InvariantError, match="does not hold"):
        Differentials("x^T A x", "x")


def test_shapes_and_layout_are_stated() -> None:
    text = sa.steps("‖Ax - b‖²", "x").text()
    assert "Shapes: A: n × m; b: n × 1; x: m × 1." in text
    assert "Layout: the gradient has the shape of x" in text
    assert "A: m × m, symmetric" in sa.steps("x^T A x, A = A^T", "x").text()
    assert "it is linear in dX" in sa.steps("X^{-1}", "X").text()


def test_the_forms_are_those_of_scalar_derivations() -> None:
    derivation = sa.steps("tr(X^T A X B)", "X")
    assert r"\nabla f = A X B + A^{\mathsf{T}} X B^{\mathsf{T}}" in derivation.latex()
    assert "<msup><mi>A</mi>" in derivation.html()
    assert [line.starts for line in derivation.lines] == [True, True, False, False, True]


def test_sizes_that_need_not_be_equal_have_two_names() -> None:
    formula = MatrixFormula("A X B", "X")
    (rows, inner), (_, columns) = formula.shapes.letter("A"), formula.shapes.letter("B")
    assert len({rows, inner, columns, *formula.shapes.letter("X")}) == 4


def test_inverses_of_products_keep_their_order() -> None:
    assert sa.check_derivative("d = tr(B A dX)", "tr(B A X)", "X")
    assert plain_text("1^T y + yᵀ𝟏") == "sum(y) + sum(y)"


REFUSED = [
    ("x^T A x", "y", "without it"),
    ("tr(A x)", "x", "shapes do not fit"),
    ("A^T + x", "x", "two shapes"),
    ("x^T A x^T", "x", "shapes do not fit"),
    ("x^T A x +", "x", "the end"),
    ("x^T A x, A > 0", "x", "the condition"),
    ("x^T foo(x)", "x", "shapes do not fit|no such function|name"),
    ("‖‖", "x", "no term"),
]


@pytest.mark.parametrize(("formula", "variable", "says"), REFUSED)
def test_what_has_no_derivative_is_refused_in_one_message(formula: str, variable: str, says: str) -> None:
    with pytest.raises(WorkbenchError, match=says):
        sa.steps(formula, variable)


def test_orders_points_and_powers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="from 1 to 1"):
        sa.steps("x^T A x", "x", order=2)
    with pytest.raises(ArgumentError, match="a point of a formula of matrices"):
        sa.steps("x^T A x", "x", at=1)
    with pytest.raises(RuleError, match="the differential of"):
        sa.steps("tr(X^{-2})", "X")
    with pytest.raises(ArgumentError, match="ask for the first"):
        sa.check_derivative("2A", "x^T A x", "x", order=2)
    with pytest.raises(ArgumentError, match="'numerator', 'denominator', 'either'"):
        sa.check_derivative("2A", "x^T A x", "x", layout="rows")
