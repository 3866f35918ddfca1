"""Every node knows the line of the user's code that made it; errors about a node name it."""

import numpy as np
import pytest
import scipy.special
import sympy as sp

import symad as sa
from symad.errors import ArgumentError, LoweringError, RuleError
from symad.graph.sympy_io import to_let
from symad.tracing.calling.user_place import written_place

X = np.array([0.5, 2.0])


def model(x):
    scaled = 2.0 * x[0]
    wave = np.sin(x) * scaled
    total = np.sum(wave**2)
    for value in x:
        total = total + abs(value)
    return np.sqrt(total)


def lines_of(traced, head):
    first = model.__code__.co_firstlineno
    places = {
        written_place(traced.graph, node) for node in range(len(traced.graph)) if traced.graph.heads[node] is head
    }
    assert all(place.startswith(__file__) for place in places)
    return {int(place.rpartition(":")[2]) - first for place in places}


def test_every_node_has_the_line_that_made_it():
    traced = sa.trace(model, X)
    assert lines_of(traced, sp.sin) == {2}
    assert lines_of(traced, sp.Mul) == {1, 2}
    assert lines_of(traced, sp.Pow) == {3, 6}
    assert lines_of(traced, sp.Abs) == {5}
    assert lines_of(traced, sp.Add) == {3, 5}


def test_nodes_of_a_derivative_belong_to_the_line_that_takes_it():
    def slope(x):
        inner = x * 2.0
        return sa.grad(np.sin)(inner)

    traced = sa.trace(slope, 1.0)
    first = slope.__code__.co_firstlineno
    (cosine,) = (node for node in range(len(traced.graph)) if traced.graph.heads[node] is sp.cos)
    assert written_place(traced.graph, cosine) == f"{__file__}:{first + 2}"


def test_a_head_without_derivative_is_named_with_its_line():
    def f(x):
        order = x + 1.0
        return scipy.special.jv(order, 2.0) * x

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(RuleError, match=rf"test_source_lines\.py:{line}: besselj has no derivative in its operand 0"):
        sa.grad(f)(1.5)


def test_a_head_without_lowering_is_named_with_its_line():
    def f(x):
        y = x + 1.0
        return y * sp.Function("g")(sp.Integer(3))

    line = f.__code__.co_firstlineno + 2
    with pytest.raises((LoweringError, ArgumentError), match=rf"test_source_lines\.py:{line}: .*g"):
        sa.compile(f, 1.5)


def test_a_free_symbol_is_named_with_its_line():
    def f(x):
        return x * sp.Symbol("t")

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(ArgumentError, match=rf"test_source_lines\.py:{line}: the free symbol t"):
        sa.compile(f, 1.5)


def test_lines_can_be_switched_off():
    with sa.source_lines(False):
        traced = sa.trace(model, X)
        (slope,) = {sa.grad(np.sin)(0.0)}
    assert traced.graph.marks == []
    assert written_place(traced.graph, len(traced.graph) - 1) == ""
    assert slope == 1.0
    assert to_let(traced.graph, traced.outputs.flat) == sa.trace(model, X).let()


def test_the_marks_take_little_room():
    """One mark for each operation of the user's code, not one for each node."""
    traced = sa.trace(lambda x: np.sum(np.sin(x) * x), np.zeros(1000))
    assert len(traced.graph) > 3000
    assert len(traced.graph.marks) <= 6
