"""Displayed equalities are checked by hyper-dual arithmetic when they are made; a false one is an internal error."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

import symad as sa
from symad.classroom.equality.hyperdual import HyperDual
from symad.classroom.equality.independent_values import IndependentValues
from symad.classroom.expansion import book
from symad.classroom.expansion.displayed import Definitions, check_entries, check_equality
from symad.classroom.explanation import checked_lines
from symad.classroom.explanation.checked_lines import check_statements
from symad.classroom.explanation.explanation_lines import VariableLine
from symad.errors import InvariantError, WorkbenchError
from tests.support import displayed_equalities

x, y, v, w = sp.symbols("x y v w")
g = sp.Function("g")
FUNCTIONS = [sp.sin(x * y), sp.exp(x) / y, sp.log(x) ** y, x ** sp.Rational(3, 2) * sp.atan(y), g(x * y), g(x, y)]


@pytest.mark.parametrize("formula", FUNCTIONS, ids=str)
def test_hyper_dual_numbers_have_the_derivatives(formula: sp.Expr) -> None:
    with mp.workdps(50):
        values = IndependentValues(seed=1)
        plain = [values.of(part).real for part in (formula.diff(x), formula.diff(y), formula.diff(x, y))]
        values.known[x] = values.of(x) + HyperDual({1: mp.mpf(1)})
        values.known[y] = values.of(y) + HyperDual({2: mp.mpf(1)})
        moved = values.of(formula).parts
        assert all(abs(moved[mask] - right) < 1e-40 for mask, right in zip((1, 2, 3), plain, strict=True))


@pytest.mark.parametrize("formula", ["sin(x)/cos(x)", "log(sin(x))", "cos(x)/sin(x)", "(sin(x)^2 + cos(x)^2) exp(x)"])
def test_a_factor_whose_epsilon_part_cancels_still_moves(formula: str) -> None:
    page = sa.expand(formula, "x", ["v", "w"]).text(200)
    assert "[collected]" in page


def test_a_false_line_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def part(self: book.Level, expression: sp.Expr) -> sp.Expr:
        return 2 * right(self, expression)

    right = book.Level.part
    monkeypatch.setattr(book.Level, "part", part)
    with pytest.raises(InvariantError, match="a displayed equality that does not hold"):
        sa.expand("x^2 sin(x)", "x", ["v"]).text()


def test_a_false_line_of_the_rules_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symad.classroom.expansion.steps._StageLines._part_of", lambda *_: sp.Symbol("v"))
    with pytest.raises(InvariantError):
        sa.expand("sin(x^2)", "x", ["v"], style="rules").text()


def test_what_has_no_value_is_not_checked() -> None:
    nothing = Definitions("f", [x], None)
    assert check_equality(x + x, 2 * x, nothing)
    assert not check_equality(sp.Function("f")(x), x, nothing)
    with pytest.raises(InvariantError):
        check_equality(x + x, 3 * x, nothing)


def test_equalities_of_random_functions_hold() -> None:
    counted = Counter[str]()
    source = Random(3)
    for _ in range(8):  # `python -m tests.campaign displayed` makes thousands
        try:
            displayed_equalities.made(displayed_equalities._asked(source), counted)
        except InvariantError:
            raise
        except WorkbenchError:
            continue
    assert counted["hold"] > 50
    assert counted["no values"] <= counted["hold"] // 100


def test_entries_of_a_gradient_and_a_hessian_are_checked() -> None:
    formula = Definitions("f", [x, y], x**2 * y)
    check_entries([2 * x * y, x**2], 1, formula)
    check_entries([2 * y, 2 * x, 2 * x, sp.S.Zero], 2, formula)
    with pytest.raises(InvariantError):
        check_entries([2 * x * y, 2 * x**2], 1, formula)


def _checked(function: Any, *arguments: Any) -> int:
    shown = sa.explain(function, *arguments)
    statements = [*shown.lines, *(line for stage in shown.stages for line in stage.lines)]
    return check_statements(shown.book, statements)


def test_lines_and_rows_of_an_explanation_are_checked() -> None:
    assert _checked(sa.grad(lambda x: np.sin(x) * x), 1.0) > 10
    assert _checked(sa.derivative(lambda x: np.tanh(x) ** 2 / x, 3), 0.5) > 100


def test_a_false_line_of_an_explanation_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    right = VariableLine.expression
    monkeypatch.setattr(VariableLine, "expression", property(lambda self: 2 * right.fget(self)))  # type: ignore[attr-defined]
    with pytest.raises(InvariantError, match="a displayed line that does not hold"):
        sa.explain(sa.grad(lambda x: np.sin(x) * x), 1.0).text()


def test_a_false_coefficient_of_a_row_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    right = checked_lines._slopes
    monkeypatch.setattr(checked_lines, "_slopes", lambda *parts: [(1 + one, other) for one, other in right(*parts)])
    with pytest.raises(InvariantError, match="a displayed line that does not hold"):
        sa.explain(sa.grad(lambda x: np.sin(x) * x), 1.0).text()


def test_a_power_with_a_moving_exponent_is_expanded_to_order_four() -> None:
    assert "Level 4" in sa.expand("(x + 1)^x", "x", 1, order=4, style="rules").text(100)
