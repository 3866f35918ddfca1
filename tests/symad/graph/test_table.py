"""The table: interning, leaves, aliases, pickling, size."""

import pickle

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.heads import Alias, negative_zero
from codegen.limits import limits
from symad.graph.graph import Graph

X = sp.Symbol("x", real=True)


def test_equal_rows_are_one_node_and_aliases_are_not():
    graph = Graph()
    x = graph.leaf(X)
    assert graph.node(sp.sin, x) == graph.node(sp.sin, x)
    first, second = graph.alias(x), graph.alias(x)
    assert first != second
    assert graph.node(sp.sin, first) != graph.node(sp.sin, second)
    assert [graph.heads[node] for node in (first, second)] == [Alias, Alias]


def test_nodes_are_as_written():
    graph = Graph()
    x, zero, one = graph.leaf(X), graph.number(0), graph.number(1)
    for head, operand in ((sp.Mul, zero), (sp.Mul, one), (sp.Add, zero)):
        node = graph.node(head, x, operand)
        assert (graph.heads[node], graph.operands[node]) == (head, (x, operand))


def test_a_commutative_pair_is_sorted_and_other_pairs_are_not():
    graph = Graph()
    x, y = graph.leaf(X), graph.leaf(sp.Symbol("y"))
    assert graph.pair(sp.Add, y, x) == graph.pair(sp.Add, x, y)
    assert graph.node(sp.Pow, y, x) != graph.node(sp.Pow, x, y)


def test_leaves_tell_types_precisions_and_signs_apart():
    graph = Graph()
    leaves = [
        graph.number(1), graph.number(1.0), graph.number(True), graph.leaf(sp.Float(1, 50)), graph.number(0.0),
        graph.number(-0.0), graph.number(0), graph.leaf(sp.Symbol("x")), graph.leaf(X), graph.number(float("nan")),
    ]  # fmt: skip
    assert len(set(leaves)) == len(leaves)
    assert graph.atoms[graph.number(-0.0)] is negative_zero
    assert graph.number(0.1) == graph.leaf(sp.Float(0.1))


def test_a_pickled_graph_is_the_same_table():
    graph = Graph()
    x = graph.leaf(X)
    parameter = graph.alias(x)
    node = graph.node(sp.Function("f"), graph.node(sp.Mul, parameter, graph.number(-0.0)))
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.operands == graph.operands
    assert [head.__name__ for head in copy.heads] == [head.__name__ for head in graph.heads]
    assert copy.atoms == graph.atoms
    assert copy.node(sp.Mul, parameter, copy.number(-0.0)) == graph.operands[node][0]
    assert copy.alias(x) == len(graph)


def test_a_stopped_value_of_a_pickled_graph_has_no_derivative():
    graph = Graph()
    x = graph.leaf(X)
    stopped, parameter = graph.stopped(x), graph.alias(x)
    copy = pickle.loads(pickle.dumps(graph))
    assert (set(copy.rules), set(graph.rules)) == ({stopped}, {stopped})
    assert copy.operands[stopped] == copy.operands[parameter] == (x,)


def test_a_chain_of_a_hundred_thousand_nodes_is_ordinary():
    graph = Graph()
    node = graph.leaf(X)
    for _ in range(10**5):
        node = graph.node(sp.sin, node)
    assert len(graph) == 10**5 + 1
    assert pickle.loads(pickle.dumps(graph)).operands[-1] == (node - 1,)


@pytest.mark.parametrize("head", [sp.StrictLessThan, sp.Equality, sp.And, sp.Not])
def test_truth_values_are_known(head):
    graph = Graph()
    x = graph.leaf(X)
    node = graph.node(head, *((graph.number(True),) * (1 if head is sp.Not else 2)))
    assert graph.is_boolean(graph.alias(node))
    assert not graph.is_boolean(x)


def test_a_time_limit_that_strikes_among_elements_of_arrays_says_so():
    graph = Graph()
    graph.elements(5000)
    graph.node(sp.sin, graph.leaf(X))
    with limits(max_seconds=1e-9), pytest.raises(sa.errors.LimitError, match=r"since the start.*so far: 1 sin"):
        graph.elements(1)


def test_elements_of_arrays_are_no_operations():
    def f(x):
        return np.sum(np.sin(x) * x)

    with limits(max_ops=10):
        assert sa.grad(f)(np.ones(5000)).shape == (5000,)
