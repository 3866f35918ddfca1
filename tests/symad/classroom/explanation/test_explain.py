"""explain: every variable of a nested derivative with its roles, checked against what the roles mean."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from tests.support import mixes


def f(x):
    return np.exp(x) * np.sin(x)


def evaluated(explanation, x):
    """Carry out the lines, one by one; return the values by name."""
    values = {"x": sp.Float(x, 30)}
    for line in explanation.lines:
        values[line.name] = sp.sympify(line.formula, locals=values).evalf(30)
    return values


def roles(explanation, kind, level):
    return [line.name for line in explanation.lines for role in line.roles if (role.kind, role.level) == (kind, level)]


@pytest.mark.parametrize("word", ["F", "R", "FF", "FR", "RF", "RR", "RFR", "FRF"])
def test_every_variable_has_its_roles_and_levels(word):
    """One parameter for each level; tangents where the mode is forward, cotangents where it is reverse."""
    explanation = sa.explain(mixes.nested(word, f), 1.0)
    for level, letter in enumerate(word, start=1):
        assert len(roles(explanation, "parameter", level)) == 1
        assert roles(explanation, "residual", level)
        there, absent = ("tangent", "cotangent") if letter == "F" else ("cotangent", "tangent")
        assert roles(explanation, there, level)
        assert not roles(explanation, absent, level)
    assert not roles(explanation, "parameter", len(word) + 1)
    (result,) = explanation.results
    assert result in roles(explanation, "tangent" if word[0] == "F" else "cotangent", 1)


@pytest.mark.parametrize("word", ["F", "RR", "FRF"])
def test_the_lines_compute_the_derivative(word):
    explanation = sa.explain(mixes.nested(word, f), 1.0)
    found = evaluated(explanation, 0.7)[explanation.results[0]]
    assert float(found) == pytest.approx(mixes.nested(word, f)(0.7), rel=1e-14)


def test_what_no_level_made_is_primal():
    explanation = sa.explain(lambda x: np.log(x) * sa.grad(f)(2 * x), 1.0)
    marks = {line.formula: line.marks for line in explanation.lines}
    assert marks["log(x)"] == marks["x*2"] == "primal"
    assert marks["v2"] == "parameter 1"
    assert [line.marks for line in explanation.lines].count("primal") == 3  # with the product at the end
    assert explanation.count()["primal"] == 6  # with f itself


def test_a_hessian_by_edge_pushing_has_cotangents_and_residuals():
    explanation = sa.explain(sa.hessian(lambda x: np.sin(x[0]) * x[1] ** 2), np.ones(2))
    assert explanation.count().keys() == {"primal", "parameter", "residual", "cotangent"}
    assert len(explanation.results) == 4
    assert f"result: {', '.join(explanation.results)}" in str(explanation)


@pytest.mark.parametrize(("mode", "kind"), [("fwd", "tangent"), ("rev", "cotangent"), ("cross-country", "tangent")])
def test_a_jacobian_by_elimination(mode, kind):
    explanation = sa.explain(sa.jacobian(lambda x: np.cumsum(np.sin(x) * x), mode=mode), np.ones(3))
    assert set(explanation.results) - {"0"} <= set(roles(explanation, kind, 1))


def test_nothing_is_noted_outside():
    """The roles of one explanation are not those of the next, nor of a trace inside."""
    first = sa.explain(sa.grad(f), 1.0)
    assert sa.explain(f, 1.0).count() == {"primal": 3}
    assert str(sa.explain(sa.grad(f), 1.0)) == str(first)
    inner = sa.explain(lambda x: x * sa.compile(sa.grad(f), 1.0)(0.5), 1.0)
    assert inner.count() == {"primal": 1}


def test_second_partials_of_a_forward_pass_are_residuals():
    """The factor -sin(v1) of the second derivative of the sine: it was noted, and lost in the pass for gradients."""
    shown = sa.explain(lambda x: sa.laplacian(lambda y: np.exp(y[0] * y[1]) * np.sin(y[0]))(x), np.ones(2))
    (line,) = [line for line in shown.lines if line.formula == "-v5"]
    assert "residual 1" in map(str, line.roles)
