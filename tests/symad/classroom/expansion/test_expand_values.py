"""What an expansion is made of numbers, symbols and containers gives, says and refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.expansion.epsilon import readable
from symad.classroom.expansion.expand import expand
from symad.derivatives.level import Epsilon
from symad.errors import ArgumentError, LimitError, RuleError, TraceError

x, y, u, v, w = sp.symbols("x y u v w")
f, g = sp.Function("f"), sp.Function("g")
e1 = Epsilon.of_level(1)


def test_numbers_give_numbers_and_symbols_expressions():
    assert isinstance(expand(x**2, {x: 3.0}, [1.0]).coefficient(1), float)
    assert expand(x**2, {x: 3}, [1]).coefficient(1) == 6.0
    assert expand(x**2, {x: 3.0}, [v]).coefficients == {(): 9.0, (1,): 6.0 * v}
    assert expand(x**2, x, [1, 1]).coefficient(1, 2) == sp.Integer(2)
    assert expand(x**2 * y, x, [v]).coefficient(1) == 2 * v * x * y


def test_vectors_and_containers():
    found = expand(lambda z: {"a": np.array([z * z, np.sin(z)]), "b": z}, 0.5, [2.0, 1.0])
    assert found.coefficient(1)["a"].tolist() == [2.0, 2 * math.cos(0.5)]
    assert found.coefficient(1, 2)["b"] == 0.0
    assert found.coefficient(1, 2)["a"].tolist() == [4.0, -2 * math.sin(0.5)]
    assert expand(lambda p: p["a"] * p["b"], {"a": x, "b": y}, [{"a": v, "b": w}]).coefficient(1) == v * y + w * x
    matrix = expand(sp.Matrix([[x * y, x]]), [x, y], [[v, w]])
    assert matrix.expanded.shape == (1, 2)
    assert matrix.expanded[0, 0] == x * y + (v * y + w * x) * e1


@pytest.mark.parametrize("direction", [[v, w], (v, w), np.array([v, w]), sp.Matrix([v, w]).T.tolist()[0], ["v", "w"]])
def test_forms_of_a_direction(direction):
    assert sp.expand(expand(x * y, [x, y], [direction]).coefficient(1)) == v * y + w * x


def test_formulas_in_strings():
    assert expand("x^3", "x", ["v", "w"]).coefficient(1, 2) == 6 * v * w * x
    with pytest.raises(ArgumentError, match="name 'q'"):
        expand("x + q", "x", ["v"])


def test_conventions_are_told():
    assert "sign(0) = 0" in str(expand(abs, 0.0, [1.0], detail="result"))
    assert "one half" in str(expand(lambda z: np.maximum(z, 2.0), 2.0, [1.0], detail="result"))
    assert "except where x = 0" in str(expand(x**x, x, [v], detail="result", style="rules"))
    assert "The formulas hold for x > 0." in str(expand(x**x, x, [v], detail="result"))
    assert expand(x**x, x, [v]).coefficient(1).has(sp.Piecewise) is False
    assert not expand(abs, 1.0, [1.0]).notes


def test_a_choice_of_the_user_stays():
    found = expand(lambda z: np.where(z > 0, z**2, -z), x, [v, w])
    assert found.coefficient(1, 2).subs(x, 3) == 2 * v * w
    assert found.coefficient(1, 2).subs(x, -3) == 0
    assert expand(sp.Piecewise((0, sp.Eq(x, 1)), (x**2, True)), x, [v]).coefficient(1).subs(x, 1) == 0


def test_the_path_that_python_takes_is_told():
    found = expand(lambda z: z**2 if z > 1 else z, 2.0, [v])
    assert found.coefficient(1) == 4.0 * v
    assert "x > 1" in str(expand(lambda x: x**2 if x > 1 else x, 2.0, [v])) or "z > 1" in str(found)


@pytest.mark.parametrize(
    ("function", "point", "named"),
    [(np.log, -1.0, "log"), (np.sqrt, 0.0, "no finite derivative"), (lambda z: np.divide(1, z), 0.0, "1/z")],
)
def test_what_is_not_finite_is_named(function, point, named):
    assert named in " ".join(map(str, expand(function, point, [1.0]).notes))


def lennard_jones(p):
    i, j = np.triu_indices(13, 1)
    r = ((p.reshape(13, 3)[i] - p.reshape(13, 3)[j]) ** 2).sum(axis=1)
    return (r**-6 - r**-3).sum()


def test_a_large_function_is_folded():
    rng = np.random.default_rng(0)
    point, a, b = rng.uniform(-3, 3, 39), rng.normal(size=39), rng.normal(size=39)
    found = expand(lennard_jones, point, [a, b])
    assert found.coefficient(1, 2) == pytest.approx(a @ sa.hessian(lennard_jones)(point) @ b, rel=1e-9)
    shown = str(found)
    assert "more lines of the same kinds" in shown
    assert len(shown.splitlines()) < 90


def test_a_formula_that_could_not_be_written_out_is_refused():
    def tower(z):
        for _ in range(30):
            z = sp.sin(z) * z
        return z

    with pytest.raises(LimitError, match=r"coefficient .* operations"):
        expand(tower, x, [v])
    assert math.isfinite(expand(tower, 0.5, [1.0, 1.0]).coefficient(1, 2))


def test_too_many_levels_are_refused_by_their_number():
    with pytest.raises(ArgumentError, match=r"2\*\*12 = 4096"):
        expand(x**2, x, [v] * 12)
    with pytest.raises(ArgumentError, match="levels"):
        expand(x**2, x, v, order=50)


REFUSED = {
    "shape": (x * y, [x, y], [[v]], {}, "direction of eps_1 of shape"),
    "scalar for a vector": (x * y, [x, y], [v, w], {}, r"shape \(2,\)"),
    "no direction": (x**2, x, [], {}, "no direction"),
    "level 0": (x**2, x, {0: v}, {}, "counted from 1"),
    "a square": (x**2, x, {(1, 1): v}, {}, "square of an epsilon is 0"),
    "order": (x**2, x, v, {"order": 0}, "order=0"),
    "detail": (x**2, x, [v], {"detail": "much"}, "detail='much'"),
    "its own symbol": (x * sp.Symbol("epsilon_1"), x, [v], {}, "epsilon_1 in the function"),
    "its own symbol as a direction": (x, x, [Epsilon.of_level(1)], {}, "epsilon_1 in the function or a direction"),
    "as it is printed": (x * sp.Symbol("eps_2"), x, [v], {}, "eps_2 in the function"),
    "no function": (3.0, x, [v], {}, "f of type float"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    function, point, directions, keywords, message = REFUSED[case]
    with pytest.raises(ArgumentError, match=message):
        expand(function, point, directions, **keywords)


def test_other_refusals():
    with pytest.raises(ArgumentError, match="coefficient of levels"):
        expand(x**2, x, [v]).coefficient(2)
    with pytest.raises(ArgumentError, match="different directions"):
        expand(x**2, x, [v, w]).taylor()
    with pytest.raises(TraceError, match="expand inside"):
        sa.grad(lambda z: expand(lambda q: q, z, [1.0]).coefficient(1))(1.0)
    with pytest.raises(RuleError, match="besselj has no derivative"):
        expand(lambda z: sp.besselj(z, 1), x, [v])


def test_a_direction_is_a_constant():
    """It may be the symbol x itself: no level takes another's x for its own."""
    assert expand(x**2, x, [x, x]).coefficient(1, 2) == 2 * x**2
    assert expand(lambda z: z * x, x, [v, w]).coefficients == {(): x**2, (1,): v * x, (2,): w * x, (1, 2): 0}


def test_a_point_that_is_an_expression():
    assert expand(lambda z: z**3, 2 * x + 1, [v]).coefficient(1) == 3 * v * (2 * x + 1) ** 2


def numbers_at(expression, value):
    return float(sp.sympify(expression).subs({x: value, v: 1}).doit())


EQUAL_EVERYWHERE = {
    "the same": lambda z: np.maximum(z, z),
    "multiplied out": lambda z: np.maximum((z + 1) ** 2, z * z + 2 * z + 1),
    "doubled": lambda z: np.minimum(2 * z, z + z),
}


@pytest.mark.parametrize("case", EQUAL_EVERYWHERE)
def test_a_tie_that_is_no_single_point_stays(case):
    """Where two operands are always equal, each gives one half: the convention is the formula."""
    function = EQUAL_EVERYWHERE[case]
    found = numbers_at(expand(function, x, [v]).coefficient(1), sp.Rational(3, 4))
    assert found == pytest.approx(expand(function, 0.75, [1.0]).coefficient(1))


def test_rules_given_by_the_user_are_named():
    steps = expand(lambda z: sa.root(lambda q, p: q**3 + q - p, 1.0, z) * z, 2.0, [1.0]).steps
    assert "the rule given with this function" in {step.rule.name for step in steps}


def test_what_is_linear_in_a_name_is_not_handed_to_sympys_factorization(monkeypatch):
    """Which begins at random points: it took this polynomial, a second derivative, .01 s at times and 90 at others."""

    def refused(*_):
        raise AssertionError("factored")

    a, b, c, d, e = sp.symbols("a b c d e")
    found = a**2 * b**2 * x - 2 * b**2 * a - 4 * c**2 * a * b * d * x - 4 * c**3 * b * e * u * x
    found += 2 * c**2 * b * d * e * x - 4 * c**2 * b * d * e - 2 * c**4 * e * u * x + 3 * x**2
    monkeypatch.setattr(sp, "factor", refused)
    assert sp.expand(readable(found) - found) == 0
    monkeypatch.undo()
    shared = sp.expand((a + b) * (x * a + c))
    assert readable(shared) == (a + b) * (x * a + c)
    assert readable(sp.expand((a**2 + b**2) ** 2 * (x**2 + 1))) == (a**2 + b**2) ** 2 * (x**2 + 1)


def test_an_expansion_without_a_direction_is_refused_by_name():
    with pytest.raises(sa.errors.ArgumentError, match="without a direction"):
        sa.expand("x^3", "x")
