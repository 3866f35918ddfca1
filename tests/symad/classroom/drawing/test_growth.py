"""Growth: the numbers against independent counts; limits end a way and say so."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from contextlib import contextmanager

import numpy as np
import pytest
import sympy as sp

import symad.classroom.drawing.growth as growing
from codegen.heads import Alias
from symad.classroom.drawing.boxes import count_label
from symad.classroom.drawing.growth import growth
from symad.errors import ArgumentError, LimitError
from symad.tracing.trace import to_program, trace
from symad.transforms.first_order import derivative

X = sp.Symbol("x", real=True)


def swelling(x):
    return np.exp(x * np.sin(x))


def tower(x):
    return np.sin(np.sin(np.sin(np.sin(x))))


def in_tree(expression: sp.Basic) -> int:
    """Count the operations of a tree, each product and sum by pairs."""
    return sum(
        max(1, len(node.args) - 1) if node.is_Add or node.is_Mul else 1
        for node in sp.preorder_traversal(expression)
        if node.args
    )


def test_what_sympy_makes_is_counted_on_its_trees() -> None:
    grown = growth(swelling, 1.0, orders=4)
    expressions = [sp.exp(X * sp.sin(X)).diff(X, order) for order in range(5)]
    assert grown.counts["sympy.diff tree"] == [in_tree(expression) for expression in expressions]
    for expression, count in zip(expressions, grown.counts["sympy.diff cse"], strict=True):
        replaced, reduced = sp.cse([expression])
        assert count == sum(in_tree(part) for part in (*(right for _, right in replaced), *reduced))


@pytest.mark.parametrize("f", [swelling, tower], ids=["swelling", "tower"])
def test_graphs_have_the_operations_of_their_programs(f) -> None:
    grown = growth(f, 1.0, orders=5)
    for order, count in enumerate(grown.counts["AD graph"]):
        program = to_program(trace(derivative(f, order), 1.0))
        assert count == sum(bool(operands) for operands in program.operands)


def test_trees_are_those_that_the_graphs_stand_for() -> None:
    def unfolded(graph, node):
        below = sum(unfolded(graph, operand) for operand in graph.operands[node])
        return below + (graph.heads[node] is not Alias and bool(graph.operands[node]))

    grown = growth(tower, 1.0, orders=3)
    for order, count in enumerate(grown.counts["AD tree"]):
        traced = trace(derivative(tower, order), 1.0)
        assert count == unfolded(traced.graph, *traced.outputs.flat)


def test_shared_graphs_grow_slower_than_trees() -> None:
    grown = growth(tower, 1.0, orders=6)
    last = {way: row[-1] for way, row in grown.counts.items()}
    assert last["AD tree"] > 100 * last["AD graph"]
    assert last["Taylor graph"] < last["AD graph"] * 1.5


def test_limits_end_a_way_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "TREE_LIMIT", 100)
    monkeypatch.setattr(growing, "CSE_LIMIT", 30)
    monkeypatch.setattr(growing, "GRAPH_LIMIT", 30)
    grown = growth(swelling, 1.0, orders=8)
    assert [len(row) for row in grown.counts.values()] == [7, 4, 5, 5, 5]
    assert grown.stopped == {
        "sympy.diff cse": "stopped before order 4, of 48 operations",
        "sympy.diff tree": "stopped at order 6, of 128 operations",
        "AD tree": "stopped at order 4, of 41 operations",
        "AD graph": "stopped at order 4, of 41 operations",
        "Taylor graph": f"stopped at order 4, of {grown.counts['Taylor graph'][-1]} operations",
    }
    assert "sympy.diff tree: stopped at order 6, of 128 operations." in grown.text(100)


def test_a_formula_too_large_for_sympy_stops_its_ways_only() -> None:
    def deep(x):
        for _ in range(40):
            x = np.sin(x) * x
        return x

    grown = growth(deep, 1.0, orders=2)
    assert grown.counts["sympy.diff tree"] == []
    assert "stopped before order 0" in grown.stopped["sympy.diff tree"]
    assert grown.counts["AD tree"][0] == 2 * (2**40 - 1)
    assert grown.counts["AD graph"][0] == 80


def test_time_ends_a_way(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def no_time_for_order_2(seconds, what):
        if what == "order 2":
            raise LimitError(f"{what} took longer than {seconds:g} s")
        yield

    monkeypatch.setattr(growing, "time_limit", no_time_for_order_2)
    grown = growth(swelling, 1.0, orders=3)
    assert [len(row) for row in grown.counts.values()] == [2, 2, 4, 4, 4]
    assert grown.stopped == {"sympy.diff tree": "stopped before order 2: order 2 took longer than 10 s"}


def test_formulas_and_expressions() -> None:
    counts = growth(swelling, 1.0, orders=2).counts
    assert growth("exp(x sin(x))", "x", orders=2).counts == counts
    assert growth(sp.exp(X * sp.sin(X)), X, orders=2).counts == counts


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="an x of 2 numbers"):
        growth(lambda x: x @ x, np.ones(2))
    for orders in (0, 1.5, 1000):
        with pytest.raises(ArgumentError, match="orders="):
            growth(swelling, 1.0, orders=orders)


def test_huge_counts_are_readable() -> None:
    assert [count_label(n) for n in (0, 999, 1000, 10**9 - 1)] == ["0", "999", "1 000", "999 999 999"]
    assert count_label(2**1000) == "≈ 1.07·10³⁰¹"
    assert count_label(12345678901) == "≈ 1.23·10¹⁰"
    assert count_label(10**5000) == "≈ 1.00·10⁵⁰⁰⁰"


def test_forms(tmp_path) -> None:
    grown = growth(swelling, 1.0, orders=3)
    ET.fromstring(grown._repr_svg_())
    for suffix in (".svg", ".html", ".tex", ".txt"):
        assert grown.save(tmp_path / f"growth{suffix}").stat().st_size > 300
    assert grown.title == "Growth of the derivatives of swelling"
