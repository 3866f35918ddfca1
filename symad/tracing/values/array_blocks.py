"""Record an operation on large arrays once, for slots, and enter it into the graph by columns.

The nodes of a builder depend only on whether its operands are numbers, truth values or constants. So it runs on a small
graph whose leaves stand for the operands, and each row of that graph becomes a block of rows in the real one: the same
rows that it would add element by element, in another order. If that is not certain, there is no block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sympy as sp

import symad.tracing.values.node_builders as op
from codegen.heads import Alias, NegativeZero
from codegen.ir.program import Head, atom_key
from codegen.ir.row_blocks import Column, sorted_pair
from symad.graph.graph import Graph
from symad.tracing.values.constant_nodes import MAYBE_BOOLEAN
from symad.tracing.values.node_builders import Build

Nodes = npt.NDArray[np.int64]
Kind = Literal["number", "truth", "constant"]

TEMPLATES = 1024  # bound of the cache of templates, by builder and kinds of operands
BLOCK = 64  # elements; below, a block costs more than it saves
CONSTANTS = (sp.Number, sp.NumberSymbol, NegativeZero)
_TRUE_OR_FALSE = frozenset({sp.logic.boolalg.BooleanTrue, sp.logic.boolalg.BooleanFalse})
# These add the same nodes for all constants if another operand varies; others may fold a constant or look at its value.
_BLIND: frozenset[Build] = frozenset({op.add, op.multiply, op.divide, op.power})


class SlotGraph(Graph):
    """A graph of slots that notes its rows of sorted pairs."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        super().__init__(lines=False)
        self.pairs: set[int] = set()

    def slot(self, kind: Kind) -> int:
        """Return a leaf for an unknown number or (for "truth") an unknown truth value."""
        return self._append(None, None, sp.Equality if kind == "truth" else sp.Symbol, ())

    def pair(self, head: Head, left: int, right: int) -> int:
        row = super().pair(head, left, right)
        self.pairs.add(row)
        return row


def block_of(graph: Graph, build: Build, operands: Sequence[Nodes], shape: tuple[int, ...]) -> Nodes | None:
    """Return build(...) of every element of operands that broadcast to a shape; None where no block can be made of it.

    >>> graph = Graph()
    >>> x = np.array(graph.own_leaves(100, lambda k: sp.Symbol(f"x_{k}")))
    >>> block_of(graph, op.subtract, (x, x[::-1]), (100,))[:3]
    array([201, 202, 203])
    >>> graph.operands[201] == (0, graph.node(sp.Mul, 99, graph.number(-1))), graph.heads[201]
    (True, <class 'sympy.core.add.Add'>)
    """
    kinds = kinds_of(graph, operands)
    varied = {kind for kind, nodes in zip(kinds, operands, strict=True) if nodes.size > 1}
    if build is op.subtract and "constant" in varied and kinds[0] == "number":
        left, right = operands  # constants change their sign: u - 2 is u + (-2)
        negated = [op.negative(graph, node) for node in right.ravel().tolist()]
        return block_of(graph, op.add, (left, np.array(negated).reshape(right.shape)), shape)
    if None in kinds or ("constant" in varied and (build not in _BLIND or "number" not in kinds)):
        return None
    template, slots, result = template_of(graph, build, operands)
    columns: dict[int, Column | Nodes] = {
        slot: int(nodes.flat[0]) if nodes.size == 1 else nodes for slot, nodes in zip(slots, operands, strict=True)
    }
    _enter(graph, template, columns)
    return np.broadcast_to(columns[result], shape).copy()


def template_of(graph: Graph, build: Build, operands: Sequence[Nodes]) -> tuple[SlotGraph, list[int], int]:
    """Return the nodes of a builder for operands of these kinds: rows, slots, and the row of the result.

    A constant that is the same for all elements has no slot.
    """
    return new_template(build, given_of(graph, operands))


def given_of(graph: Graph, operands: Sequence[Nodes]) -> tuple[Kind | sp.Basic, ...]:
    """Return the key of a template: kinds of operands, or the atom of a constant that is the same for all elements."""
    return _slots(graph, operands, kinds_of(graph, operands))


def exactly(kinds: Sequence[Kind | sp.Basic]) -> tuple[Any, ...]:
    """Return what distinguishes equal atoms of different type or precision."""
    return tuple(atom_key(part) for part in kinds if isinstance(part, sp.Basic))


def shared_template_of(build: Build, kinds: tuple[Kind | sp.Basic, ...]) -> tuple[SlotGraph, list[int], int]:
    """Return the same for operands given by their kinds, or (constants) by their atoms.

    The template is shared, and must not be changed.
    """
    return _known_template(build, kinds, exactly(kinds))


def _slots(graph: Graph, operands: Sequence[Nodes], kinds: Sequence[Kind | None]) -> tuple[Kind | sp.Basic, ...]:
    fixed = [kind == "constant" and nodes.size == 1 for kind, nodes in zip(kinds, operands, strict=True)]
    return tuple(
        graph.atoms[int(nodes.flat[0])] if known else kind or "number"
        for kind, nodes, known in zip(kinds, operands, fixed, strict=True)
    )


def new_template(build: Build, kinds: Sequence[Kind | sp.Basic]) -> tuple[SlotGraph, list[int], int]:
    """Return a template that may be changed."""
    template = SlotGraph()
    slots = [template.leaf(part) if isinstance(part, sp.Basic) else template.slot(part) for part in kinds]
    return template, slots, build(template, *slots)


@lru_cache(maxsize=TEMPLATES)
def _known_template(
    build: Build, kinds: Sequence[Kind | sp.Basic], atoms: Sequence[Any]
) -> tuple[SlotGraph, list[int], int]:
    """Return a cached template; `atoms` tells equal constants apart (`exactly`)."""
    return new_template(build, kinds)


def kinds_of(graph: Graph, operands: Sequence[Nodes]) -> list[Kind | None]:
    """Return the kind of the elements of each operand; None for truth values that are known, and mixtures."""
    return [_kind(graph, nodes) for nodes in operands]


def _enter(graph: Graph, template: SlotGraph, columns: dict[int, Column | Nodes]) -> None:
    """Enter the rows of a template into a graph, and add their nodes to `columns`.

    It works by columns, for large arrays, where `copy_rows` works row by row.
    """
    for row in range(len(template)):
        if row in columns:
            continue
        parts = [columns[part] for part in template.operands[row]]
        shape = np.broadcast_shapes(*[np.shape(part) for part in parts])
        flat = [part if isinstance(part, int) else np.broadcast_to(part, shape).ravel() for part in parts]
        sorts = row in template.pairs
        if not parts:
            columns[row] = graph.leaf(template.atoms[row])
        elif shape:
            columns[row] = graph.rows(template.heads[row], sorted_pair(*flat) if sorts else flat).reshape(shape)
        else:
            columns[row] = (graph.pair if sorts else graph.node)(template.heads[row], *[int(part) for part in flat])


def chain_head(graph: Graph, build: Build, kind: Kind | None) -> Head | None:
    """Return the head of the pairs in a reduction; None if it has more than pairs, or may fold some."""
    if kind is None or (kind == "constant" and build not in _BLIND):
        return None
    return _pair_head(build, "truth" if kind == "truth" else "number")


@lru_cache(maxsize=TEMPLATES)
def _pair_head(build: Build, kind: Kind) -> Head | None:
    template = SlotGraph()
    left, right = (template.slot(kind) for _ in range(2))
    total = build(template, left, right)
    return template.heads[total] if len(template) == 3 and total in template.pairs else None


def _kind(graph: Graph, nodes: Nodes) -> Kind | None:
    """Return the kind of nodes; "constant" if some are constants; None for known truth values, and mixtures."""
    heads = heads_of(graph, nodes)
    truths = heads & MAYBE_BOOLEAN
    if truths:
        return "truth" if truths == heads and truths.isdisjoint(_TRUE_OR_FALSE) else None
    return "constant" if any(issubclass(head, CONSTANTS) for head in heads) else "number"


def are_constants(graph: Graph, nodes: Nodes) -> bool:
    """Whether all nodes are constants."""
    return all(issubclass(head, CONSTANTS) for head in heads_of(graph, nodes))


def heads_of(graph: Graph, nodes: Nodes) -> set[Head]:
    """Return the heads of nodes; of an alias sp.Equality if it is a truth value, else sp.Symbol."""
    if nodes.size < BLOCK:
        heads = set(map(graph.heads.__getitem__, nodes.ravel().tolist()))
    elif graph.blocks.around(lowest := int(nodes.min()), int(nodes.max())):
        heads = {graph.heads[lowest]}  # the nodes of a block have one head
    else:
        heads, rest = graph.blocks.heads_of(graph.heads, nodes.ravel())
        heads |= set(map(graph.heads.__getitem__, rest.tolist()))
    if Alias in heads:
        heads.remove(Alias)
        aliases = (node for node in nodes.ravel().tolist() if graph.heads[node] is Alias)
        heads |= {sp.Equality if graph.is_boolean(node) else sp.Symbol for node in aliases}
    return heads
