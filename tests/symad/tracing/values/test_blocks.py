"""Operations on large arrays: entered by columns, they are the rows that element by element would have given."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad as sa
import symad.tracing.values.array_blocks
import symad.tracing.values.node_arrays
from codegen.ir.row_table import COMMUTATIVE
from codegen.limits import limits
from symad.errors import LimitError
from symad.graph.graph import Graph
from symad.tracing.values.array_blocks import BLOCK

N = 3 * BLOCK
DATA = np.random.default_rng(3).integers(-2, 3, N) / 2
MASK = DATA > 0


def twice(x):
    """The same rows again, one by one and as blocks, before and after each other."""
    first = [x[k] * x[k + 1] for k in range(0, N - 1, 3)]
    second = x[:-1] * x[1:]
    third = [x[k + 1] * x[k] for k in range(N - 1)]
    return np.concatenate([first, second, third, x[1:] * x[:-1], x[::-1][:-1] * x[::-1][1:]])


def again(x):
    """Blocks of which some rows are there already, and some twice."""
    y = np.sin(x[5:-5])
    indices = np.arange(N) // 2
    return np.concatenate([np.sin(x), y, np.sin(x[indices]), np.cos(x[indices]) * x[indices[::-1]]])


CASES = [
    lambda x: x * x + 2 * x - 3,
    lambda x: (x - DATA) / (x + 3) ** DATA,
    lambda x: 1.5 - x / DATA.round(),
    lambda x: DATA - x**2,
    lambda x: x // 3 + x % 2 + np.logaddexp2(x, 1),
    lambda x: np.where(x > 0.5, np.sqrt(x), -x),
    lambda x: np.where(MASK, x, 2 * x),
    lambda x: np.where(x > DATA, DATA, 1),
    lambda x: np.maximum(x, 0) + np.minimum(DATA, x) + np.fmax(x, x[::-1]),
    lambda x: (x > 0) * 2.0 + (x < 1) * x + ((x > 0) & (x < 1)),
    lambda x: np.sum(x[:, None] * x[None, :3], axis=0),
    lambda x: np.sum((x > 0.2), initial=3),
    lambda x: np.outer(x, x).reshape(3, -1).max(axis=0),
    lambda x: np.cumsum(x)[-3:] + np.prod(x) + np.max(x) + np.sum(x),
    lambda x: np.sum(x) + np.sum(x) + np.sum(x[::-1]),
    lambda x: np.sum(np.concatenate([DATA[:5], x])),
    lambda x: x.reshape(3, -1) @ DATA[:BLOCK] + DATA.reshape(3, -1) @ x[:BLOCK],
    lambda x: x.reshape(-1, 3) @ x[:3] + np.add.reduce(x.reshape(3, -1), where=x.reshape(3, -1) > 0)[0],
    lambda x: np.sign(x) + np.isfinite(x) + np.hypot(x, 2) + np.arctan2(DATA, x) + abs(x) + ~(x > 1),
    twice,
    again,
]


def canonical(graph: Graph, known: dict[object, int]) -> list[int]:
    """Return a number for each node, the same ones for equal expressions, in whatever order they were written."""
    numbers: list[int] = []
    for node, (head, operands) in enumerate(zip(graph.heads, graph.operands, strict=True)):
        parts = [numbers[operand] for operand in operands]
        key = (head, *(sorted(parts) if head in COMMUTATIVE else parts)) if parts else graph.atoms[node]
        numbers.append(known.setdefault(key, len(known)))
    return numbers


@pytest.mark.parametrize("number", range(len(CASES)))
def test_rows_are_those_of_elements(number, monkeypatch):
    point, known = np.linspace(0.1, 2, N), {}
    by_columns = sa.trace(CASES[number], point)
    for module in (symad.tracing.values.array_blocks, symad.tracing.values.node_arrays):
        monkeypatch.setattr(module, "BLOCK", 10**9)
    by_elements = sa.trace(CASES[number], point)
    first, second = (canonical(traced.graph, known) for traced in (by_columns, by_elements))
    assert [first[node] for node in by_columns.outputs.flat] == [second[node] for node in by_elements.outputs.flat]
    assert sorted(first) == sorted(second)  # as many rows, each of them once
    assert len(set(first)) == len(first)


def test_most_are_made_by_columns():
    """What is compared above does not take the path element by element."""
    for f in (CASES[0], CASES[1], CASES[13], CASES[16]):
        graph = sa.trace(f, np.ones(N)).graph
        made = sum(stop - start for start, stop in zip(graph.blocks.starts, graph.blocks.stops, strict=True))
        assert made > 0.5 * sum(map(bool, graph.operands))


def test_blocks_are_ascending_rows_of_one_head():
    graph = sa.trace(lambda x: again(x) @ again(x), np.ones(N)).graph
    ranges = list(zip(graph.blocks.starts, graph.blocks.stops, strict=True))
    assert all(stop <= start for (_, stop), (start, _) in pairwise(ranges))
    assert all(len(set(graph.heads[start:stop])) == 1 for start, stop in ranges)


def test_derivatives_go_through_blocks():
    point = np.linspace(0.1, 2, N)
    gradient = sa.grad(lambda x: np.sum(np.where(x > 1, x**3, DATA * x)))(point)
    np.testing.assert_allclose(gradient, np.where(point > 1, 3 * point**2, DATA), rtol=1e-14)


def test_limits_stop_blocks():
    with pytest.raises(LimitError, match="more than 5,000 operations"), limits(max_ops=5000):
        sa.trace(lambda x: np.sin(x) * np.cos(x), np.ones(10_000))


def test_equal_rows_are_one_whoever_is_first():
    graph = Graph()
    x = np.array(graph.own_leaves(2000, lambda k: sp.Symbol(f"x_{k}")))
    single = graph.node(sp.sin, 7)
    block = graph.rows(sp.sin, [x])
    assert block[7] == single
    assert graph.node(sp.sin, 1000) == block[1000]
    np.testing.assert_array_equal(graph.rows(sp.sin, [x[::-1]]), block[::-1])
    for k in range(100):  # more blocks than are compared
        graph.rows(sp.Pow, [x[10 * k : 10 * k + 10], int(x[k])])
    found = graph.rows(sp.Pow, [x[:10], 0])
    assert graph.node(sp.Pow, 3, 0) == found[3] == graph.operands.index((3, 0))
    assert len(set(zip(graph.heads, graph.operands, strict=True))) == len(graph) - 1999  # leaves apart
