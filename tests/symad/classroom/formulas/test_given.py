"""given: everything that may be called "f and x", and what may not."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symad.classroom.formulas.given import given
from symad.errors import ArgumentError

x, y, a = sp.symbols("x y a")
f = sp.Function("f")


def test_a_function_stays_what_it_is():
    square = lambda z: z * z  # noqa: E731
    found = given(square, 3.0)
    assert found.function is square
    assert found.argument == 3.0
    assert found.name == "f"
    assert [str(symbol) for symbol in found.symbols] == ["z"]
    assert given(square, x).symbols == (x,)


def test_symbols_of_a_container_are_its_paths():
    found = given(lambda p: p["w"] @ p["w"], {"w": np.zeros(2), "b": x})
    assert [str(symbol) for symbol in found.symbols] == ["x", "p_w_0", "p_w_1"]


@pytest.mark.parametrize("at", [x, "x"])
def test_an_expression_in_one_symbol(at):
    found = given(sp.sin(x) * x, at)
    assert found.argument == x
    assert found.function(x) == sp.sin(x) * x
    assert found.function(2.0) == pytest.approx(2 * np.sin(2.0))


@pytest.mark.parametrize("at", [[x, y], (x, "y"), sp.Matrix([x, y]).T.tolist()[0], sp.Tuple(x, y)])
def test_an_expression_in_a_vector(at):
    found = given(x * sp.sin(y), at)
    assert found.argument.tolist() == [x, y]
    assert found.function(np.array([2.0, 0.0])) == 0.0


def test_values_in_a_dict():
    assert given(x * y, {x: 2.0, y: 3}).argument.tolist() == [2.0, 3.0]
    assert given(x**2, {"x": 2.0}).argument == 2.0
    assert given(x * y, {x: 2.0, y: a}).argument.tolist() == [2.0, a]


def test_matrices_and_lists_of_expressions():
    assert given(sp.Matrix([x, x**2]), x).function(2.0).tolist() == [[2.0], [4.0]]
    assert given([x, x**2], x).function(2.0) == [2.0, 4.0]


def test_formulas_in_strings():
    assert given("2x^3 + sin(x)", "x").function(y) == 2 * y**3 + sp.sin(y)
    assert given("x y", [x, y]).function(np.array([2.0, 3.0])) == 6.0
    assert given(["x^2", "x y"], {"x": 2.0, "y": 3.0}).argument.tolist() == [2.0, 3.0]


def test_further_symbols_where_they_are_wanted():
    assert given(a * x, x, parameters=True).function(2 * x) == 2 * a * x


def test_undefined_functions_stay():
    assert given(f(x) * x, x).function(y) == y * f(y)
    assert given(f(x, y), [x, y]).function(np.array([y, x])) == f(y, x)


REFUSED = {
    "no x": (x**2, None, "no argument x"),
    "unknown symbol": (a * x, x, "the symbol a in the expression"),
    "unknown symbol beside values": (a * x, {x: 1.0}, r"symbol a .* not in x \(x\)"),
    "an expression as x": (x**2, x + 1, r"x = x \+ 1"),
    "a number as x": (x**2, 2.0, r"x = 2.0.*a dict \{symbol: value\}"),
    "twice": (x * y, [x, x], "twice"),
    "nothing in x": (x * y, [], "no symbol in it"),
    "no name": (x * y, "2 x", "no name of a symbol"),
    "two namesakes": (x * sp.Symbol("x", real=True), "x", "several symbols"),
    "a number as f": (3.0, x, "f of type float"),
    "an equation as f": (sp.Eq(x, y), x, "f of type Equality"),
    "an unknown name in a string": ("2x + z", "x", "name 'z'.*known are x"),
    "a formula that is none": ("__import__('os')", "x", "'_'"),
    "an empty list as f": ([], x, "f of type list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    formula, at, message = REFUSED[case]
    with pytest.raises(ArgumentError, match=message):
        given(formula, at)
