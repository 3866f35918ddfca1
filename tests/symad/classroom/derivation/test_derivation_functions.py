"""255 functions of a calculus book: each line holds, and the derivative is printed as a book prints it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sp

import symad as sa
from symad.classroom.answers.answer_problem import real
from symad.classroom.derivation.derivation_lines import DerivationLine
from symad.classroom.derivation.tidying import attempted, cost, evaluated
from symad.classroom.equality.equality import agreement
from symad.classroom.formulas.read import read_formula
from symad.display.notation import Pending
from symad.results import Derivation

x = sp.Symbol("x", real=True)
ROWS = [
    tuple(part.strip() for part in line.partition(" | ")[::2])
    for line in (Path(__file__).parent / "functions.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
BY_HAND = [row for row in ROWS if row[1]]
UNFACTORED = "x^3 - 3x^2 + 4"  # 3x^2 - 6x has one operation more than 3x(x - 2), and is what a book prints
OF_A_QUOTIENT = "sqrt((x - 1)/(x + 1))"  # SymPy's form has the root in the numerator


def taken(line: sp.Expr) -> sp.Expr:
    """Return a line with its pending derivatives taken by SymPy."""
    return evaluated(line.replace(Pending, lambda f, x, *partial: sp.diff(evaluated(f), x)))


@pytest.mark.parametrize("text", [row[0] for row in ROWS])
def test_every_line_is_the_derivative(text: str) -> None:
    derivation = sa.steps(text, "x")
    truth = sp.diff(derivation.question.formulas[0], x)
    assert not any("Not checked" in str(note) for note in derivation.notes)
    assert derivation.lines[0].before == Pending(derivation.lines[0].before.args[0], x)
    assert agreement(truth, derivation.result).equal is not False
    for line, following in zip(derivation.lines, derivation.lines[1:], strict=False):
        assert line.after == following.before
        assert agreement(truth, taken(line.after)).equal is not False, line.text
    assert not derivation.result.has(Pending, sp.Derivative) or "g" in text


@pytest.mark.parametrize(("text", "by_hand"), BY_HAND)
def test_derivative_has_the_form_of_a_book(text: str, by_hand: str) -> None:
    shown = sa.steps(text, "x").sections[-1].shown
    assert evaluated(shown) == evaluated(real(read_formula(by_hand, ["x"])))


def test_the_table_is_large_enough() -> None:
    assert len(ROWS) >= 200
    assert len(BY_HAND) >= 60


@pytest.mark.parametrize("text", [row[0] for row in ROWS if row[0] not in (UNFACTORED, OF_A_QUOTIENT)])
def test_derivative_is_no_longer_than_sympys(text: str) -> None:
    """Forms are compared that have the functions and bases of the derivative: sinh(x) is none of e^x - e^(-x)."""
    derivation = sa.steps(text, "x")
    derivative = sp.diff(derivation.question.formulas[0], x)
    forms = [derivative, *(attempted(way, derivative) for way in (sp.simplify, sp.factor))]
    assert cost(derivation.result)[0] <= min(cost(form)[0] for form in forms)


@pytest.mark.parametrize("text", [row[0] for row in ROWS[::4]])
def test_full_detail_ends_the_same(text: str) -> None:
    short, full = sa.steps(text, "x"), sa.steps(text, "x", detail="full")
    assert agreement(short.result, full.result).equal is not False
    assert len(full.lines) >= len(short.lines)
    assert all(rules(line) for line in full.lines)


def rules(line: DerivationLine) -> str:
    assert ", " not in line.rule
    return line.rule


def every_form(derivation: Derivation) -> list[str]:
    return [derivation.text(), derivation.latex(), derivation.html()]


@pytest.mark.parametrize("text", [row[0] for row in ROWS[::9]])
def test_every_form_shows_the_lines(text: str) -> None:
    plain, latex, html = every_form(sa.steps(text, "x"))
    assert "f′(x) = " in plain
    assert r"\frac{d}{dx}\left[" in latex
    assert "<math" in html
    assert "Pending" not in plain + latex + html
