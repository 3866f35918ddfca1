"""Linearize and transpose: apply, transpose of the transpose, guards, cost."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import reachable
from symad.derivatives.level import open_level
from symad.derivatives.linear import linearize
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from tests.support.cases import CASES


def derivative_of(case):
    with open_level([np.array(case.point)]) as level:
        result = level.call(case.function)
        return level, result, linearize(level.build, result.flat, level.parameters.flat)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_transpose_of_the_transpose_is_the_identity(case):
    _, _, linear = derivative_of(case)
    assert linear.transpose().transpose() == linear
    assert linear.transpose().inputs == linear.outputs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_pairing_of_tangent_and_cotangent_is_the_same_both_ways(case):
    """<w, J v> = <J^T w, v> for the map and its transpose, on numbers."""
    level, result, linear = derivative_of(case)
    build = level.build
    v = [build.number(value) for value in np.random.default_rng(1).normal(size=len(linear.inputs)).tolist()]
    w = [build.number(0.7)] * len(linear.outputs)
    pushed, pulled = linear.apply(build, v), linear.transpose().apply(build, w)

    def dot(left, right):
        pairs = [(a, b) for a, b in zip(left, right, strict=True) if a is not None]
        return sum(np.prod(evaluate(build.graph, [a, b], level.scope.values)) for a, b in pairs)

    assert dot(pushed, w) == pytest.approx(dot(pulled, v), rel=1e-13)
    assert len(result.flat) == 1


def test_an_output_that_others_use_keeps_its_place_in_the_transpose():
    build = Builder(Graph())
    x = build.graph.alias(build.graph.leaf(sp.Symbol("x")))
    inner = build.call(sp.sin, x)
    outer = build.call(sp.exp, inner)
    linear = linearize(build, [inner, outer], [x])
    transposed = linear.transpose()
    assert transposed.transpose() == linear
    (gradient,) = transposed.apply(build, [build.one, build.one])
    cos, exp = build.call(sp.cos, x), outer
    assert gradient == build.mul(cos, build.add(build.one, exp))


def test_a_structural_zero_is_absent_also_behind_a_factor_of_zero():
    build = Builder(Graph())
    x, y = (build.graph.alias(build.graph.leaf(sp.Symbol(name))) for name in "xy")
    linear = linearize(build, [build.call(sp.sin, y)], [x])
    assert linear.rows == ()
    assert linear.apply(build, [build.one]) == [None]
    for zero in (0, 0.0, -0.0):
        product = build.graph.node(sp.Mul, build.graph.number(zero), x)
        assert linearize(build, [product], [x]).apply(build, [build.one]) == [None]


def test_a_guard_stays_outside_the_product():
    build = Builder(Graph())
    x = build.graph.alias(build.graph.leaf(sp.Symbol("x")))
    condition = build.call(sp.StrictGreaterThan, x, build.zero)
    node = build.select(condition, build.sqrt(x), build.zero)
    (gradient,) = linearize(build, [node], [x]).transpose().apply(build, [build.one])
    assert build.graph.heads[gradient] is sp.Piecewise
    value, guard, otherwise, _ = build.graph.operands[gradient]
    assert (guard, otherwise) == (condition, build.zero)
    assert build.graph.heads[value] is sp.Mul


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_gradient_costs_at_most_five_times_the_function(case):
    """Griewank's cheap gradient principle, counted in operations of the graph."""
    point = np.array(case.point)
    function = sa.trace(case.function, point).count_ops()
    both = sa.trace(sa.value_and_grad(case.function), point).count_ops()
    assert both <= 5 * function + 2


def test_of_terms_that_exclude_each_other_one_is_chosen():
    """Two branches that end in the same step: it is differentiated as if there were no branches."""

    def f(x):
        return np.exp(np.where(x > 0, np.sin(x), np.where(x > -1, x * x, np.cos(x))))

    assert sa.trace(sa.grad(lambda x: np.where(x > 0, x + 1.0, x + 2.0)), 1.0).expr() == 1.0
    forward, backward = sa.trace(sa.derivative(f), 1.0), sa.trace(sa.grad(f), 1.0)
    for traced in (forward, backward):
        heads = [traced.graph.heads[node] for node in reachable(traced.graph, traced.outputs.flat)]
        assert heads.count(sp.Add) == 0
    for point in (-2.0, -1.0, -0.5, 0.0, 0.5):
        branch = np.sin if point > 0 else np.square if point > -1 else np.cos
        expected = sa.derivative(lambda x, branch=branch: np.exp(branch(x)))(point)
        assert sa.compile(sa.grad(f), 1.0)(point) == pytest.approx(expected, rel=1e-15)
        assert sa.compile(sa.derivative(f), 1.0)(point) == pytest.approx(expected, rel=1e-15)


def test_a_derivative_is_taken_in_aliases_and_leaves_only():
    build = Builder(Graph())
    leaf = build.graph.leaf(sp.Symbol("x", real=True))
    half = build.mul(leaf, build.number(0.5))
    with pytest.raises(sa.errors.ArgumentError, match="no alias"):
        linearize(build, [build.mul(half, half)], [half])
    assert linearize(build, [build.mul(half, half)], [leaf]).rows
