"""Expansions in the style of a book: every line holds, squares are struck, and it ends where the graph's levels end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.expansion.book import Book, Level, why_not
from symad.classroom.expansion.epsilon import Nested
from symad.classroom.expansion.expand import Expansion, expand
from symad.classroom.expansion.expansion_values import written
from symad.classroom.expansion.page import READ
from symad.derivatives.level import Epsilon
from symad.display.notation import STROKE, Nothing, Struck
from symad.errors import ArgumentError

x, y, v, w, u, a, e = sp.symbols("x y v w u a e")
f, g = sp.Function("f"), sp.Function("g")

BY_HAND: dict[str, tuple[Any, Any, Any]] = {
    "cube": (x**3, x, [v, w]),
    "cube along 1": (x**3, x, [1]),
    "three levels": (x**4 - a * x, x, [v, w, u]),
    "factors": ((x + 1) * (x - 1), x, [v, w]),
    "a quotient": (x / (1 + x**2), x, [v]),
    "a quotient twice": (x / (1 + x), x, [v, w]),
    "reciprocal": (1 / x**2, x, [v, w]),
    "sine": (sp.sin(x), x, [v, w]),
    "inside": (sp.sin(x**2), x, [v, w]),
    "exponential of a product": (sp.exp(x * sp.sin(x)), x, [v]),
    "a root": (sp.sqrt(1 + x**2), x, [v]),
    "a square of a function": (a * sp.cos(x) ** 2, x, [v]),
    "a power": (2**x, x, [v, w]),
    "logarithm": (x * sp.log(x), x, [v, w]),
    "a product with a reciprocal": (sp.exp(-x) * sp.sin(x) / x, x, [v]),
    "two names": (sp.sin(x * y), [x, y], [[v, w]]),
    "two names, two levels": (x**2 * y, [x, y], [[v, w], [1, 0]]),
    "undefined": (f(g(x)), x, [v]),
    "undefined and known": (x * f(x**2), x, [v]),
    "a moved direction": (x**3, x, {1: v, 2: w, (1, 2): u}),
    "taylor": (sp.sin(x) + x**2, x, [v, v]),
    "both the base and the exponent": (x**x, x, [v, w]),
    "a logarithm to the base 2": ("x log2(x)", "x", ["v", "w"]),
    "four levels": (sp.sin(2 * x), x, [v, v, v, v]),
}


def book_of(found: Expansion) -> Book:
    symbols = dict(zip(found.parameters.flat, found.given.symbols, strict=True))
    return Book(found, written(found.values, found.result.flat[0], symbols, READ))


def plain(expression: sp.Expr) -> sp.Expr:
    """Return an expression with sums and what is struck as ordinary sums, and every epsilon as a symbol."""
    if isinstance(expression, Nested):
        pairs = zip(expression.args[::2], expression.args[1::2], strict=True)
        return sp.Add(*(plain(coefficient) * plain(factor) for coefficient, factor in pairs))
    if isinstance(expression, Epsilon):
        return sp.Symbol(f"e_{expression.name[-1]}")
    if isinstance(expression, Struck):
        return plain(expression.args[0])
    return expression.func(*map(plain, expression.args)) if expression.args else expression


def value(expression: sp.Expr) -> float:
    """Return the value at numbers, where f is the cosine and g the exponential."""
    known = expression.subs({f: sp.Lambda(e, sp.cos(e)), g: sp.Lambda(e, sp.exp(e))}).doit()
    return float(known.subs({x: 0.7, y: 1.3, v: 0.4, w: -1.1, u: 0.9, a: 2.5}))


@pytest.mark.parametrize("case", BY_HAND)
@pytest.mark.thinned
def test_every_line_holds_up_to_what_is_struck(case: str) -> None:
    book = book_of(expand(*BY_HAND[case], style="book"))
    checked = 0
    for level in book.levels:
        eps, left = plain(level.eps), None
        for line in level.written:
            left = left if isinstance(line.left, Nothing) else line.left
            gap = plain(left) - plain(line.right)
            left = line.right  # of a line that goes on
            for order in range(3 if line.right.has(Struck) else 2):
                assert value(gap.diff(eps, order).subs(eps, 0)) == pytest.approx(0, abs=1e-12), (line, order)
                checked += 1
    assert checked


@pytest.mark.parametrize("case", BY_HAND)
def test_it_ends_where_the_levels_of_the_graph_end(case: str) -> None:
    found = expand(*BY_HAND[case], style="book")
    book = book_of(found)
    assert set(book.coefficients) == set(found.flat)
    for levels, (coefficient,) in found.flat.items():
        assert value(book.coefficients[levels] - coefficient) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("case", BY_HAND)
@pytest.mark.thinned
def test_all_forms(case: str) -> None:
    found = expand(*BY_HAND[case], style="book")
    assert max(len(line.replace(STROKE, "")) for line in found.text(90).splitlines()) <= 90
    assert found.latex().count("{") == found.latex().count("}")
    assert "<menclose" not in found.html()
    assert ('class="struck"' in found.html()) == (STROKE in found.text(90)) == (r"\cancel{" in found.latex())


def test_the_page_of_the_cube_is_that_of_a_book() -> None:
    text = expand("x^3", "x", ["v"]).text(120)
    struck = "".join(letter + STROKE for letter in "3v²·x·ε₁²")
    assert "f(x + v·ε₁) = (x + v·ε₁)³" in text
    assert f"x³ + 3v·x²·ε₁ + {struck}" in text
    assert "ε₁² = 0 and all higher powers with it" in text
    assert "f(x + v·ε₁) = x³ + 3v·x²·ε₁    [collected]" in text


def test_the_user_s_own_names_are_everywhere() -> None:
    text = expand("sin(x*y)", ["x", "y"], [["v_1", "v_2"]]).text(120)
    assert text.startswith("f(x + v₁ ε₁, y + v₂ ε₁), one level at a time")
    assert "f(x, y) = sin(x·y)" in text
    assert "f(x + v₁·ε₁, y + v₂·ε₁)" in text
    assert "f′(x, y)[(v₁, v₂)]" in text
    assert "p" not in {word for word in text.replace("(", " ").split() if len(word) == 1}


def test_the_coefficients_are_in_the_form_of_the_lines_above_them() -> None:
    text = expand("1/(1+exp(-x))", "x", ["v"]).text(120)
    assert "expit" not in text
    assert text.count("v·e^(-x)/(1 + e^(-x))²") == 3  # of the last line, the level, and the table


def test_a_power_with_a_moving_exponent_is_an_exponential() -> None:
    text = expand("x^x", "x", ["v"]).text(120)
    assert "e^(x·ln(x) + (v·ln(x) + v)·ε₁)    [u^v = e^(v·ln(u)) for x > 0]" in text
    assert "The formulas hold for x > 0." in text


RULES = {
    "Abs has no Taylor series": (sp.Abs(x), x, [v]),
    "it is done for one formula at symbols": (sp.sin(x), {x: 2.0}, [v]),
    "one formula": ([x, x**2], x, [v]),
    "5 levels at most": (x**2, x, [v, w, u, a, 1, 1]),
    "a direction has the variable in it": (x**2, x, [x]),
    "is no symbol": (x**2, x, {1: v + 1, 2: w, (1, 2): u}),
    "max": (sp.Max(x, 1), x, [v]),
}


@pytest.mark.parametrize("why", RULES)
def test_what_a_book_would_not_do_has_rules(why: str) -> None:
    assert "rule" in expand(*RULES[why]).text(100)
    with pytest.raises(ArgumentError, match=why if why != "max" else "Max has no Taylor"):
        expand(*RULES[why], style="book")


def test_styles() -> None:
    assert "power rule" in expand(x**3, x, [v], style="rules").text(100)
    assert "power rule" not in expand(x**3, x, [v]).text(100)
    assert "power rule" in expand(lambda z: np.exp(z) / (1 + z**3) ** 2 * np.sin(z**2), x, [v, w]).text(100)
    with pytest.raises(ArgumentError, match="use one of 'book', 'rules'"):
        expand(x, x, [v], style="novel")  # type: ignore[arg-type]


def test_a_long_formula_is_not_expanded_by_hand() -> None:
    assert why_not(sum(sp.sin(k * x) for k in range(1, 40)), {x: v}) == "the formula is long"


def test_a_polynomial_of_high_degree_is_expanded_by_its_factors() -> None:
    level = Level(1, {x: v})
    lines = level.lines((1 + x) ** 30)
    assert [line.reason[0] for line in lines] == ["binomial series"]
    assert sp.expand(level.part((1 + x) ** 30) - 30 * v * (1 + x) ** 29) == 0


def test_a_line_that_goes_on_has_no_left_side() -> None:
    (first, second, *_) = [block for block in expand(x**3, x, [v]).document() if type(block).__name__ == "Formula"][1:]
    assert not isinstance(first.left, Nothing)
    assert isinstance(second.left, Nothing)
    assert second.right.has(Struck)


def test_the_interpreter_shows_the_content() -> None:
    found = sa.expand("x^2", "x", "v")
    assert repr(found) == found.text()


def test_a_short_loop_is_a_sum_with_an_index() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for k in range(4):
            total = total + x[k] ** 2 * np.sin(x[k])
        return total

    page = sa.expand(f, list(sp.symbols("x_1:5")), [sp.symbols("v_1:5")])
    text = " ".join(page.text(200).split())
    assert "f(x) = Σᵢ₌₁⁴ xᵢ²·sin(xᵢ)" in text
    assert "ε₁² = 0; for i = 1, ..., 4]" in text
    assert "f(x + d₁·ε₁) = Σᵢ₌₁⁴ xᵢ²·sin(xᵢ) + (Σᵢ₌₁⁴ vᵢ·xᵢ·(xᵢ·cos(xᵢ) + 2sin(xᵢ)))·ε₁" in text
    assert text.count("Taylor series") == 1
    assert r"\sum_{i=1}^{4}" in page.latex()
    assert page.coefficient(1).subs({f"x_{k}": k for k in range(1, 5)}).free_symbols == set(sp.symbols("v_1:5"))
    rules = sa.expand(f, list(sp.symbols("x_1:5")), [sp.symbols("v_1:5")], style="rules")
    assert "= Σᵢ₌₁⁴ xᵢ²·sin(xᵢ)" in " ".join(rules.text(300).split()).partition("Coefficients")[0]


@pytest.mark.parametrize(
    "formula", ["x_1^2 + x_2^2", "x_1^2 + x_2^2 + x_3^3", "x_1 x_2 + x_2 x_3 + x_3 x_4", "x_1 + x_2 + x_4"]
)
def test_other_sums_are_written_out(formula: str) -> None:
    names = [name for name in ("x_1", "x_2", "x_3", "x_4") if name in formula]
    assert "Σ" not in sa.expand(formula, names, [[1] * len(names)]).text()


@pytest.mark.parametrize("positive", [None, True])
def test_the_domain_of_a_power_is_shown_also_where_the_symbol_is_positive(positive: bool | None) -> None:
    u = sp.Symbol("u", positive=positive)
    shown = str(expand(u**u, u, [v], style="book"))
    assert "e^(v·ln(u)) for u > 0]" in " ".join(shown.split())
    assert "The formulas hold for u > 0." in shown
