"""Loops are compared with their straight lines where numbers mean something, and what is wrong is seen there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import symad as sa
from codegen.loops.find.agreement import agree
from codegen.loops.find.find import find
from codegen.loops.find.plain_rows import plain_rows
from codegen.loops.place.buffers import Arrays
from codegen.loops.place.place_nodes import place


def steep(x):
    """The last digits of the product decide on everything, but where x is small."""
    return np.sin(np.prod(np.tanh(x) + 1))


def test_the_last_digits_of_steep_functions_are_no_disagreement():
    x = np.full(60, 0.01)
    assert sa.plan(sa.grad(steep), x).loops
    rolled, straight = (sa.compile(sa.grad(steep), x, roll=roll)(x) for roll in ("always", "never"))
    np.testing.assert_allclose(rolled, straight, rtol=1e-12)


@pytest.mark.parametrize("f", [steep, lambda x: np.sum(np.tanh(x) + 1)])
def test_a_wrong_table_is_seen(f):
    traced = sa.trace(f, np.ones(60))
    rows = plain_rows(traced.graph, traced.inputs.nodes, traced.outputs.nodes, [])
    x = rows.rows_of(traced.inputs.nodes)
    arrays = Arrays([("x", x)], [(rows.rows_of(traced.outputs.nodes.reshape(())), None)])
    found = find(rows, x, rows.rows_of(traced.outputs.nodes).ravel(), [], lambda row: None)
    assert agree(place(rows, arrays, found.loops, found.sums, "f"), rows, arrays)
    number = next(k for k, loop in enumerate(found.loops) if any(np.isin(column, x).any() for column in loop.reads))
    loop = found.loops[number]
    wrong = replace(loop, reads=tuple(np.where(column == x[3], x[4], column) for column in loop.reads))
    loops = [*found.loops[:number], wrong, *found.loops[number + 1 :]]
    assert not agree(place(rows, arrays, loops, found.sums, "f"), rows, arrays)
