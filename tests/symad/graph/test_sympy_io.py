"""SymPy in and out without loss, the let form both ways, sharing and depth."""

import math
import pickle

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.errors import LimitError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_let, from_sympy, to_let, to_sympy

x, y, z = sp.symbols("x y z")
f, g = sp.Function("f"), sp.Function("g", real=True)


def unevaluated(head, *arguments):
    return head(*arguments, evaluate=False)


ZOO = [
    x + y + z, x * y / z, -x, x - y, sp.Piecewise((x, x > 0), (y, sp.And(y > 0, z < 1)), (0, True)),
    sp.Sum(x**2, (x, 1, 10)), sp.Derivative(f(x), x), f(x) + g(y), unevaluated(sp.Add, x, x),
    unevaluated(sp.Mul, 2, unevaluated(sp.Add, x, y)), unevaluated(sp.Add, y, x),
    sp.Float("1.23456789012345678901234567890", 30) * x, sp.Float(1.5) + x, sp.And(x > 0, y < 1), sp.Ne(x, y),
    sp.Or(x > 1, sp.Not(sp.Eq(y, 2))), sp.Max(x, y, z), sp.Min(x, y), x ** sp.Rational(1, 3),
    unevaluated(sp.exp, unevaluated(sp.log, x)), sp.Integral(sp.sin(x), x), sp.besselj(1, x), sp.atan2(y, x),
    sp.Abs(x), sp.Mod(x, y), sp.floor(x), sp.Heaviside(x), sp.oo, sp.nan, sp.pi * sp.E, sp.I * x,
    sp.Symbol("a", positive=True) + sp.Symbol("a"), sp.Lambda(x, x**2), sp.Tuple(x, y), sp.Indexed("A", x),
    sp.polygamma(2, x), sp.Function("h")(x, y).diff(x), sp.ITE(x > 0, y > 0, z > 0), sp.Xor(x > 0, y > 0),
    unevaluated(sp.Pow, unevaluated(sp.Pow, x, 2), sp.S.Half), sp.zeta(x), sp.binomial(x, y), sp.conjugate(x),
    sp.Dummy("d") * 2, sp.hyper((1, 2), (3,), x), sp.Subs(sp.Derivative(f(x), x), x, 0), sp.log(sp.exp(x)),
]  # fmt: skip


@pytest.mark.parametrize("expression", ZOO, ids=str)
def test_round_trip_is_identical(expression):
    graph = Graph()
    nodes = from_sympy(graph, [expression])
    wanted = sp.srepr(expression)
    assert sp.srepr(to_sympy(graph, nodes)[0]) == wanted
    assert sp.srepr(to_sympy(pickle.loads(pickle.dumps(graph)), nodes)[0]) == wanted
    again = Graph()
    assert sp.srepr(to_sympy(again, from_let(again, *to_let(graph, nodes)))[0]) == wanted


def test_let_form_of_sympy_cse_comes_in_and_evaluates_to_the_same():
    expressions = [sp.sin(x + y) ** 2 + sp.exp(x + y), sp.exp(x + y) / (1 + sp.sin(x + y) ** 2)]
    graph = Graph()
    nodes = from_let(graph, *sp.cse(expressions))
    point = {x: 0.3, y: 0.5}
    for found, wanted in zip(to_sympy(graph, nodes), expressions, strict=True):
        assert abs(found.evalf(30, subs=point) - wanted.evalf(30, subs=point)) < 1e-28


def test_let_form_and_graph_have_the_same_size():
    graph = Graph()
    node = from_sympy(graph, [sp.sin(x) * sp.cos(sp.sin(x)) + sp.sin(x)])[0]
    replacements, reduced = to_let(graph, [node])
    assert [value for _, value in replacements] == [sp.sin(x)]
    again = Graph()
    from_let(again, replacements, reduced)
    assert len(again) == len(graph)


def tower(depth):
    graph = Graph()
    node = graph.leaf(x)
    for _ in range(depth):
        node = graph.node(sp.Mul, graph.node(sp.sin, node), node)
    return graph, node


def test_the_25_level_sharing_tower_stays_linear():
    graph, node = tower(25)
    assert len(graph) == 51
    replacements, reduced = to_let(graph, [node])
    assert len(replacements) == 24
    again = Graph()
    assert from_let(again, replacements, reduced) == [node]
    assert len(again) == len(graph)
    with pytest.raises(LimitError, match=r"51 nodes as a graph but more than 100000 as a tree.*let form"):
        to_sympy(graph, [node])


def test_a_shared_sympy_expression_comes_in_linearly():
    expression = x
    for _ in range(25):
        expression = sp.Mul(sp.sin(expression), expression, evaluate=False)
    graph = Graph()
    from_sympy(graph, [expression])
    assert len(graph) == 51


def test_a_deep_chain_has_a_let_form_that_sympy_can_print():
    graph = Graph()
    node = graph.leaf(x)
    for _ in range(10**4):
        node = graph.node(sp.sin, node)
    replacements, reduced = to_let(graph, [node])
    assert len(replacements) == 250
    assert "sin(sin(" in str(replacements[-1][1]) + str(reduced[0])


def test_binary_import_splits_sums_products_and_branches():
    graph = Graph()
    (node,) = from_sympy(graph, [sp.Piecewise((x + y + z, x > 0), (x * y * z, y > 0), (x, True))], binary=True)
    counts = {len(operands) for operands in graph.operands if operands}
    assert counts == {2, 4}
    assert graph.heads[node] is sp.Piecewise


def test_cases_that_contradict_themselves_vanish() -> None:
    x = sp.Symbol("x", real=True)
    first = sa.derivative(lambda t: t**t)(x)
    assert first == x**x * sp.log(x) + sp.Piecewise((0, sp.Eq(x, 0)), (x * x ** (x - 1), True))
    assert not sa.derivative(lambda t: t**t, 2)(x).has(sp.And)
    assert float(first.subs(x, 1.5)) == pytest.approx(1.5**1.5 * (math.log(1.5) + 1))


def test_values_lose_the_cases_that_their_condition_excludes() -> None:
    x = sp.Symbol("x", real=True)
    for order in (1, 2):
        expression = sa.derivative(lambda t: t ** (t + 1), order)(x)
        assert not any(part.has(sp.Piecewise) for case in expression.atoms(sp.Piecewise) for part, _ in case.args)
        for number in (0.5, 2.0, -2.0):
            expected = sa.derivative(lambda t: t ** (t + 1), order)(number)
            assert (
                complex(expression.subs(x, number)).real == pytest.approx(expected, nan_ok=True) or expected != expected
            )


def test_an_expression_too_deep_for_sympy_is_told() -> None:
    def nested(t):
        for _ in range(400):
            t = np.sin(t) + 1
        return t

    with pytest.raises(LimitError, match="nested too deeply for SymPy"):
        sa.grad(nested)(sp.Symbol("x"))
