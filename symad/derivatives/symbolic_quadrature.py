"""Integrals in kernels: adaptive steps, as a loop of values.

The integrand is traced once, at a symbol. The loop evaluates it at the places of Gauss and Kronrod on a piece of the
interval, halves the piece where the two formulas differ, and doubles it where they agree. All derivatives of one order
are integrals in one such loop, and the integrand at the bounds. Integrals that are not exact enough after STEPS pieces
are NaN. Inside another integrand there are PANELS pieces, and their error is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp

from codegen.heads import Alias
from codegen.ir.program import needed
from codegen.records import dataclass
from symad.derivatives.custom import dependencies, differentiated_in, open_parameters
from symad.derivatives.level import deliver
from symad.derivatives.quadrature import (
    JUMPS,
    Integrals,
    formula,
    operands_of,
    refuse_moving_choice,
    smoothed,
    unfolded,
)
from symad.derivatives.symbolic_equations import called, current_scope, factor_of
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.tracing.calling.function_names import argument_names, name_of
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.control.written import repeated
from symad.tracing.control.written_bodies import leaves
from symad.tracing.scipy.objects import is_plain
from symad.tracing.values.array import wrap as wrap_array
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_trees import Tree, lift, lift_arguments, wrap

Function = Callable[..., Any]

STEPS = 400
PANELS = 4
CLOSE = 1e-11  # how far the two formulas may differ on a piece, relative to the integral of the absolute value
ENOUGH = 1e-6  # and on all pieces
LEAST = 2.0**-90  # of the interval: a piece that is taken as it is


def integral_on_symbols(
    f: Function, a: Any, b: Any, args: tuple[Any, ...], points: Sequence[float] = ()
) -> tuple[Any, Any]:
    """Return the integral of f(t, *args) over t from a to b in a kernel, and an estimate of its error."""
    with open_scope() as scope:
        arguments = lift_arguments(scope, args, argument_names(f, len(args) + 1)[1:])
        graph = scope.graph
        ends = [int(nodes_of(end, scope)) for end in (a, b)]
        (variable,) = leaves(graph, 1).tolist()
        node = _at(scope, f, arguments, variable, inside=True)
        _check_paths(scope, node, variable, name_of(f))
        at_ends = [_at_end(scope, f, arguments, end) for end in ends]
        operands = operands_of(graph, [node], at_ends, differentiated_in(scope, arguments) - {variable})
        family = _OnSymbols(graph, name_of(f), variable, ends, tuple(points), operands, scope.gather is not None)
        (value,), error, factor = family.integrated([node])
        outputs = [family.node_of(value, factor, [node], at_ends), error]
        structure = lift(scope, (0.0, 0.0), ["", ""]).structure
        result: tuple[Any, Any] = deliver(scope, Tree(structure, [np.array(part, dtype=np.int64) for part in outputs]))
        return result


def _at(scope: Scope, f: Function, arguments: Tree, place: int, *, inside: bool = False) -> int:
    """Return the node of the integrand at a place; `inside`, nothing in it may be a loop."""

    def values(inner: Scope) -> Sequence[Any]:
        if inside:
            inner.gather = lambda nodes, key: None  # no number is known
        return from_nodes(np.array(place, dtype=np.int64), inner), *wrap(scope, arguments)

    nodes = called(f, values).flat
    if len(nodes) != 1:
        raise ArgumentError(
            f"the integrand {name_of(f)} returned {len(nodes)} numbers", where=user_place(), do="return one"
        )
    return nodes[0]


def _at_end(scope: Scope, f: Function, arguments: Tree, end: int) -> tuple[int, int | None]:
    place, atom = scope.graph.alias(end), scope.graph.atoms.get(end)
    return place, None if atom is not None and not isinstance(atom, sp.Symbol) else _at(scope, f, arguments, place)


@dataclass(frozen=True)
class _OnSymbols(Integrals):
    """Integrals over a variable between two bounds.

    Inside another integrand, or the body of a loop (`is_inside`), no loop is made.
    """

    graph: Graph
    name: str
    variable: int
    ends: list[int]
    points: tuple[float, ...]
    operands: list[int]
    is_inside: bool

    def check(self, nodes: list[int]) -> None:
        _refuse_jumps(self.graph, nodes[0], self.variable, set(self.operands), self.name)

    def summed(self, integrands: list[list[int]]) -> tuple[list[int], int]:
        """Return the integrals, all of them in one loop."""
        values, _, factor = self.integrated([node for (node,) in integrands], smooth=True)
        return values, factor

    def integrated(self, nodes: list[int], *, smooth: bool = False) -> tuple[list[int], int, int]:
        """Return the nodes of the values, of the largest estimated error, and of 1 where all values are known.

        With `smooth` the points crowd at ends where a node is infinite, as derivatives of roots are.
        """
        with open_scope(graph=self.graph) as scope:
            a, b = (_end(scope, end) for end in self.ends)
            low, high = _ascending(a, b)
            edges = [low, *(np.minimum(np.maximum(point, low), high) for point in sorted(self.points)), high]
            sums: list[Any] = [np.zeros(len(nodes))] * 3
            for left, right in pairwise(edges):
                piece = _Piece(self.graph, self.variable, nodes, left, right)
                results = piece.by_panels() if self.is_inside else piece.by_steps(smooth)
                sums = [value + more for value, more in zip(sums, results, strict=True)]
            total, off, size = sums
            sign = np.where(np.less(a, b), 1.0, -1.0)
            known = np.all(off <= ENOUGH * size + 1e-300) & np.all(np.isfinite(total))
            values = nodes_of(np.where(known, sign * total, np.nan), scope)
            return values.ravel().tolist(), int(nodes_of(np.max(off), scope)), factor_of(scope, known)


def _end(scope: Scope, node: int) -> Any:
    """Return a bound, as a plain number where it is one."""
    known = constant(scope.graph, node)
    return from_nodes(np.array(node, dtype=np.int64), scope) if known is None else float(known)


def _ascending(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two bounds, the lower one first; plain ones may be infinite."""
    if _is_at(a, -math.inf) or _is_at(b, math.inf) or (is_plain(a, b) and a <= b):
        return a, b
    if _is_at(b, -math.inf) or _is_at(a, math.inf) or is_plain(a, b):
        return b, a
    return np.minimum(a, b), np.maximum(a, b)


def _is_at(end: Any, infinity: float) -> bool:
    return is_plain(end) and end == infinity


class _Piece:
    """An interval, whose points are those of u between 0 and 1, and the nodes integrated over it."""

    def __init__(self, graph: Graph, variable: int, nodes: list[int], low: Any, high: Any) -> None:
        self.graph, self.variable, self.nodes, self.low, self.high = graph, variable, nodes, low, high
        self.moving = _moving(graph, variable, nodes)

    @property
    def infinite(self) -> tuple[bool, bool]:
        """Whether the ends are infinite."""
        return _is_at(self.low, -math.inf), _is_at(self.high, math.inf)

    def at(self, u: Any, smooth: Any) -> tuple[Any, Any]:
        """Return t at u, and dt/du; where `smooth` is not None but holds, closer and closer at the ends."""
        if not any(self.infinite):
            if smooth is not None:
                part, slope = (np.where(smooth, bent, plain) for bent, plain in zip(smoothed(u), (u, 1.0), strict=True))
                return self.low + (self.high - self.low) * part, (self.high - self.low) * slope
            return self.low + (self.high - self.low) * u, self.high - self.low
        start, end = -1.0 * self.infinite[0], 1.0 * self.infinite[1]
        t, slope = unfolded(start + (end - start) * u, self.low, self.high, self.infinite)
        return t, (end - start) * slope

    def summed(self, u: Any, width: Any, smooth: Any = None) -> tuple[Any, Any, Any]:
        """Return the integrals over a part, the difference of two formulas, and the integrals of absolute values."""
        places, weights, gauss = formula()
        t, slope = self.at(u + width * (1 + places) / 2, smooth)
        values = self._values(t) * np.reshape(slope * np.ones(len(places)), (-1, 1))
        half = width / 2
        integral, coarse = (half * np.sum(part[:, None] * values, axis=0) for part in (weights, gauss))
        return integral, np.abs(integral - coarse), half * np.sum(weights[:, None] * np.abs(values), axis=0)

    def _values(self, t: Any) -> Any:
        scope = current_scope()
        rows = [self._at(node) for node in nodes_of(t, scope).ravel().tolist()]
        return wrap_array(np.array(rows, dtype=np.int64), scope)

    def _at(self, place: int) -> list[int]:
        """Return the nodes at a place: values, in which no rule counts."""
        graph, row_of = self.graph, {self.variable: place}
        for row in self.moving:
            parts = [row_of.get(part, part) for part in graph.operands[row]]
            row_of[row] = parts[0] if graph.heads[row] is Alias else graph.node(graph.heads[row], *parts)
        return [row_of.get(node, node) for node in self.nodes]

    def by_steps(self, smooth: bool) -> tuple[Any, Any, Any]:
        """Return the integrals, errors and sizes, in steps whose width follows the error; NaN where they do not end."""
        nothing, is_bent = np.zeros(len(self.nodes)), None
        if smooth and not any(self.infinite):
            is_bent = ~np.all(np.isfinite(self._values(np.stack([self.low, self.high]))))

        def step(carry: Any) -> tuple[Any, Any]:
            u, width, total, off, size, largest = carry
            integral, error, absolute = self.summed(u, width, is_bent)
            largest = np.maximum(largest, absolute)
            takes = np.all(error <= CLOSE * largest) | (width <= LEAST)
            u = np.where(takes, u + width, u)
            sums = [np.where(takes, old + new, old) for old, new in ((total, integral), (off, error), (size, absolute))]
            width = np.where(takes, np.minimum(2 * width, 1 - u), width / 2)
            return (u, width, *sums, largest), (u >= 1) | np.isnan(np.sum(integral))

        u, _, total, off, size, _ = repeated(step, (0.0, 1.0, nothing, nothing, nothing, nothing), STEPS)
        return np.where(u >= 1, total, np.nan), off, size

    def by_panels(self) -> tuple[Any, Any, Any]:
        """Return the sums of a fixed number of steps."""
        sums: list[Any] = [np.zeros(len(self.nodes))] * 3
        for k in range(PANELS):
            sums = [total + more for total, more in zip(sums, self.summed(k / PANELS, 1 / PANELS), strict=True)]
        return sums[0], sums[1], sums[2]


def _moving(graph: Graph, variable: int, nodes: list[int]) -> list[int]:
    """Return the rows that depend on the variable, operands first."""
    seen = {variable}
    moving = []
    for row in needed(graph, nodes, {variable}):
        if not seen.isdisjoint(graph.operands[row]):
            seen.add(row)
            moving.append(row)
    return moving


def _check_paths(scope: Scope, node: int, variable: int, name: str) -> None:
    """Raise an error for an `if` of an integrand at a place that depends on differentiated values.

    Conditions of an `if` hold no parameters of open levels, but what these stand for.
    """
    graph = scope.graph
    parameters = [part for part in open_parameters(scope) if graph.heads[part] is Alias]
    _refuse_jumps(graph, node, variable, {_stripped(graph, part) for part in parameters}, name)


def _stripped(graph: Graph, node: int) -> int:
    while graph.heads[node] is Alias:
        node = graph.operands[node][0]
    return node


def _refuse_jumps(graph: Graph, node: int, variable: int, operands: set[int], name: str) -> None:
    for row in _differentiated(graph, node):
        head, parts = graph.heads[row], graph.operands[row]
        conditions = list(parts[1::2] if head is sp.Piecewise else parts) if head in JUMPS else []
        met = dependencies(graph, conditions, operands | {variable}, elements=True)
        if variable in met and not met.isdisjoint(operands):
            refuse_moving_choice(name)


def _differentiated(graph: Graph, node: int) -> set[int]:
    """Return the rows of a node that are differentiated: where there is a rule, its value is not looked at."""
    seen, stack = {node}, [node]
    while stack:
        row = stack.pop()
        fresh = [part for part in graph.operands[row][row in graph.rules :] if part not in seen]
        seen.update(fresh)
        stack += fresh
    return seen
