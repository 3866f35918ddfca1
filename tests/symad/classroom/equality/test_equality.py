"""Equality of expressions: what is proved, what is tested at random points, what stays undecided."""

from __future__ import annotations

import pytest
import sympy as sp

from symad.classroom.equality.equality import POINTS, agreement, are_equal, normal_form
from symad.display.mathematics import expanded_terms

x, y, n = sp.symbols("x y n", real=True)
f, g, h = sp.Function("f"), sp.Function("g"), sp.Function("h")

PROVED = [
    ((x + 1) ** 2, x**2 + 2 * x + 1),
    (sp.sin(x) ** 2 + sp.cos(x) ** 2, sp.Integer(1)),
    (sp.sin(2 * x), 2 * sp.sin(x) * sp.cos(x)),
    (1 + sp.tan(x) ** 2, 1 / sp.cos(x) ** 2),
    (sp.cosh(x) ** 2, 1 + sp.sinh(x) ** 2),
    (1 / (1 + sp.exp(-x)), sp.exp(x) / (1 + sp.exp(x))),
    (f(2 * x).diff(x), 2 * f(y).diff(y).subs(y, 2 * x)),
    (f((x + 1) ** 2), f(sp.expand((x + 1) ** 2))),
]
TESTED = [
    (sp.log(x * y), sp.log(x) + sp.log(y)),
    (sp.asin(x) + sp.acos(x), sp.pi / 2),
    (x**x, sp.exp(x * sp.log(x))),
    (sp.gamma(x + 1), x * sp.gamma(x)),
    (sp.Max(x, y), (x + y + sp.Abs(x - y)) / 2),
    (sp.Abs(x - 5).diff(x), (x - 5) / sp.Abs(x - 5)),
    *((sp.acosh(x - k), sp.log(x - k + sp.sqrt((x - k) ** 2 - 1))) for k in (30, 3000)),
    (sp.sqrt(3 + 2 * sp.sqrt(2)), 1 + sp.sqrt(2)),
    (n * sp.Abs(x) ** (n - 1) * sp.sign(x), sp.Abs(x) ** n * n / x),
    (sp.exp(n * sp.log(x)), x**n),
]
DIFFERENT = [
    (x, x + sp.Rational(1, 10**40)),
    (sp.sin(x), sp.sin(x) * (1 + sp.Rational(1, 10**40))),
    (x + sp.exp(-10000 - x**2), x),
    (sp.Abs(x), x),
    (n * sp.Abs(x) ** (n - 1), n * x ** (n - 1)),  # x**n has values at negative x where n is a whole number
    (sp.sqrt(x**2) ** n, x**n),
    (sp.sin(x) ** 2 + sp.cos(x) ** 2, 1 + sp.Rational(1, 10**33)),
    (sp.sin(x) ** 2 + sp.cos(x) ** 2, 1 + sp.Rational(1, 10**333)),
    (sp.gamma(x + 1), x * sp.gamma(x) + sp.Rational(1, 10**37)),
    (sp.sqrt(2), sp.Rational(14142135623730951, 10**16)),
    (sp.sign(x - 5), sp.Integer(-1)),
    (sp.sqrt(x - 3000), x),
    (1 - sp.tanh(x) ** sp.Rational(2000001, 1000000), 1 - sp.tanh(x) ** 2),
    (sp.Min(x, 100), x),
    (x + sp.Heaviside(x - y - 40), x),
    (sp.sqrt(x**2 - 16 * x + 64), 8 - x),
    (sp.Abs(sp.log(sp.Abs(x) + 1) - 4), 4 - sp.log(sp.Abs(x) + 1)),
    (sp.Max(0, x**2 - 100) ** 3 + sp.exp(x), sp.exp(x)),
    (f(x).diff(x), f(x)),
    (f(x, y).diff(x, y), f(x, y).diff(x, x)),
    (f(g(x)).diff(x), f(x).diff(x) * g(x).diff(x)),
    (h(x).diff(x, 10), sp.Integer(0)),
    (sp.exp(sp.exp(sp.exp(sp.exp(sp.exp(x))))), sp.Integer(0)),
    (sum(sp.sin(k * x**2) * sp.exp(-k * x) / (x + k) for k in range(1, 13)), sp.cos(x)),
]
UNDECIDED = [
    (sp.sqrt(-1 - x**2), x),
    (h(x).diff(x, 40), sp.Integer(0)),
    (sp.primepi(x), x),
    (sp.polygamma(sp.Rational(1, 3), x), sp.polygamma(0, x)),
    (sp.exp(sp.exp(sp.exp(sp.exp(9 + x**2)))), sp.exp(x)),
]


@pytest.mark.parametrize(("left", "right"), PROVED, ids=str)
def test_equal_by_algebra(left: sp.Expr, right: sp.Expr) -> None:
    found = agreement(left, right)
    assert found.equal is found.proved is True
    assert found.chance == 0


@pytest.mark.parametrize(("left", "right"), TESTED, ids=str)
def test_equal_at_random_points_with_a_stated_chance(left: sp.Expr, right: sp.Expr) -> None:
    found = agreement(left, right)
    assert found.equal is True
    assert (found.proved, found.points) == (False, POINTS)
    assert 0 < found.chance < 1e-60


@pytest.mark.parametrize(("left", "right"), DIFFERENT, ids=lambda part: str(part)[:40])
def test_a_difference_is_found_however_small(left: sp.Expr, right: sp.Expr) -> None:
    assert agreement(left, right).equal is False


@pytest.mark.parametrize(("left", "right"), UNDECIDED, ids=lambda part: str(part)[:40])
def test_what_has_no_values_is_not_decided(left: sp.Expr, right: sp.Expr) -> None:
    assert agreement(left, right).equal is None


def test_what_would_grow_is_not_multiplied_out() -> None:
    large = (x + y + 1) ** 500
    assert expanded_terms(large) > 10**5
    assert normal_form(large) is large


RATIONAL = [
    ((x + 1) ** 2 * (x + 2) ** 3 / (x + 3), 2 / (x + 1) + 3 / (x + 2) - 1 / (x + 3)),
    ((x**2 + 1) ** 3 / (x - 1) ** 4, 6 * x / (x**2 + 1) - 4 / (x - 1)),
    ((x**2 + 1) ** 4 * (x**3 - 2) ** 5, 8 * x / (x**2 + 1) + 15 * x**2 / (x**3 - 2)),
    (
        (x - 1) * (x - 2) / ((x - 3) * (x - 4) * y),
        1 / (x - 1) + 1 / (x - 2) - 1 / (x - 3) - 1 / (x - 4),
    ),
]


@pytest.mark.parametrize(("formula", "logarithmic"), RATIONAL, ids=str)
def test_long_rational_functions_are_decided_exactly(formula: sp.Expr, logarithmic: sp.Expr) -> None:
    right, written = formula.diff(x), sp.Mul(formula, logarithmic, evaluate=False)
    assert are_equal(right, written) is True
    assert agreement(right, written).proved
    wrong = agreement(right, written + sp.Rational(1, 10**60))
    assert wrong.equal is False
    assert wrong.witness is not None
    at = wrong.witness.at
    assert at is not None
    assert right.xreplace(at) != (written + sp.Rational(1, 10**60)).xreplace(at)


def test_a_difference_has_a_witness_with_small_numbers() -> None:
    found = agreement(sp.cos(x) * y, sp.sin(x) * y)
    assert found.witness is not None
    assert found.witness.at == {x: 2, y: 3}
    assert found.witness.values == ("-1.24844", "2.72789")
    assert agreement(f(x).diff(x), f(x)).witness.at is None
    assert agreement(sp.cos(1), sp.Rational(1, 2)).witness.values == ("0.540302", "0.5")
    assert not agreement(x, x + 1)
    assert agreement(x + x, 2 * x)


def test_a_difference_that_points_show_waits_for_no_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> sp.Expr:
        raise AssertionError("algebra was asked")

    monkeypatch.setattr("symad.classroom.equality.equality.algebraic_gap", never)
    assert agreement(sp.sin(x) / sp.sqrt((x**2 + 1) ** 2 + 1), sp.cos(x)).equal is False


def test_values_are_compared_in_all_their_digits_where_a_term_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "symad.classroom.equality.equality.algebraic_gap", lambda *_: sp.log(0) * x + sp.Symbol("nothing")
    )
    assert agreement(sp.sin(2 * x), 2 * sp.sin(x) * sp.cos(x)).equal is not False
