"""Schedules for computing the same nodes again and again from other numbers.

What depends on none of these is computed once, and the numbers of an array are let go where they have been read last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from symad.graph.array_operands import Nodes
from symad.graph.array_values import Part, Schedule, Step, Values, schedule
from symad.graph.graph import Graph


def schedule_again(graph: Graph, outputs: Sequence[Nodes], inputs: Sequence[Nodes], values: Values) -> Schedule:
    """Return what computes nodes from those that are given, which have numbers now.

    >>> import numpy as np
    >>> import sympy as sp
    >>> graph, values = Graph(), dict[int, float]()
    >>> x, c = graph.own_leaf(sp.Symbol("x")), graph.leaf(sp.Float(2.0))
    >>> y = graph.node(sp.Mul, x, graph.node(sp.Mul, c, c))
    >>> values[x] = 1.0
    >>> made = schedule_again(graph, [np.array([y])], [np.array([x])], values)
    >>> values.clear()
    >>> values[x] = 3.0
    >>> made.carry_out(graph, values)
    >>> values[y], [nodes for nodes, *_ in made.parts]
    (12.0, [[3]])
    """
    readings = [graph.arrays.reading(nodes) for nodes in outputs if nodes.size]
    arrays = [array for reading in readings for array in reading.array_nodes]
    single = [node for reading in readings for node in reading.single_nodes]
    whole = schedule(graph, single, arrays, values)
    still, moving = _split(graph, whole, {node for nodes in inputs for node in graph.arrays.roots(nodes)})
    still.carry_out(graph, values)
    kept, last_reader = {array.first for array in arrays}, dict[int, int]()
    for number, (_, step, _) in enumerate(moving.parts):
        if step is not None:
            last_reader.update(dict.fromkeys([step[0].first, *_arrays_read(step)], number))
    constants = {step[0].first for _, step, _ in still.parts if step is not None}
    last: dict[int, list[int]] = {}
    for first, number in last_reader.items():
        if first not in kept and first not in constants:
            last.setdefault(number, []).append(first)
    numbers = {node: values[node] for nodes, _, elements in still.parts for node in (*nodes, *elements)}
    of_arrays = {first: graph.arrays.values[first] for first in constants & (last_reader.keys() | kept)}
    return replace(moving, last=last, constants=(numbers, of_arrays))


def _split(graph: Graph, whole: Schedule, moving: set[int]) -> tuple[Schedule, Schedule]:
    """Return what depends on none of some nodes, and the rest; `moving` has these, an array node by its first."""
    moving.update(node for array, elements in whole.known if array.first in moving for node in elements)
    still, rest = list[Part](), list[Part]()
    for nodes, step, elements in whole.parts:
        for node in nodes:
            if not moving.isdisjoint(graph.operands[node]):
                moving.add(node)
        if step is not None and not moving.isdisjoint(_read(step)):
            moving.update([step[0].first, *elements])
        moves = step is not None and step[0].first in moving
        rest.append(([node for node in nodes if node in moving], step if moves else None, elements if moves else []))
        still.append(
            ([node for node in nodes if node not in moving], None if moves else step, [] if moves else elements)
        )
    return Schedule([], list(filter(any, still))), Schedule(whole.known, list(filter(any, rest)))


def _arrays_read(step: Step) -> Iterable[int]:
    return [array.first for reading in step[2] for array in reading.array_nodes]


def _read(step: Step) -> Iterable[int]:
    return [*_arrays_read(step), *(node for reading in step[2] for node in reading.single_nodes)]
