"""Names and slopes of single rules; slopes in the spelling of books are those of the table that differentiates."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from codegen import heads
from symad.classroom.derivation.textbook_rules import NAMES, applied, logarithm, slope_of
from symad.classroom.equality.equality import agreement
from symad.display.mathematics import signs_of
from symad.display.notation import Pending
from symad.errors import RuleError

x = sp.Symbol("x", real=True)
STEPS = {heads.cbrt: 1 / (3 * heads.cbrt(x) ** 2), heads.log2: 1 / (x * sp.log(2)), heads.log10: 1 / (x * sp.log(10))}
FLAT = (sp.floor, sp.ceiling, sp.sign, sp.Heaviside)


@pytest.mark.parametrize("head", NAMES)
def test_slope_is_that_of_the_function(head: Any) -> None:
    slope = slope_of(head(x), 0)
    expected = sp.S.Zero if head in FLAT else STEPS.get(head) or sp.diff(head(x), x)
    assert agreement(expected, slope).equal is not False
    for machine in (heads.one_minus_square, heads.hypot, heads.direction_cosine):
        assert not slope.has(machine)


@pytest.mark.parametrize(
    ("f", "rule", "line"),
    [
        (sp.Integer(7), "constant rule", "0"),
        (x, "identity", "1"),
        (x**5, "power rule", "5x⁴"),
        (sp.sqrt(x), "square root", "1/(2·√x)"),
        (3 * sp.sin(x), "constant factor", "3·d/dx[sin(x)]"),
        (x + sp.sin(x), "sum rule", "d/dx[x] + d/dx[sin(x)]"),
        (x * sp.sin(x), "product rule", "d/dx[x]·sin(x) + x·d/dx[sin(x)]"),
        ((x**2 + 1) / x, "divided first", "d/dx[x + 1/x]"),
        ((x**2 - 4) / (x - 2), "divided first", "d/dx[x + 2]"),
        ((x + 1) ** 2, "chain rule", "2·(x + 1)·d/dx[x + 1]"),
        (sp.sin(x) / x, "quotient rule", "(d/dx[sin(x)]·x - sin(x)·d/dx[x])/x²"),
        (1 / (x + 1), "reciprocal rule", "-d/dx[x + 1]/(x + 1)²"),
        (sp.sin(x**2), "chain rule", "cos(x²)·d/dx[x²]"),
        (2**x, "exponential function", "2^x·ln(2)"),
        (x**x, "power as an exponential", "d/dx[e^(x·ln(x))]"),
        (sp.log(x**2), "laws of logarithms", "d/dx[2ln(|x|)]"),
        (sp.atan(x), "arctangent", "1/(x² + 1)"),
        (sp.Abs(x), "absolute value", "sign(x)"),
        (sp.erf(x), "derivative of erf", "2e^(-x²)/√π"),
        (sp.Function("g")(x**2), "chain rule", "g′(x²)·d/dx[x²]"),
        (sp.Max(x, 1), "cases", "d/dx[{1 if x ≤ 1, x otherwise}]"),
    ],
)
def test_rule(f: sp.Expr, rule: str, line: str) -> None:
    step = applied(Pending(f, x))
    assert (step.rule, signs_of(step.line)) == (rule, line)


def test_conditions_are_solved_for_x() -> None:
    assert applied(Pending((x**2 - 4) / (x - 2), x)).condition == sp.Ne(x, 2)
    assert applied(Pending((x**3 - 2 * x) / sp.sqrt(x), x)).condition == sp.Ne(x, 0)
    assert applied(Pending(sp.Abs(x**2 - 1), x)).condition == sp.Ne(x**2 - 1, 0)


def test_letters_of_parts_are_free() -> None:
    u = sp.Symbol("u", real=True)
    assert applied(Pending(u * sp.sin(u), u)).parts[0] == sp.Symbol("v", real=True)


def test_logarithms_keep_their_sign() -> None:
    assert logarithm(-x, x) == sp.log(sp.Abs(x))
    assert logarithm(x**x, x) == x * sp.log(x)
    assert signs_of(logarithm(sp.sqrt((1 + x) / (1 - x)), x)) == "ln(|x + 1|)/2 - ln(|x - 1|)/2"


@pytest.mark.parametrize("f", [sp.zeta(x), sp.Sum(x, (sp.Symbol("k"), 1, 3))])
def test_no_derivative_is_refused_by_name(f: sp.Expr) -> None:
    with pytest.raises(RuleError, match=type(f).__name__):
        applied(Pending(f, x))
