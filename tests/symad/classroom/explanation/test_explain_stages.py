"""explain: its stages are carried out line by line, and checked against SymPy's derivatives at every stage."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.tracing.trace import to_program
from tests.support import mixes
from tests.support.cases import CASES

X = sp.Symbol("x", real=True)
FUNCTIONS = {
    # a function, and what it is on each of its paths, that of the point first
    "product": (lambda x: np.exp(x) * np.sin(x), sp.exp(X) * sp.sin(X)),
    "cube": (lambda x: x**3, X**3),
    "quotient": (lambda x: 1 / (1 + x * x), 1 / (1 + X**2)),
    "line": (lambda x: 2 * x + 1, 2 * X + 1),
    "root": (lambda x: np.sqrt(np.cosh(x)) * x, sp.sqrt(sp.cosh(X)) * X),
    "square of itself": (lambda x: (x * x) * (x * x), X**4),
    "where": (lambda x: np.where(x > 0, x**2 * np.log(x), -x), X**2 * sp.log(X)),
    "if": (lambda x: np.sin(x) * x if x > 0 else x**2, sp.sin(X) * X, X**2),
    "maximum": (lambda x: np.maximum(x**2, np.exp(-x)) * x, X**3),
}
POINT = 1.3


def number(expression, values):
    """Return the value of an expression at numbers, with 30 digits."""
    found = expression.xreplace(values).doit()
    return found if found in (sp.true, sp.false) else sp.N(found, 30)


def carry_out(explanation, inputs):
    """Carry out the stages in order; yield each with the values of its variables, tangents and cotangents."""
    values = {sp.Symbol(name, real=True): sp.Float(value, 30) for name, value in inputs.items()}
    for stage in explanation.stages:
        local = dict(values)
        if stage.kind == "linearized":
            local |= {explanation.book.adjoint(node, "tangent"): sp.Integer(1) for node in stage.level.parameters}
        for line in stage.lines:
            local[line.symbol] = number(line.expression, local)
        values |= {symbol: value for symbol, value in local.items() if "_" not in symbol.name or symbol in values}
        yield stage, local


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("word", [word for order in (1, 2, 3) for word in mixes.words(order)])
def test_every_stage_is_the_derivative_of_its_order(word, name):
    """The program of level k is the derivative of order n - k; linearized, pushed or transposed, it is the next one."""
    f, *expressions = FUNCTIONS[name]
    explanation = sa.explain(mixes.nested(word, f), 1.0)
    seen = set()
    for stage, values in carry_out(explanation, {"x": POINT}):
        if stage.level is None:
            continue
        expression = expressions[explanation.levels.index(stage.level) // len(word)]
        order = len(word) - stage.level.depth + (stage.kind != "program")
        expected = expression.diff(X, order).subs(X, POINT)
        found = [number(symbol, values) for symbol in stage.symbols] or [0]
        assert len(found) == 1
        assert float(found[0]) == pytest.approx(float(expected), rel=1e-13, abs=1e-13), stage.title
        seen.add((stage.level.depth, stage.kind))
    wanted = {(k, "pushed forward" if letter == "F" else "transposed") for k, letter in enumerate(word, start=1)}
    assert wanted <= seen
    assert {(k, "program") for k in range(1, len(word) + 1)} <= seen


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_linearized_and_transposed_rows_are_adjoint(case):
    """The transposed rows give the gradient, and its product with a direction is what the linearized rows give."""
    explanation = sa.explain(sa.grad(case.function), np.array(case.point))
    _, linearized, transposed = explanation.stages[:3]
    values = dict(zip(explanation.book.inputs.values(), map(sp.Float, case.point), strict=True))
    for stage in explanation.stages[:2]:
        for line in stage.lines:
            if not line.name.endswith("_dot"):
                values[line.symbol] = number(line.expression, values)
    parameters = linearized.level.parameters
    direction = np.linspace(0.3, 1.1, len(parameters))
    tangents = {explanation.book.adjoint(node, "tangent"): v for node, v in zip(parameters, direction, strict=True)}
    tangents, cotangents = values | tangents, dict(values)
    for line in linearized.lines:
        tangents[line.symbol] = number(line.expression, tangents)
    for line in transposed.lines:
        cotangents[line.symbol] = number(line.expression, cotangents)
    gradient = [float(cotangents.get(explanation.book.adjoint(node, "cotangent"), 0)) for node in parameters]
    np.testing.assert_allclose(gradient, sa.grad(case.function)(np.array(case.point)), rtol=1e-12, atol=1e-13)
    (slope,) = [float(tangents[symbol]) for symbol in linearized.symbols]
    assert slope == pytest.approx(float(np.dot(gradient, direction)), rel=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("word", ["F", "RR", "RFR"])
def test_the_program_of_the_result_is_the_derivative(word, name):
    f, expression, *_ = FUNCTIONS[name]
    explanation = sa.explain(mixes.nested(word, f), 1.0)
    values = {X: sp.Float(POINT, 30)}
    for line in explanation.lines:
        values[line.symbol] = number(line.expression, values)
    found = number(explanation.book.symbol(explanation.outputs[0]), values)
    expected = expression.diff(X, len(word)).subs(X, POINT)
    assert float(found) == pytest.approx(float(expected), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("word", ["F", "R", "FR", "RF", "RR", "RFR"])
def test_operations_are_those_of_the_kernel_and_of_the_function(word, name):
    f, *_ = FUNCTIONS[name]
    g = mixes.nested(word, f)
    explanation = sa.explain(g, 1.0)
    assert explanation.operations == sum(map(bool, to_program(sa.trace(g, 1.0)).operands))
    assert explanation.operations <= sum(stage.operations for stage in explanation.stages)
    if name != "if":  # whose paths are written one by one
        assert explanation.primal_operations == sa.trace(f, 1.0).count_ops()
