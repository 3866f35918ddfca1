"""A loop between the nodes of a graph: a body and its repetitions.

Loops that are found in a traced function, or written down by `sum_over`, `scan` and the others, have the same form: a
body (a program of scalars), and for each of its slots the node that it reads in repetition k.
`codegen.loops.place.place_nodes` puts nodes into buffers and makes a rolled program (`codegen.ir.region`) of loops and
the nodes between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Literal, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.records import dataclass

Nodes: TypeAlias = NDArray[np.int64]
Reads: TypeAlias = Nodes | NDArray[np.float64]  # nodes, or numbers, that a slot reads in every repetition


class StraightError(Exception):
    """The reason why something stays in straight lines, which plans and reports show."""


@dataclass(frozen=True, eq=False)
class LoopCarry:
    """A slot that has the value of an output of the body `lag = len(initial)` repetitions before."""

    output: int
    initial: Nodes  # nodes, the oldest first


@dataclass(frozen=True, eq=False)
class LoopResult:
    """Nodes that a loop computes from an output of its body.

    "each": node k is its value in repetition k. "sum": one node, the sum over all repetitions from left to right.
    "last": one node, its value in the last repetition; the output is one that a carry of lag 1 has.
    "add": the value of repetition k is added to node k, from zero; nodes may be the same, and those of other loops.
    """

    output: int
    kind: Literal["each", "sum", "last", "add"]
    nodes: Nodes


@dataclass(frozen=True, eq=False)
class Loop:
    """A body over `count` repetitions: slots are first those of `reads`, then those of `carries`.

    `reads[s][k]` is the node that slot s reads in repetition k. This loop computes the nodes of its results: their rows
    in the graph (operands, or a leaf that stands for them) are ignored. `stop` is the number of a Boolean output: the
    repetition in which it is true is the last one.

    A body may have loops `inside`, between its own rows: slots, leaves that stand for their results, and the rest.
    `sums` overrides rows of the body: its keys are sums of its values, from left to right. Such a loop becomes a nest,
    and is a chain: its carries are of lag 1, its results are "each" and "last", and nothing stops it.
    """

    body: Program
    count: int
    reads: tuple[Reads, ...]
    results: tuple[LoopResult, ...]
    carries: tuple[LoopCarry, ...] = ()
    stop: int | None = None
    origin: str = ""  # where the body was written: "forces.py:12-16"
    example: tuple[int, ...] = ()  # rows of one repetition, where the loop was found in straight lines
    inside: tuple[Loop, ...] = ()
    sums: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def nodes_read(self) -> tuple[Nodes, ...]:
        """The columns of nodes that slots read, and the initial nodes of the carries."""
        return (*filter(is_nodes, self.reads), *(carry.initial for carry in self.carries))


@dataclass(frozen=True, eq=False, kw_only=True)
class RolledBlock(Loop):
    """A rolled program that is run once, between nodes: the derivative of a function that is taken in the code.

    `reads` are its input arrays, `results` ("each") its output arrays. `origin` names the derivative and the function,
    and `found` has the loops of that function.
    """

    program: RolledProgram
    found: tuple[Loop, ...] = ()


def between(loop: Loop, nodes_for: Callable[[Nodes], Nodes]) -> Loop:
    """Return a loop between other nodes, which a function maps nodes to."""

    def column(reads: Reads) -> Reads:
        if not is_nodes(reads):
            return reads
        if reads.strides == (0,):  # the same node always, in no memory
            return np.broadcast_to(nodes_for(reads[:1]), reads.shape)
        return nodes_for(reads)

    results = tuple(replace(use, nodes=nodes_for(use.nodes)) for use in loop.results)
    carries = tuple(replace(use, initial=nodes_for(use.initial)) for use in loop.carries)
    return replace(loop, reads=tuple(map(column, loop.reads)), results=results, carries=carries)


def joined(parts: Iterable[Nodes]) -> Nodes:
    """Return arrays of nodes side by side."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(nodes.ravel() for nodes in parts)])


def is_nodes(reads: Reads) -> TypeGuard[Nodes]:
    """Whether a column has nodes, and not numbers."""
    return reads.dtype != np.float64
