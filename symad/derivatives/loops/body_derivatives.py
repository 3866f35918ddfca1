"""Derivatives of the bodies of regions, which are bodies again.

A body is a program of some ten scalar operations, differentiated once for all repetitions. Its rows are replayed on
traced values, so every transform works on it. Pushforward and pullback use the linear map itself, which knows the
structural zeros.

A tangent may come with a guard, a number that is not 0 where the tangent holds: a branch not taken in one region must
not meet an infinite derivative in the next. Where the guard does not hold the tangent is 0, which suffices for a body
with finite partial derivatives; any other multiplies under the guard. Cotangents likewise. A product with the 1/0 of
another region has an infinite derivative, so slots that may be infinite are known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, wraps
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import copied
from codegen.ir.program import Output, Program, reachable
from symad.derivatives.linear import Linear, Term, linearize, settle, total
from symad.errors import ArgumentError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.finite import is_finite_operation
from symad.rules.overrides import GATES
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


def _once(compute: Callable[..., T]) -> Callable[..., T]:
    """Have a function of a body be computed once for all regions; its arguments become tuples."""

    @wraps(compute)
    def once(replay: Replay, *given: Iterable[Any], **named: Iterable[Any]) -> T:
        arguments, keywords = tuple(map(tuple, given)), {name: tuple(part) for name, part in named.items()}
        key = compute.__name__, *arguments, *keywords.items()
        return replay.once(key, lambda: compute(replay, *arguments, **keywords))

    return once


@_once
def body_pushforward(
    replay: Replay, guarded: Sequence[int] = (), asked: Sequence[int] = ()
) -> tuple[Program, tuple[int, ...]]:
    """Return the body of the pushforward, and the outputs that have a tangent.

    Its slots are those of the body, then the tangents of the active ones, then the guards of the tangents of the
    `guarded` ones. Its outputs are those of the body, then the tangents of those that have one (that of any other is
    structurally zero), then the guards of the `asked` ones.

    >>> import symad as sa
    >>> body = body_program(lambda x, y: (x * y, y), 2)
    >>> made, tangents = body_pushforward(Replay(body, [0]))
    >>> sa.from_program(made)(2.0, 3.0, 1.0), tangents
    ((6.0, 3.0, 3.0), (0,))
    """
    replay.begin()
    directions = [replay.slot() for _ in replay.active]
    holds = {slot: _holds(replay) for slot in guarded}
    seeds = [[(node, holds.get(slot))] for slot, node in zip(replay.active, directions, strict=True)]
    nodes, guards = _carried(replay, replay.forward, seeds)
    tangents = {output: node for output, node in zip(replay.smooth, nodes, strict=True) if node is not None}
    guard_of = dict(zip(replay.smooth, guards, strict=True))
    program = replay.program([*tangents.values(), *(guard_of.get(output, replay.build.zero) for output in asked)])
    return program, tuple(tangents)


@_once
def body_pullback(
    replay: Replay,
    outputs: Sequence[int],
    ones: Sequence[int] = (),
    guarded: Sequence[int] = (),
    asked: Sequence[int] = (),
) -> tuple[Program, tuple[int, ...]]:
    """Return the body of the pullback, and those of the active slots that have a cotangent.

    Its slots are those of the body, then a cotangent for each of `outputs`: an output that comes several times has the
    sum as its cotangent, and a further 1 for each time that it is in `ones`; then the guards of the `guarded` ones,
    which are numbers of entries of `outputs`. Its outputs are those of the body, then the cotangents of the slots, then
    the guards of the `asked` slots.

    >>> import symad as sa
    >>> body = body_program(lambda x, y: (x * y, y), 2)
    >>> made, slots = body_pullback(Replay(body, [0, 1]), [0])
    >>> sa.from_program(made)(2.0, 3.0, 1.0), slots
    ((6.0, 3.0, 3.0, 2.0), (0, 1))
    """
    replay.begin()
    cotangents = [replay.slot() for _ in outputs]
    holds = {number: _holds(replay) for number in guarded}
    terms: dict[int, list[Term]] = {}
    for number, (output, node) in enumerate(zip(outputs, cotangents, strict=True)):
        terms.setdefault(output, []).append((node, holds.get(number)))
    for output in ones:
        terms.setdefault(output, []).append((replay.build.one, None))
    seeds = [terms.get(output, []) for output in replay.smooth]
    nodes, guards = _carried(replay, replay.backward, seeds)
    cotangents_out = {slot: node for slot, node in zip(replay.active, nodes, strict=True) if node is not None}
    guard_of = dict(zip(replay.active, guards, strict=True))
    return replay.program([*cotangents_out.values(), *(guard_of[slot] for slot in asked)]), tuple(cotangents_out)


@_once
def outputs_reached(replay: Replay) -> tuple[int, ...]:
    """Return the outputs whose derivative in the active slots is not structurally zero.

    >>> outputs_reached(Replay(body_program(lambda x, y: (x * y, y, x > y), 2), [0]))
    (0,)
    """
    reached = {*replay.forward.inputs, *(target for target, _ in replay.forward.rows)}
    return tuple([output for output in replay.smooth if replay.outputs[output] in reached])


@_once
def slots_reached(replay: Replay, outputs: Iterable[int]) -> tuple[int, ...]:
    """Return those of the active slots that the derivative of some outputs is not structurally zero in.

    >>> slots_reached(Replay(body_program(lambda x, y: (x * y, y), 2), [0, 1]), [1])
    (1,)
    """
    reached = {replay.outputs[output] for output in outputs}
    for target, row in replay.backward.rows:
        if any(source in reached for _, source, _ in row):
            reached.add(target)
    return tuple([slot for slot in replay.active if replay.parameters[slot] in reached])


@_once
def outputs_guarded(replay: Replay, guarded: Iterable[int]) -> frozenset[int]:
    """Return the outputs whose tangents have guards, where the tangents of some slots have.

    >>> import numpy as np
    >>> outputs_guarded(Replay(body_program(lambda x, y: (np.where(x > 0, x, 1), x + y, y), 2), [0, 1]), [1])
    frozenset({0, 2})
    """
    holds = {slot: _holds(replay) for slot in guarded}
    terms = replay.forward.terms(replay.build, [(replay.build.one, holds.get(slot)) for slot in replay.active])
    return frozenset(output for output in replay.smooth if _is_guarded(terms.get(replay.outputs[output])))


@_once
def slots_guarded(replay: Replay, outputs: Iterable[tuple[int, bool]]) -> frozenset[int]:
    """Return the slots whose cotangents have guards; `outputs` says which of those of outputs have.

    >>> import numpy as np
    >>> slots_guarded(Replay(body_program(lambda x, y: (np.where(x > 0, x, 1), x + y), 2), [0, 1]), [(0, False)])
    frozenset({0})
    """
    guards = {output: _holds(replay) if guarded else None for output, guarded in outputs}
    seeds = [(replay.build.one, guards[output]) if output in guards else None for output in replay.smooth]
    terms = replay.backward.terms(replay.build, seeds)
    return frozenset(slot for slot in replay.active if _is_guarded(terms.get(replay.parameters[slot])))


def has_gates(body: Program) -> bool:
    """Whether a body has a head that chooses between its operands."""
    return any(head in GATES for head in body.heads)


def _is_guarded(term: Term | None) -> bool:
    return term is not None and term[1] is not None


def _holds(replay: Replay) -> int:
    """Return a guard: that the number of a further slot is not 0."""
    return replay.graph.node(sp.StrictGreaterThan, replay.slot(), replay.build.zero)


def _carried(replay: Replay, linear: Linear, seeds: Sequence[Sequence[Term]]) -> tuple[list[int | None], list[int]]:
    """Return the images of tangents, and the numbers of their guards: 1 for one that always holds, 0 for no image.

    Each tangent is a list of terms. Their guards are dropped where finite partial derivatives allow it.
    """
    build = replay.build
    terms = linear.terms(build, [total(build, parts) if parts else None for parts in seeds])
    plain = terms
    if any(map(_is_guarded, chain.from_iterable(seeds))) and _is_tame(replay, linear):
        bare = [[(value, None) for value, _ in parts] for parts in seeds]
        plain = linear.terms(build, [total(build, parts) if parts else None for parts in bare])
    values = [settle(build, plain[node]) if node in plain else None for node in linear.outputs]
    return values, [_number(build, terms.get(node)) for node in linear.outputs]


def _number(build: Builder, term: Term | None) -> int:
    if term is None:
        return build.zero
    return build.one if term[1] is None else build.select(term[1], build.one, build.zero)


def _is_tame(replay: Replay, linear: Linear) -> bool:
    """Whether all partial derivatives of a map are finite, if only the infinite slots may be infinite."""
    build, graph = replay.build, replay.graph
    infinite = {replay.slots[slot] for slot in replay.infinite}
    for node in reachable(graph, list(linear.coefficients())):
        exponent = build.constant(graph.operands[node][1]) if graph.heads[node] is sp.Pow else None
        if node in infinite or not is_finite_operation(graph, node, exponent):
            return False
    return True


def outputs_infinite(body: Program, infinite: Iterable[int]) -> set[int]:
    """Return the outputs that may be infinite or NaN for finite inputs, where some slots may.

    >>> body = body_program(lambda x, y: (1 / x, x * y, y, x > y), 2)
    >>> outputs_infinite(body, []), outputs_infinite(body, [1])
    ({0}, {0, 1, 2})
    """
    its = frozenset(infinite)
    return body.once(("outputs infinite", its), lambda: _outputs_infinite(body, its)).copy()


def _outputs_infinite(body: Program, infinite: Iterable[int]) -> set[int]:
    infinite_rows = set(infinite)
    for row, parts in enumerate(body.operands):
        if not issubclass(body.heads[row], sp.logic.boolalg.Boolean):
            atom = body.atoms.get(parts[-1]) if parts else None
            exponent = int(atom) if isinstance(atom, sp.Integer) else None
            if not infinite_rows.isdisjoint(parts) or not is_finite_operation(body, row, exponent):
                infinite_rows.add(row)
    return {output for output in range(len(body.outputs)) if row_of(body, output) in infinite_rows}


def outputs_depending(body: Program, slots: Iterable[int]) -> set[int]:
    """Return the outputs that need some slots, be it in a condition only.

    >>> outputs_depending(body_program(lambda x, y: (x * y, x > 0, y), 2), [0])
    {0, 1}
    """
    dependents = set(slots)
    for row, parts in enumerate(body.operands):
        if not dependents.isdisjoint(parts):
            dependents.add(row)
    return {output for output in range(len(body.outputs)) if row_of(body, output) in dependents}
