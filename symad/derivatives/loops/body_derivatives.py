"""Derivatives of the bodies of regions, which are bodies again.

A body is a program of some ten scalar operations, differentiated once for all repetitions. Its rows are replayed on
traced values, so every transform works on it. Pushforward and pullback use the linear map itself, which knows the
structural zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import copied
from codegen.ir.program import Output, Program
from symad.derivatives.linear import Linear, linearize
from symad.errors import ArgumentError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.trace import Trace, to_program, trace
from symad.tracing.values.node_trees import Tree

Function = Callable[..., tuple[Any, ...]]
T = TypeVar("T")


def body_program(function: Function, number_of_slots: int) -> Program:
    """Return the program of a function of scalars that gives a tuple of scalars.

    >>> body = body_program(lambda x, y: (x * y, y, 0.0), 2)
    >>> len(body.inputs), [output.rows for output in body.outputs]
    (2, [(3,), (1,), (4,)])
    """
    traced = trace(function, *[0.0] * number_of_slots, freeze=True)
    if any(array.shape for array in traced.outputs.arrays):
        raise ArgumentError("a body that returns an array", why="what is repeated works on scalars")
    return _with_rows(to_program(traced, "body"))


class Replay:
    """A body on a graph of its own: its slots, of which the active ones are aliases, and its outputs.

    Slots that may be `infinite` have numbers that may be infinite or NaN: a constant 0 times one is no structural zero.
    Those with `zeros` read constants of which some are 0: a finite number times one is a structural zero.
    """

    body: Program
    active: tuple[int, ...]
    infinite: frozenset[int]
    zeros: frozenset[int]

    def __init__(
        self, body: Program, active: Sequence[int], infinite: Iterable[int] = (), zeros: Iterable[int] = ()
    ) -> None:
        self.body, self.active = body, tuple(active)
        self.infinite, self.zeros = frozenset(infinite), frozenset(zeros)
        self.graph: Graph = Graph(lines=False)
        self.build: Builder = Builder(self.graph)
        self.slots: list[int] = []
        leaves = [self.slot() for _ in body.inputs]
        self.parameters: dict[int, int] = {slot: self.graph.alias(leaves[slot]) for slot in active}
        nodes = {slot: self.parameters.get(slot, node) for slot, node in enumerate(leaves)}
        self.build.finite.update((nodes[slot], False) for slot in self.infinite)
        self.build.zeros.update(nodes[slot] for slot in self.zeros)
        self.outputs: list[int] = copied(
            body, [row_of(body, output) for output in range(len(body.outputs))], self.graph, nodes
        )
        self.smooth: list[int] = [output for output, node in enumerate(self.outputs) if not self.graph.is_boolean(node)]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a result for the body with these slots, computed once for all regions."""
        return self.body.once(("replay", self.active, self.infinite, self.zeros, key), make)

    def begin(self) -> None:
        """Forget the slots that came after those of the body."""
        del self.slots[len(self.body.inputs) :]

    def slot(self) -> int:
        """Return the leaf of one more slot."""
        self.slots.append(self.graph.own_leaf(sp.Symbol(f"s{len(self.slots)}", real=True)))
        return self.slots[-1]

    @cached_property
    def forward(self) -> Linear:
        """The derivative of the outputs that are numbers, not truth values, in the active slots."""
        outputs = [self.outputs[output] for output in self.smooth]
        return linearize(self.build, outputs, list(self.parameters.values()))

    @cached_property
    def backward(self) -> Linear:
        """The transposed derivative."""
        return self.forward.transpose()

    def program(self, more: Sequence[int]) -> Program:
        """Return the program of the outputs and some further nodes."""
        names = [f"s{k}" for k in range(len(self.slots))]
        inputs, outputs = (_tuple_of(nodes) for nodes in (self.slots, [*self.outputs, *more]))
        return _with_rows(to_program(Trace(self.graph, names, inputs, outputs), "body"))


class Replays:
    """Bodies on their graphs, each once for the same active and infinite slots, and those with zeros."""

    def __init__(self) -> None:
        self.replays: dict[tuple[int, tuple[int, ...], frozenset[int], frozenset[int]], Replay] = {}

    def of(self, body: Program, active: Iterable[int], infinite: frozenset[int], zeros: frozenset[int]) -> Replay:
        """Return a body with some slots active, some that may be infinite, and some with zeros (see `Replay`)."""
        key = id(body), tuple(sorted(active)), infinite, zeros
        if key not in self.replays:
            self.replays[key] = Replay(body, *key[1:])
        return self.replays[key]


def _tuple_of(nodes: Sequence[int]) -> Tree:
    structure = containers.flatten(tuple([0.0] * len(nodes)))[1]
    return Tree(structure, [np.array(node, dtype=np.int64) for node in nodes])


def _with_rows(program: Program) -> Program:
    """Return a program in which each output has a row: a structural zero is the number 0."""
    if all(output.rows for output in program.outputs):
        return program
    heads, operands, atoms = list(program.heads), list(program.operands), dict(program.atoms)
    atoms[len(heads)] = sp.S.Zero
    outputs = tuple(output if output.rows else Output((), (len(heads),)) for output in program.outputs)
    return Program([*heads, type(sp.S.Zero)], [*operands, ()], atoms, program.inputs, outputs, program.name)
