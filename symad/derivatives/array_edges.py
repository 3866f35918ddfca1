"""The partial derivatives of an operation on arrays: those of its head, for all elements at once.

The rules are the ones of scalars (`symad.rules.partials`): they are asked once, on a small graph whose leaves stand for
the operands, and what they write there is entered into the graph as array nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import sympy as sp

import codegen.heads as h
from codegen.ir.program import reachable
from symad.graph.array_nodes import ArrayNode, Nodes, Reading, TruthElement
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.partials import Edge, edges
from symad.tracing.control.array_graph import enter
from symad.tracing.values.array_blocks import CONSTANTS, Template

FORMS = 1024  # bound of the cache of forms, keyed by what an operand is made of and which slots are active

_OUTER = frozenset({sp.Mul, sp.Pow, sp.log, h.log1p})  # heads whose operands' heads are looked at, to be differentiated
_INNER = frozenset({sp.Pow, sp.Abs, sp.exp, sp.cosh, sp.Add})
_DEPTH = 2

Form: TypeAlias = tuple[Any, ...]  # ("slot", k), ("constant", atom) or (head, form, form...)


def array_edges(
    graph: Graph, array: ArrayNode, is_active: Callable[[Reading], bool]
) -> list[tuple[Nodes | None, Reading, Nodes | None]]:
    """Return the edges from the active operands of an operation on each element: coefficient, source, guard.

    All of them broadcast to the shape of the array node. A coefficient of None is 1, a guard of None always holds.
    """
    described = _Described(graph)
    form = described.node(array, 0)
    active = tuple(is_active(slot) for slot in described.slots)
    kinds = tuple(described.kinds)
    template, rows, found_edges = _edges_of(form, kinds, active)
    found: dict[int, Nodes | Reading] = {rows[part]: reading for part, reading in described.readings.items()}
    found[rows[form]] = array.ids
    parts = {row: part for part, row in rows.items()}
    wanted = [row for c, _, g in found_edges for row in (c, g) if row is not None]
    enter(graph, template, found, reachable(template, wanted) if wanted else ())

    return [(_nodes(found, c), described.readings[parts[source]], _nodes(found, g)) for c, source, g in found_edges]


def _nodes(found: dict[int, Nodes | Reading], row: int | None) -> Nodes | None:
    part = None if row is None else found[row]
    return part.ids if isinstance(part, Reading) else part


class _Described:
    """What the operands of an array node are made of, as far as rules look at it; equal operands are one slot."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.slots: list[Reading] = []
        self.kinds: list[str] = []
        self.readings: dict[Form, Reading] = {}

    def node(self, array: ArrayNode, depth: int) -> Form:
        looks = array.head in _OUTER if depth == 0 else depth < _DEPTH
        return (array.head, *[self.operand(reading, depth + 1 if looks else _DEPTH + 1) for reading in array.operands])

    def operand(self, reading: Reading, depth: int) -> Form:
        graph = self.graph
        if reading.size == 1 and issubclass(graph.heads[int(reading.ids.flat[0])], CONSTANTS):
            form: Form = ("constant", graph.atoms[int(reading.ids.flat[0])])
        else:
            inner = None if reading.view is None else reading.view.node
            if (
                depth <= _DEPTH
                and inner is not None
                and inner.kind == "each"
                and inner.head in _INNER
                and reading.view is not None
                and reading.view.whole
                and reading.kept == inner.shape
            ):
                form = self.node(inner, depth)
            else:
                form = ("slot", self._slot(reading))
        self.readings[form] = reading
        return form

    def _slot(self, reading: Reading) -> int:
        for k, other in enumerate(self.slots):
            if other.same_as(reading):
                return k
        self.slots.append(reading)
        if reading.view is not None:
            is_truth = reading.view.node.element is TruthElement
        else:
            is_truth = self.graph.is_boolean(int(reading.ids.flat[0]))
        self.kinds.append("truth" if is_truth else "number")
        return len(self.slots) - 1


@lru_cache(maxsize=FORMS)
def _edges_of(
    form: Form, kinds: tuple[Any, ...], active: tuple[bool, ...]
) -> tuple[Template, dict[Form, int], list[Edge]]:
    """Return the edges of a form on a small graph, and the rows that its parts have there."""
    template = Template()
    slots = [template.slot(kind) for kind in kinds]
    rows: dict[Form, int] = {}
    moving = {slot for slot, moves in zip(slots, active, strict=True) if moves}

    def made(part: Form) -> int:
        if part in rows:
            return rows[part]
        if part[0] == "slot":
            row = slots[part[1]]
        elif part[0] == "constant":
            row = template.leaf(part[1])
        else:
            operands = tuple(rows[operand] if operand in rows else made(operand) for operand in part[1:])
            row = template.canonical(part[0], operands)
            if moving.intersection(operands):
                moving.add(row)
        rows[part] = row
        return row

    node = made(form)
    return template, rows, edges(Builder(template), node, moving.__contains__)
