"""explain(at=): the tables of textbooks row by row, nested derivatives by hand, and what is refused at a point."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad as sa


def survey(x1, x2):
    """The example of Griewank, and of Baydin and others."""
    return np.log(x1) + x1 * x2 - np.sin(x2)


def rows(explanation):
    return [(line.name, line.formula, line.value) for line in explanation.lines]


def assert_rows(explanation, expected):
    shown = rows(explanation)
    assert [row[:2] for row in shown] == [row[:2] for row in expected]
    for row, (*_, value) in zip(shown, expected, strict=True):
        assert row[2] == pytest.approx(value, abs=5e-4 if isinstance(value, float) else 0), row


PRIMAL = [
    ("x1", "x1", 2), ("x2", "x2", 5), ("v1", "log(x1)", 0.693), ("v2", "x1*x2", 10), ("v3", "sin(x2)", -0.959),
    ("v4", "v1 + v2", 10.693), ("v5", "v4 - v3", 11.652),
]  # fmt: skip


def test_the_forward_table_of_the_survey():
    """Baydin and others, "Automatic Differentiation in Machine Learning: a Survey", table 2."""
    tangents = [
        ("x1_dot", "1.0", 1), ("x2_dot", "0.0", 0), ("v1_dot", "x1_dot/x1", 0.5),
        ("v2_dot", "x1_dot*x2 + x2_dot*x1", 5), ("v3_dot", "cos(x2)*x2_dot", 0), ("v4_dot", "v1_dot + v2_dot", 5.5),
        ("v5_dot", "v4_dot - v3_dot", 5.5),
    ]  # fmt: skip
    explanation = sa.explain(lambda x1, x2: sa.jvp(survey, (x1, x2), (1.0, 0.0)), at=(2, 5))
    assert_rows(explanation, [row for pair in zip(PRIMAL, tangents, strict=True) for row in pair])


def test_the_reverse_table_of_the_survey():
    """Table 3 there, from the last row up."""
    explanation = sa.explain(sa.grad(survey, argnums=(0, 1)), at=[2, 5])
    adjoints = [
        ("v5_bar", "1", 1), ("v4_bar", "v5_bar", 1), ("v3_bar", "-v5_bar", -1), ("v1_bar", "v4_bar", 1),
        ("v2_bar", "v4_bar", 1), ("x2_bar", "cos(x2)*v3_bar", -0.284), ("x1_bar", "v2_bar*x2", 5),
        ("x2_bar", "x2_bar + v2_bar*x1", 1.716), ("x1_bar", "x1_bar + v1_bar/x1", 5.5),
    ]  # fmt: skip
    assert_rows(explanation, [*PRIMAL, *adjoints])
    assert "∂v3/∂x2 = cos(x2) = 0.283662" in explanation.text()


def test_reverse_over_forward_by_hand():
    """f(x) = x sin x: f' = sin x + x cos x, f'' = 2 cos x - x sin x."""
    explanation = sa.explain(sa.grad(lambda x: sa.jvp(lambda y: np.sin(y) * y, (x,), (1.0,))[1]), at=2)
    s, c = math.sin(2), math.cos(2)
    by_name = {line.name: line.value for line in explanation.stages[0].lines}
    assert by_name == pytest.approx({"v1": 2, "v1_dot": 1, "v2": s, "v2_dot": c, "v3": 2 * s, "v3_dot": s + 2 * c})
    adjoints = [(line.name, line.value) for line in explanation.stages[2].lines]
    assert [name for name, _ in adjoints[-4:]] == ["v4_bar", "v1_bar", "v1_bar", "x_bar"]
    assert [value for _, value in adjoints[-4:]] == pytest.approx([2, c - 2 * s, 2 * c - 2 * s, 2 * c - 2 * s])


@pytest.mark.parametrize(
    ("transformed", "expected"),
    [
        (lambda f: sa.grad(sa.grad(f)), -2.65088),
        (lambda f: lambda x: sa.jvp(sa.grad(f), (x,), (1.0,))[1], -2.65088),
        (lambda f: lambda x: sa.hvp(f, (x,), (1.0,)), -2.65088),
        (sa.hessian, -2.65088),
        (lambda f: sa.derivative(sa.derivative(f)), -2.65088),
        (lambda f: sa.grad(sa.grad(sa.grad(f))), -3 * math.sin(2) - 2 * math.cos(2)),
        (lambda f: lambda x: 2 * sa.grad(f)(x), 2 * 0.0770038),
        (lambda f: lambda x: sa.vjp(f, x)[1](3.0)[0], 3 * 0.0770038),
    ],
)
def test_any_nesting_has_values(transformed, expected):
    explanation = sa.explain(transformed(lambda x: np.sin(x) * x), at=2.0)
    assert f"{expected:.4f}"[:5] in explanation.text().split("result")[-1]
    assert all(line.value is not None for line in explanation.lines)


def test_values_are_shown_with_at_only_and_args_give_shapes():
    assert "0.693" not in str(sa.explain(survey, 2.0, 5.0))
    assert sa.explain(survey, 2.0, 5.0).lines[0].value is None
    wanted = rows(sa.explain(survey, at=(2, 5)))
    assert rows(sa.explain(survey, 1.0, 1.0, at=(2, 5))) == wanted
    assert rows(sa.explain(survey, at={"x2": 5, "x1": 2})) == wanted
    assert sa.explain("x^2 y", ["x", "y"], at=[3, 2]).lines[-1].value == 18
    assert sa.explain("x^2 y", at={"y": 2, "x": 3}).lines[-1].value == 18
    assert sa.explain("x^2", at=3).lines[-1].value == 9


def test_statements_keep_their_order():
    """Within one statement, lines that need fewest others come first; a later statement comes later."""

    def f(x):
        y = np.sin(np.cos(x))
        return y + np.exp(x)

    assert [line.formula for line in sa.explain(f, at=1).lines] == ["cos(x)", "sin(v1)", "exp(x)", "v2 + v3"]


def branch(x):
    return np.sqrt(x) if x > 0 else x**2


@pytest.mark.parametrize(
    ("f", "at", "words"),
    [
        (sa.grad(lambda x: np.log(x)), -1, r"v1 = log\(x\) at this point: it has no finite real value"),
        (sa.grad(lambda x: np.sqrt(x)), 0, "no finite derivative"),
        (sa.grad(lambda x: abs(x) * x), 0, "kink"),
        (sa.grad(lambda x: np.maximum(x, 2 * x)), 0, "kink"),
        (sa.grad(branch), 0, "kink"),
        (np.sin, math.nan, "finite numbers"),
        (np.sin, "here", "finite numbers"),
        (np.sin, [], "finite numbers"),
        (survey, (1, 2, 3), "2 arguments|3 example arguments"),
        (survey, {"x1": 1, "x3": 2}, "no variable x3|no number for x2"),
        (np.sin, [[1], [1, 2]], "equal length"),
    ],
)
def test_points_that_are_refused(f, at, words):
    with pytest.raises(sa.errors.ArgumentError, match=words):
        str(sa.explain(f, at=at))


def test_shapes_are_those_of_the_arguments():
    with pytest.raises(sa.errors.ArgumentError, match=r"shape \(3,\)"):
        sa.explain(lambda x: np.sum(x), np.ones(3), at=[1, 2])


def test_branches_that_are_not_taken_have_no_adjoint():
    shown = sa.explain(sa.grad(branch), at=4)
    assert {line.name for line in shown.stages[1].lines} == {"v5_bar", "v3_bar", "v1_bar"} or shown.lines
    assert shown.lines[-1].value == 0.25


def test_slopes_of_the_larger_operand_and_of_steps():
    shown = sa.explain(sa.grad(lambda x: np.maximum(x, 3.0) * x + np.floor(x) + np.sign(x)), at=5.5)
    assert shown.lines[-1].value == 11


def test_a_constant_function_has_no_lines():
    assert "result: 0" in str(sa.explain(sa.grad(lambda x: 3.0), at=2))


@pytest.mark.parametrize("name", ["expression", "number"])
def test_a_false_local_derivative_is_not_shown(monkeypatch, name):
    explanation = sa.explain(sa.grad(survey, argnums=(0, 1)), at=(2, 5))
    line = next(line for line in explanation.lines if line.name == "x2_bar")
    wrong = {"expression": line.terms[0].expression + 1, "number": line.terms[0].number + 1}[name]
    object.__setattr__(line.terms[0], name, wrong)
    with pytest.raises(sa.errors.InvariantError):
        str(explanation)


@pytest.mark.parametrize("slope", [1.0, 7.0, "cosine"])
def test_a_rule_of_the_user_s_is_used(slope):
    def rule(primals, tangents):
        return (np.cos(primals[0]) if slope == "cosine" else slope) * tangents[0]

    double = sa.custom_derivative(lambda x: 2 * x, rule)
    gradient = sa.grad(lambda x: double(x) * x + sa.stop_gradient(x))
    explanation = sa.explain(gradient, at=3)
    assert explanation.lines[-1].value == pytest.approx(gradient(3.0), rel=1e-14)
    assert f"result: x_bar = {gradient(3.0):.6g}" in str(explanation)


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (lambda x: x % 2, 3.5),
        (lambda x: special.gammaln(x) * x, 2.5),
        (lambda x: special.betainc(2.0, 3.0, x), 0.5),
        (lambda x: special.erf(x) / x, 0.5),
    ],
)
def test_functions_that_are_not_elementary(f, at):
    explanation = sa.explain(sa.grad(f), at=at)
    assert explanation.lines[-1].value == pytest.approx(sa.grad(f)(at), rel=1e-12)
    assert f"{sa.grad(f)(at):.6g}" in str(explanation).partition("result: ")[2]


@pytest.mark.parametrize("base", [2.0, 0.1])
def test_powers_of_floats(base):
    explanation = sa.explain(sa.grad(lambda x: base**x), at=3)
    assert explanation.lines[-1].value == pytest.approx(base**3 * math.log(base), rel=1e-14)
    str(explanation)


def test_symbols_of_the_user_s_need_not_be_real():
    x = sp.Symbol("x")
    gradient = sa.grad(sa.from_sympy(x, sp.Abs(x) * x))
    assert sa.explain(gradient, x, at=-2).named([x]).lines[-1].value == 4


def test_a_thousand_lines_are_all_checked():
    explanation = sa.explain(sa.grad(lambda x: np.sum(np.sin(x) * x)), at=np.linspace(1, 2, 200))
    assert len(explanation.lines) > 1000
    assert "hidden here, all are in explanation.stages[1].lines" in " ".join(str(explanation).split())
