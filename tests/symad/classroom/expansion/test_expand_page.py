"""The lines and the page of an expansion: every line is right, every page has all forms."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symad.classroom.expansion.expand import expand
from symad.derivatives.level import Epsilon
from symad.display.notation import STROKE

x, y, u, v, w = sp.symbols("x y u v w")
f, g = sp.Function("f"), sp.Function("g")
e1 = Epsilon.of_level(1)


WALKED = {
    "a product": (lambda z: z * np.exp(z) / (1 + z * z), x, [v, w]),
    "functions": (lambda z: np.arcsin(z) + np.tanh(z) ** 3 * np.sqrt(1 + z), x, [v, w]),
    "two arguments": (lambda p: np.arctan2(p[0], p[1]) * np.hypot(p[0], p[1]), [x, y], [[v, w], [1, u]]),
    "compositions": (lambda z: np.log(np.cosh(z)) + np.log(1 + np.exp(z)), x, [v, w]),
    "a power": (lambda z: z**z, sp.Symbol("x", positive=True), [v, w]),
    "a moved direction": (lambda z: np.sin(z) * z, x, {1: v, 2: w, (1, 2): u}),
    "a special function": (lambda z: sp.besselj(2, z) * sp.erf(z), x, [v, w]),
    "undefined": (lambda z: f(z * g(z)), x, [v, w]),
}


@pytest.mark.parametrize("case", WALKED)
def test_every_line_is_right(case):
    """The eps-part that a line shows in names is, with the names filled in, the derivative of the line's value."""
    function, point, directions = WALKED[case]
    found = expand(function, point, directions)
    symbols = [point] if isinstance(point, sp.Symbol) else point
    numbers = {symbol: 0.31 + 0.07 * k for k, symbol in enumerate((*symbols, v, w, u))}
    known = numbers | {step.name: at(step.value, numbers) for step in found.steps if step.value is not None}
    checked = 0
    for level in (1, 2):
        steps = [step for step in found.steps if step.level == level]
        parts = {step.part_name: at(step.part_value, numbers) for step in steps if step.part_value is not None}
        moved = dict(zip(symbols, found.directions[(level,)], strict=True))
        if (1, 2) in found.directions and level == 2:
            moved |= {v: u}
        for step in steps:
            if step.value is None or step.part_value is None:
                continue
            derivative = sum(direction * sp.diff(step.value, symbol) for symbol, direction in moved.items())
            assert at(derivative, numbers) == pytest.approx(parts[step.part_name], rel=1e-12)
            for written, value in ((step.line, known[step.name]), (step.part, parts[step.part_name])):
                if written.free_symbols <= {*known, *parts}:
                    assert at(written, known | parts) == pytest.approx(value, rel=1e-12)
                    checked += 1
    assert checked > len(found.steps) / 2


def at(expression: sp.Expr, numbers: dict[sp.Symbol, float]) -> float:
    """Return the value of an expression, in which f is the sine and g the square."""
    a, expression = sp.Symbol("a"), sp.sympify(expression)
    if expression.has(f, g):
        expression = expression.subs({f: sp.Lambda(a, sp.sin(a)), g: sp.Lambda(a, a**2)}).doit()
    return float(expression.evalf(20, subs=numbers))


def test_rules_are_named():
    steps = expand(lambda z: (z**3 + 2 * np.sin(z)) / np.exp(z), x, [v]).steps
    rules = {str(step.line): step.rule.name for step in steps}
    assert rules == {
        "x**3": "power rule", "sin(x)": "chain rule", "2*u_2": "constant factor", "u_1 + u_3": "sum rule",
        "exp(x)": "chain rule", "1/u_5": "reciprocal rule", "u_4*u_6": "product rule",
    }  # fmt: skip
    assert steps[1].rule.partials == ((sp.Derivative(sp.Function("sin")(x), x), sp.cos(x)),)


def test_dual_of_a_line():
    (step,) = expand(np.sin, x, [v]).steps
    assert str(step.dual) == "u_1 + v*cos(x)*epsilon_1"


def test_lines_avoid_the_names_of_the_user():
    assert {str(step.name)[0] for step in expand(u**2 * sp.sin(u), u, [v]).steps} == {"z"}


PAGES = {
    "cube": lambda **k: expand(x**3, x, [v, w], **k),
    "cube by rules": lambda **k: expand(x**3, x, [v, w], style="rules", **k),
    "taylor": lambda **k: expand(lambda z: sp.exp(z * sp.sin(z)), x, v, order=3, **k),
    "undefined": lambda **k: expand(lambda z: f(g(z)), x, 1, order=4, **k),
    "numbers": lambda **k: expand(lambda z: np.sin(z) / z, 2.0, [1.0, 0.5], **k),
    "vector": lambda **k: expand(lambda p: p @ p, np.array([1.0, 2.0]), [[v, 0], [w, 1]], **k),
    "outputs": lambda **k: expand(lambda z: np.array([z**k for k in range(6)]), x, [v], **k),
    "constant": lambda **k: expand(lambda z: 3.0, x, [v], **k),
    "itself": lambda **k: expand(lambda z: z, x, [v, w], **k),
}


@pytest.mark.parametrize("detail", ["result", "levels", "steps", "all"])
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.thinned
def test_pages_have_all_forms(page, detail):
    found = PAGES[page](detail=detail)
    text, latex, html = found.text(100), found.latex(), found.html()
    assert max(len(line.replace(STROKE, "")) for line in text.splitlines()) <= 100
    assert "Coefficients" in text
    assert ("Level 1" in text) == (detail != "result")
    assert latex.count(r"\[") == latex.count(r"\]")
    assert "<math" in html
    assert "nan" not in text


def test_the_page_of_the_cube():
    text = PAGES["cube by rules"]().text(100)
    for part in (
        "f(x) = x³", "power rule", "constant factor", "f′′(x)[v, w]", "6v·w·x",
        "(x³ + 3v·x²·ε₁) + (3w·x² + 6v·w·x·ε₁)·ε₂",
        "x³ + 3v·x²·ε₁ + 3w·x²·ε₂ + 6v·w·x·ε₁·ε₂",
    ):  # fmt: skip
        assert part in text
    assert text.count("ε₁² = 0") == 1


def test_the_page_of_a_moved_direction_names_both_terms():
    assert "f′′(x)[v, w] + f′(x)[u]" in str(expand(x**3, x, {1: v, 2: w, (1, 2): u}))


def test_the_variable_of_taylor_is_not_one_of_the_user():
    t = sp.Symbol("t")
    assert "f(t + v·s)" in str(expand(sp.sin(t), t, v, order=2, detail="result"))


def test_the_page_of_taylor():
    text = PAGES["taylor"](detail="result").text(100)
    assert "t⁴ = 0" in text
    assert "f′′(x)[v, v]/2·t²" in text
