"""The tables are complete and right: every head has lowering, rule and case; every partial is a derivative."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from codegen.evaluation.interpret import evaluate
from codegen.functions.intrinsics import INTRINSICS
from symad.derivatives.second_order import SecondPartials
from symad.errors import RuleError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.overrides import GATES, OVERRIDES
from symad.rules.partials import edges
from tests.support.cases import HEAD_POINTS, REFUSED, TRUTH_HEADS

DIGITS = 40
HEADS = sorted(HEAD_POINTS, key=lambda head: head.__name__)
# heads that the derivative tests leave out: truth values, the gated Piecewise, and im, which is refused
VALUE_ONLY = {sp.Piecewise, sp.im, *TRUTH_HEADS}


def node_of(head, point):
    """A graph with one node of a head; the operands that are orders are leaves, the others aliases of symbols."""
    build = Builder(Graph())
    graph = build.graph
    refused = REFUSED.get(head, ())
    operands = [
        graph.number(value) if k in refused else graph.alias(graph.leaf(sp.Symbol(f"u{k}", real=True)))
        for k, value in enumerate(point)
    ]
    active = {operand for k, operand in enumerate(operands) if k not in refused}
    return build, graph.node(head, *operands), operands, active


def exact_at(build, operands, point, node):
    values = {operand: mpmath.mpf(value) for operand, value in zip(operands, point, strict=True)}
    return evaluate(build.graph, [node], values, arithmetic="reference", digits=DIGITS + 20)[0]


def reference(head, point, position):
    function = INTRINSICS[head].reference
    return lambda u: function(*[mpmath.mpf(v) if k != position else u for k, v in enumerate(point)])


def close(found, wanted):
    return abs(found - wanted) <= mpmath.mpf(10) ** -DIGITS * max(1, abs(wanted))


def test_every_lowered_head_has_a_case():
    missing = [head.__name__ for head in INTRINSICS if head not in HEAD_POINTS and head not in VALUE_ONLY]
    assert not missing, f"heads with a lowering but no line in tests/support/cases.py: {missing}"


def test_every_head_with_a_case_or_rule_has_a_lowering():
    named = {*HEAD_POINTS, *OVERRIDES, *GATES, *TRUTH_HEADS}
    missing = [head.__name__ for head in named if head not in INTRINSICS]
    assert not missing, f"heads with a rule or a case but no row in codegen.functions.intrinsics: {missing}"


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
def test_first_partials_are_40_digit_derivatives(head):
    for point in HEAD_POINTS[head]:
        build, node, operands, active = node_of(head, point)
        found = {source: (c, g) for c, source, g in edges(build, node, active.__contains__)}
        for position, operand in enumerate(operands):
            if operand not in active:
                continue
            with mpmath.workdps(DIGITS + 20):
                wanted = mpmath.diff(reference(head, point, position), mpmath.mpf(point[position]))
            coefficient, guard = found.get(operand, (build.zero, None))
            value = exact_at(build, operands, point, build.one if coefficient is None else coefficient)
            passes = guard is None or exact_at(build, operands, point, guard)
            assert close(value if passes else 0, wanted), f"{head.__name__}{point}, operand {position}"


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
@pytest.mark.thinned
def test_second_partials_are_40_digit_derivatives(head):
    for point in HEAD_POINTS[head]:
        build, node, operands, active = node_of(head, point)
        found = SecondPartials(build, active).of(node)
        for i, first in enumerate(operands):
            for j, second in enumerate(operands[: i + 1]):
                if first not in active or second not in active:
                    continue
                orders = [0] * len(point)
                orders[i] += 1
                orders[j] += 1
                with mpmath.workdps(DIGITS + 20):
                    function = INTRINSICS[head].reference
                    exact_point = tuple(mpmath.mpf(value) for value in point)
                    wanted = (
                        mpmath.diff(function, exact_point, tuple(orders))
                        if len(point) > 1
                        else mpmath.diff(function, exact_point[0], 2)
                    )
                node_found = found.get((first, second), found.get((second, first)))
                value = 0 if node_found is None else exact_at(build, operands, point, node_found)
                assert close(value, wanted), f"{head.__name__}{point}, operands {i} and {j}"


@pytest.mark.parametrize("head", sorted(REFUSED, key=lambda head: head.__name__), ids=lambda head: head.__name__)
def test_operands_without_a_derivative_are_refused_by_name(head):
    point = HEAD_POINTS[head][0]
    build = Builder(Graph())
    operands = [build.graph.leaf(sp.Symbol(f"u{k}", real=True)) for k in range(len(point))]
    node = build.graph.node(head, *operands)
    with pytest.raises(RuleError, match=f"{head.__name__} has no derivative in its operand {REFUSED[head][0]}"):
        edges(build, node, lambda operand: True)
    others = set(operands) - {operands[k] for k in REFUSED[head]}
    assert len(edges(build, node, others.__contains__)) == len(others)  # a constant order is no obstacle


@pytest.mark.parametrize("head", TRUTH_HEADS, ids=lambda head: head.__name__)
def test_truth_values_are_piecewise_constant(head):
    build = Builder(Graph())
    symbols = [build.graph.leaf(sp.Symbol(name, real=True)) for name in "xy"]
    if issubclass(head, sp.logic.boolalg.BooleanFunction):
        symbols = [build.graph.node(sp.StrictGreaterThan, u, build.zero) for u in symbols]
    count = {sp.Not: 1, sp.ITE: 3}.get(head, 2)
    node = build.graph.node(head, *(symbols * 2)[:count])
    assert edges(build, node, lambda operand: True) == []


def test_an_undefined_function_is_refused_by_name():
    build = Builder(Graph())
    x = build.graph.leaf(sp.Symbol("x"))
    with pytest.raises(RuleError, match=r"f has no derivative in its operand 0.*undefined function"):
        edges(build, build.graph.node(sp.Function("f"), x), lambda operand: True)


def test_a_wrong_sign_in_a_rule_would_be_caught():
    """The check itself can fail: the derivative of sine with the wrong sign is noticed."""
    build, node, operands, active = node_of(sp.sin, (0.7,))
    [(coefficient, _, _)] = edges(build, node, active.__contains__)
    with mpmath.workdps(DIGITS + 20):
        wanted = mpmath.diff(mpmath.sin, mpmath.mpf(0.7))
    assert close(exact_at(build, operands, (0.7,), coefficient), wanted)
    assert not close(exact_at(build, operands, (0.7,), build.neg(coefficient)), wanted)
