"""Several variables, equations, curves, undefined functions, points: results, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sympy as sp

import symad as sa
from symad.classroom.equality.equality import agreement
from symad.display.notation import Pending
from symad.errors import ArgumentError, InvariantError

x, y, t, a = sp.symbols("x y t a", real=True)
f, g = sp.Function("f"), sp.Function("g")


def equal(left: Any, right: Any) -> bool:
    return agreement(sp.sympify(left), sp.sympify(right)).equal is not False


def test_orders_go_on_from_the_tidied_derivative() -> None:
    derivation = sa.steps("x^3 e^x", "x", order=4)
    assert [section.heading for section in derivation.sections][-1] == "4th derivative"
    for before, section in zip(derivation.sections, derivation.sections[1:], strict=False):
        assert section.lines[0].before == Pending(before.shown, *section.lines[0].before.args[1:])
    assert equal(derivation.result, sp.diff(x**3 * sp.exp(x), x, 4))


def test_gradient_and_hessian() -> None:
    formula = x**2 * y + sp.sin(x * y)
    assert tuple(sa.steps(formula, [x, y]).result) == tuple(sp.factor(sp.diff(formula, v)) for v in (x, y))
    hessian = sa.steps("x^2 y + sin(x y)", ["x", "y"], order=2, at=(1, 0))
    assert sp.simplify(hessian.result - sp.hessian(formula, [x, y])) == sp.zeros(2)
    assert hessian.value == sp.Matrix([[0, 3], [3, 0]])
    assert "f_xy" in hessian.text()
    assert "Hessian" in hessian.text()


def test_other_symbols_are_constants() -> None:
    derivation = sa.steps(a * x**2 + y, x)
    assert derivation.result == 2 * a * x
    assert "a, y: constant" in derivation.text()


@pytest.mark.parametrize(
    ("equation", "slope"),
    [
        ("x^2 + y^2 = 25", "-x/y"),
        ("x = y^2", "1/(2*y)"),
        ("x^3 + y^3 = 6x y", "(x**2 - 2*y)/(2*x - y**2)"),
        ("e^(x y) + y^2 = 5", "-y*exp(x*y)/(x*exp(x*y) + 2*y)"),
        (sp.Eq(x**2 - x * y + y**2, 3), "(2*x - y)/(x - 2*y)"),
        ("sin(x + y) = y^2 cos x", "(y**2*sin(x) + cos(x + y))/(2*y*cos(x) - cos(x + y))"),
    ],
)
def test_equation(equation: Any, slope: str) -> None:
    assert equal(sa.steps(equation, "x").result, sp.sympify(slope, {"x": x, "y": y}))


def test_second_order_on_a_curve_uses_its_equation() -> None:
    derivation = sa.steps("x^3 + y^3 = 6 x y", "x", order=2)
    assert equal(derivation.result, 16 * x * y / (2 * x - y**2) ** 3)


def test_parametric_curve() -> None:
    derivation = sa.steps(("cos t", "sin t"), "t", order=2, at="pi/4")
    assert equal(derivation.result, -1 / sp.sin(t) ** 3)
    assert derivation.value == -2 * sp.sqrt(2)


def test_undefined_functions() -> None:
    assert "F′(x) = g(x)·f′(x) + f(x)·g′(x)" in sa.steps(f(x) * g(x), x).text()
    assert "F′(x) = g′(x)·f′(g(x))" in sa.steps(f(g(x)), x).text()
    assert "F′′(x) = 2·(f(x)·f′′(x) + f′(x)²)" in sa.steps(f(x) ** 2, x, order=2).text()


def test_python_functions_are_traced() -> None:
    assert sa.steps(lambda x: x * x * (1 + x), "x").result == x * (3 * x + 2)


PLACES: list[tuple[Any, Any, Any, str]] = [
    ("x^2", 3, 6, "f′(3) = 6"),
    ("sin x", "pi/3", sp.Rational(1, 2), "= 1/2"),
    ("0.1 x^2", 0.5, sp.Rational(1, 10), "f′(1/2) = 1/10"),
    ("a x^2", 2, None, "f′(2) = 4a"),
    ("|x|", 0, None, "the slope is -1 on the left and 1 on the right"),
    ("x |x|", 0, 0, "f′(0) = 0"),
    ("sqrt x", 0, None, "the tangent is vertical"),
    ("cbrt(x)", 0, None, "the tangent is vertical"),
    ("x^(3/2)", 0, None, "there are values on one side only, with the slope 0"),
    ("1/x", 0, None, "the function is not defined there"),
    ("floor x", 1, None, "the function jumps there"),
    ("x sin(1/x)", 0, None, "not defined"),
    (sp.Piecewise((x**2, x < 1), (2 * x - 1, True)), 1, 2, "f′(1) = 2"),
    (sp.Piecewise((x**2, x < 1), (3 * x, True)), 1, None, "jumps"),
    (sp.Piecewise((-x, x < 0), (sp.sin(x), True)), 0, None, "the slope is -1 on the left and 1 on the right"),
]


@pytest.mark.parametrize(("formula", "at", "value", "said"), PLACES)
def test_value_at_a_point(formula: Any, at: Any, value: Any, said: str) -> None:
    derivation = sa.steps(formula, "x", at=at)
    assert said in derivation.text(200)
    assert derivation.value == (4 * a if formula == "a x^2" else value)


def test_kinks_are_told_without_a_point() -> None:
    text = sa.steps("|x^2 - 1|", "x").text()
    assert "f′(-1) does not exist" in text
    assert "f′(1) does not exist" in text
    assert "f′(1/2) does not exist" in sa.steps("arcsin(2x)", "x").text()
    assert "f′(1) does not exist" in sa.steps("cbrt(x - 1)", "x").text()
    assert "does not exist" not in sa.steps("x^x", "x").text() + sa.steps("|x|^3", "x").text()


def test_point_beside_the_curve_is_refused() -> None:
    with pytest.raises(ArgumentError, match="the sides are 34 and 25 there"):
        sa.steps("x^2 + y^2 = 25", "x", at=(3, 5))
    assert sa.steps("x^2 + y^2 = 25", "x", at=(5, 0)).value is None


def test_false_line_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are checked by values that share nothing with the rules."""
    module = "symad.classroom.derivation.textbook_rules"
    monkeypatch.setattr(f"{module}.slope_of", lambda f, place: sp.sin(f.args[0]))
    with pytest.raises(InvariantError, match="does not hold"):
        sa.steps("x sin x", "x")


def test_unknown_values_are_marked() -> None:
    assert "Not checked with numbers" in sa.steps(sp.besselj(1, x), x).text()


def test_prime_of_y_is_no_word() -> None:
    assert r"2 x + 2 y y' = 0" in sa.steps("x^2 + y^2 = 25", "x").latex()


def test_files(tmp_path: Path) -> None:
    for suffix in (".html", ".tex", ".ipynb", ".txt"):
        written = sa.steps("x^2 sin x", "x").save(tmp_path / f"page{suffix}")
        assert "common factors" in written.read_text(encoding="utf-8")


def test_a_directional_derivative_is_the_gradient_times_the_direction_as_it_is_written() -> None:
    derivation = sa.steps("x^2 y", ["x", "y"], along="(3, 4)/5", at={"x": 2, "y": 1})
    assert derivation.value == sp.Rational(28, 5)
    assert "D_vf = (4x² + 6x·y)/5" in derivation.text()
    assert "its length is 5" in sa.steps("x^2 y", ["x", "y"], along=(3, 4)).text()
    assert "its length" not in derivation.text()


@pytest.mark.parametrize(
    ("f", "x", "along", "says"),
    [
        ("x^2", "x", (1, 2), "several variables"),
        ("x y", ["x", "y"], (1, 2, 3), "give 2 numbers"),
        ("x y", ["x", "y"], (0, 0), "not all 0"),
        ("x y", ["x", "y"], "up", "as a vector"),
        ("x^2 + y^2 = 1", "x", (1, 2), "several variables"),
    ],
)
def test_a_direction_that_does_not_fit_is_refused(f: Any, x: Any, along: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        sa.steps(f, x, along=along)


@pytest.mark.parametrize(("f", "at", "value"), [("x^3", 10**6, 3 * 10**12), ("e^(50x)", 2, 50 * sp.exp(100))])
def test_a_steep_function_does_not_jump(f: str, at: int, value: Any) -> None:
    assert sa.steps(f, "x", at=at).value == value
    assert sa.check_derivative(str(value), f, {"x": at})
