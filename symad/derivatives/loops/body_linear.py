"""Linear maps of bodies by `linearize`: dependencies, pushforward and pullback.

A tangent may come with a guard, a number that is not 0 where the tangent holds: a branch not taken in one region must
not meet an infinite derivative in the next. Where the guard does not hold the tangent is 0, which suffices for a body
with finite partial derivatives; any other multiplies under the guard. Cotangents likewise. A product with the 1/0 of
another region has an infinite derivative, so slots that may be infinite are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import sympy as sp

from codegen.ir.body_parts import row_of
from codegen.ir.program import Program, reachable
from symad.derivatives.linear import Linear, Term, settle, total
from symad.derivatives.loops.body_derivatives import Replay
from symad.graph.builder import Builder
from symad.rules.finite import is_finite_operation
from symad.rules.overrides import GATES


def body_pushforward(
    replay: Replay, guarded: Sequence[int] = (), asked: Sequence[int] = ()
) -> tuple[Program, tuple[int, ...]]:
    """Return the body of the pushforward, and the outputs that have a tangent.

    Its slots are those of the body, then the tangents of the active ones, then the guards of the tangents of the
    `guarded` ones. Its outputs are those of the body, then the tangents of those that have one (that of any other is
    structurally zero), then the guards of the `asked` ones.

    >>> import symad as sa
    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> body = body_program(lambda x, y: (x * y, y), 2)
    >>> made, tangents = body_pushforward(Replay(body, [0]))
    >>> sa.from_program(made)(2.0, 3.0, 1.0), tangents
    ((6.0, 3.0, 3.0), (0,))
    """
    key = "pushforward", tuple(guarded), tuple(asked)
    return replay.once(key, lambda: _pushed_forward(replay, guarded, asked))


def _pushed_forward(replay: Replay, guarded: Sequence[int], asked: Sequence[int]) -> tuple[Program, tuple[int, ...]]:
    replay.begin()
    directions = [replay.slot() for _ in replay.active]
    holds = {slot: _holds(replay) for slot in guarded}
    seeds = [[(node, holds.get(slot))] for slot, node in zip(replay.active, directions, strict=True)]
    nodes, guards = _carried(replay, replay.forward, seeds)
    tangents = {output: node for output, node in zip(replay.smooth, nodes, strict=True) if node is not None}
    guard_of = dict(zip(replay.smooth, guards, strict=True))
    program = replay.program([*tangents.values(), *(guard_of.get(output, replay.build.zero) for output in asked)])
    return program, tuple(tangents)


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
    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> body = body_program(lambda x, y: (x * y, y), 2)
    >>> made, slots = body_pullback(Replay(body, [0, 1]), [0])
    >>> sa.from_program(made)(2.0, 3.0, 1.0), slots
    ((6.0, 3.0, 3.0, 2.0), (0, 1))
    """
    key = "pullback", tuple(outputs), tuple(ones), tuple(guarded), tuple(asked)
    return replay.once(key, lambda: _pulled_back(replay, outputs, ones, guarded, asked))


def _pulled_back(
    replay: Replay,
    outputs: Sequence[int],
    ones: Sequence[int],
    guarded: Sequence[int],
    asked: Sequence[int],
) -> tuple[Program, tuple[int, ...]]:
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


def outputs_reached(replay: Replay) -> list[int]:
    """Return the outputs whose derivative in the active slots is not structurally zero.

    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> outputs_reached(Replay(body_program(lambda x, y: (x * y, y, x > y), 2), [0]))
    [0]
    """

    def compute() -> list[int]:
        reached = {*replay.forward.inputs, *(target for target, _ in replay.forward.rows)}
        return [output for output in replay.smooth if replay.outputs[output] in reached]

    return replay.once("outputs reached", compute).copy()


def slots_reached(replay: Replay, outputs: Iterable[int]) -> list[int]:
    """Return those of the active slots that the derivative of some outputs is not structurally zero in.

    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> slots_reached(Replay(body_program(lambda x, y: (x * y, y), 2), [0, 1]), [1])
    [1]
    """
    chosen = frozenset(outputs)

    def compute() -> list[int]:
        reached = {replay.outputs[output] for output in chosen}
        for target, row in replay.backward.rows:
            if any(source in reached for _, source, _ in row):
                reached.add(target)
        return [slot for slot in replay.active if replay.parameters[slot] in reached]

    return replay.once(("slots reached", chosen), compute).copy()


def outputs_guarded(replay: Replay, guarded: Iterable[int]) -> set[int]:
    """Return the outputs whose tangents have guards, where the tangents of some slots have.

    >>> import numpy as np
    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> outputs_guarded(Replay(body_program(lambda x, y: (np.where(x > 0, x, 1), x + y, y), 2), [0, 1]), [1])
    {0, 2}
    """
    its = tuple(guarded)

    def compute() -> set[int]:
        holds = {slot: _holds(replay) for slot in its}
        terms = replay.forward.terms(replay.build, [(replay.build.one, holds.get(slot)) for slot in replay.active])
        return {output for output in replay.smooth if _is_guarded(terms.get(replay.outputs[output]))}

    return replay.once(("outputs guarded", its), compute).copy()


def slots_guarded(replay: Replay, outputs: dict[int, bool]) -> set[int]:
    """Return the slots whose cotangents have guards; `outputs` says which of those of outputs have.

    >>> import numpy as np
    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> slots_guarded(Replay(body_program(lambda x, y: (np.where(x > 0, x, 1), x + y), 2), [0, 1]), {0: False})
    {0}
    """

    def compute() -> set[int]:
        seeds = [
            (replay.build.one, _holds(replay) if outputs[output] else None) if output in outputs else None
            for output in replay.smooth
        ]
        terms = replay.backward.terms(replay.build, seeds)
        return {slot for slot in replay.active if _is_guarded(terms.get(replay.parameters[slot]))}

    return replay.once(("slots guarded", tuple(sorted(outputs.items()))), compute).copy()


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

    >>> from symad.derivatives.loops.body_derivatives import body_program
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

    >>> from symad.derivatives.loops.body_derivatives import body_program
    >>> outputs_depending(body_program(lambda x, y: (x * y, x > 0, y), 2), [0])
    {0, 1}
    """
    dependents = set(slots)
    for row, parts in enumerate(body.operands):
        if not dependents.isdisjoint(parts):
            dependents.add(row)
    return {output for output in range(len(body.outputs)) if row_of(body, output) in dependents}
