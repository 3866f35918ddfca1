"""Bad input gets one message, and long formulas an answer."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

import symad as sa
from symad.errors import ArgumentError, LimitError, RuleError, WorkbenchError

x = sp.Symbol("x", real=True)

REFUSED: list[tuple[Any, Any, dict[str, Any], type[WorkbenchError], str]] = [
    ("", "x", {}, ArgumentError, "an empty formula"),
    ("x^2 +", "x", {}, ArgumentError, "the end of the formula"),
    ("x^2 +* 3", "x", {}, ArgumentError, r"\n  x\^2 \+\* 3\n       \^"),
    ("hello(x)", "x", {}, ArgumentError, "no such function is known"),
    ("1/0", "x", {}, ArgumentError, "a division by zero"),
    ("x^2 = 4", "x", {}, ArgumentError, "write an equation in x and y"),
    ("x^2", "x^2", {}, ArgumentError, "no name of a symbol"),
    ("x^2", 3.0, {}, ArgumentError, "looked at in its symbols"),
    ("x^2", {"x": 2.0}, {}, ArgumentError, "a point as x"),
    ("x^2", ["x", "x"], {}, ArgumentError, "stands in it twice"),
    (None, "x", {}, ArgumentError, "neither a function nor a formula"),
    (("x", "x", "x"), "x", {}, ArgumentError, "a curve as a pair"),
    ("x^2", "x", {"order": 0}, ArgumentError, "from 1 to 6"),
    ("x y", ["x", "y"], {"order": 3}, ArgumentError, "from 1 to 2"),
    ("x^2", "x", {"detail": "long"}, ArgumentError, "'short', 'full'"),
    ("x^2", "x", {"at": {"y": 1}}, ArgumentError, "give a value for x"),
    ("x y", ["x", "y"], {"at": 1}, ArgumentError, "give a value for x, y"),
    ("x^2", "x", {"at": "hello("}, ArgumentError, "no such function is known"),
    (sp.zeta(x), x, {}, RuleError, "zeta"),
    (" + ".join(f"x^{k} sin({k} x)" for k in range(1, 40)), "x", {}, LimitError, "192 operations"),
    (sum(sp.Symbol(f"a{k}") for k in range(8)), [f"a{k}" for k in range(8)], {}, LimitError, "8 variables"),
]


@pytest.mark.parametrize(("f", "symbols", "options", "error", "message"), REFUSED)
def test_refused(f: Any, symbols: Any, options: dict[str, Any], error: type[WorkbenchError], message: str) -> None:
    with pytest.raises(error, match=message):
        sa.steps(f, symbols, **options)


@pytest.mark.parametrize("f", ["5", 5, "a + 1"])
def test_symbol_that_does_not_occur(f: Any) -> None:
    derivation = sa.steps(f, "x")
    assert derivation.result == 0
    assert "x does not occur in f" in derivation.text()


@pytest.mark.parametrize(
    "f",
    [
        "sin(x)^20 cos(x)^20", "(x^3 - 1)^1000", "e^(e^(e^(e^x)))", "sqrt(x + sqrt(x + sqrt(x + sqrt(x))))",
        "(x^5 + 3x^4 - x + 1)/(x^6 - 2x^3 + x - 7)", "ln(ln(ln(ln(x))))", "x^(x^x)", "tan(x)^5/(1 + sec(x))^3",
        "sin(x) sin(2x) sin(3x) sin(4x) sin(5x)", "(sin(x) + cos(x))^12/(tan(x) - 1)^3",
        "arctan((x + a)/(1 - a x)) e^(sin(b x)) ln(x^2 + c^2)", "|x|^3 sqrt(|x^2 - 4|)", "x^100 e^(-x^100)",
    ],
)  # fmt: skip
def test_long_formulas_have_an_answer(f: str) -> None:
    assert "f′(x) = " in sa.steps(f, "x").text()


@pytest.mark.parametrize("formula", ["0^x", "(-2)^x", "(1-1)^x"])
def test_powers_of_numbers_that_are_not_positive_have_no_slope(formula):
    with pytest.raises(sa.WorkbenchError, match="positive base"):
        sa.steps(formula, "x")


def test_slopes_on_both_sides_have_six_digits_and_poles_have_no_value():
    assert "-0.707107 on the left" in sa.steps("sqrt(1-cos(x))", "x", at=0).text()
    assert "not defined there" in sa.steps("tan x", "x", at=sp.pi / 2).text()
