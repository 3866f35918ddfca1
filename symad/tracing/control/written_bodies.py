"""Trace the body of a loop once, in a scope inside that of the function.

The slots of a body are leaves of the function's graph. Nodes that depend on them become the rows of a program. All
others are loop-invariant and computed once, outside: a number of the body, or a slot that reads one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Literal

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.expressions.sympy_forms import can_be_input
from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import RowTable
from codegen.ir.strictness import fall_back
from codegen.ir.tables import distinct
from codegen.loops.loop import Loop, LoopCarry, LoopResult, Nodes, Reads, between, is_nodes
from codegen.records import dataclass
from symad.errors import LimitError
from symad.graph.graph import Graph
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.calling.scope import Scope, innermost_scope, open_scope
from symad.tracing.calling.user_place import is_defect, user_frame, user_place
from symad.tracing.control.carries import FlatContainer, Operands
from symad.tracing.control.equal_bodies import digest, key_of, rows_of, without_aliases
from symad.tracing.control.gathers import gathered
from symad.tracing.control.merging import with_nan
from symad.tracing.control.paths import MAX_PATHS, Paths
from symad.tracing.control.reasons import NotOneBodyError, reason, short
from symad.tracing.values.constant_nodes import as_number, constant
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.node_arrays import all_truths, numbers
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_rows import add_rows
from symad.tracing.values.node_trees import Tree, lift, paths_of

Kind = Literal["each", "sum", "last", "add"]


Written = tuple[list[int], list[Nodes]]
GRID, EDGES = 64, 8  # carries from which unchanged ones stay carries, up to one in EDGES
ENDLESS = 2**62  # repetitions of a loop that runs until it stops


@dataclass
class WrittenBody:
    """A body under construction: what its slots read, and the initial nodes of its carries."""

    scope: Scope  # of the function
    inner: Scope
    count: int
    reads: dict[int, Reads] = field(default_factory=dict)
    carries: dict[int, int] = field(default_factory=dict)
    whole: dict[int, Nodes] = field(default_factory=dict)  # the values of whole-number slots
    gathers: dict[bytes, int] = field(default_factory=dict)  # the slots of `x[k]`, by the digests of their columns
    start: int = 0  # the nodes of the body begin here
    made: dict[int, Loop] = field(default_factory=dict)  # inner loops, by the nodes that they compute
    home: Scope | None = None  # of an outer function that keeps the loop, where nothing is differentiated through it

    def row(self, operands: Operands, *, reverse: bool = False) -> Callable[[], Any]:
        """Return a function that makes the arguments of the traced repetition afresh, with slots in place of pieces."""
        pairs = zip(operands.leaves, operands.mapped, strict=True)
        slots = [self._slots(leaf, reverse) if mapped else None for leaf, mapped in pairs]

        def make() -> Any:
            leaves = [
                leaf if nodes is None else from_nodes(nodes, self.inner)
                for leaf, nodes in zip(operands.leaves, slots, strict=True)
            ]
            return containers.unflatten(operands.structure, leaves)

        return make

    def carry(self, carry: FlatContainer) -> Callable[[], Any]:
        """Return a function that makes a carry of slots afresh. Their initial values are those of the carry."""
        arrays = []
        for leaf in carry.arrays:
            initial = nodes_of(leaf, self.scope)
            slots = leaves(self.scope.graph, initial.size).tolist()
            self.carries |= dict(zip(slots, initial.ravel().tolist(), strict=True))
            arrays.append(np.array(slots, dtype=np.int64).reshape(initial.shape))
        return lambda: carry.filled([from_nodes(nodes, self.inner) for nodes in arrays])

    def gather(self, nodes: Nodes, key: Any) -> Nodes | None:
        """Return slots that read `nodes[key]` in each repetition; None unless the key is known.

        Also None for nodes made in the body: a slot would hide them from a level that differentiates in them.
        """
        graph, around = self.scope.graph, self.scope.gather
        known = all(_is_number(graph, node) for node in nodes[nodes >= self.start].tolist())
        columns = gathered(graph, self.whole, self.count, nodes, key) if known else None
        if columns is None:
            return None if around is None else around(nodes, key)
        slots = []
        for column in np.ascontiguousarray(columns.reshape(self.count, -1).T):
            if (reads := digest(column)) not in self.gathers:
                (self.gathers[reads],) = leaves(graph, 1).tolist()
                self.reads[self.gathers[reads]] = column
            slots.append(self.gathers[reads])
        return np.array(slots, dtype=np.int64).reshape(columns.shape[1:])

    def _slots(self, leaf: Any, reverse: bool) -> Nodes:
        graph = self.scope.graph
        columns, truths = _columns(leaf, self.scope)
        slots = leaves(graph, len(columns)).tolist()
        columns = [column[::-1] if reverse else column for column in columns]
        self.reads |= dict(zip(slots, columns, strict=True))
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iu":
            self.whole |= {slot: column.astype(np.int64) for slot, column in zip(slots, columns, strict=True)}
        if truths:
            slots = [graph.node(sp.Unequality, slot, graph.number(0)) for slot in slots]
        return np.array(slots, dtype=np.int64).reshape(leaf.shape[1:])


@contextmanager
def body_of(count: int, *reached: Any, nested: bool = False, home: Scope | None = None) -> Iterator[WrittenBody]:
    """Open the scope of a body, inside a function that is traced with its loops; the body uses `reached`.

    In a `nested` one, loops are recorded too, except endless ones. `home`, a scope around the innermost one, keeps the
    loop where only its values matter.

    Every failure in the block raises NotOneBodyError, and state that the body has changed outside is put back. The loop
    is then unrolled, and works or fails with an error of its own.
    """
    scope = innermost_scope()
    loops = None if scope is None else (home or scope).loops
    if scope is None or loops is None or count < 2 or (count == ENDLESS and scope.gather is not None):
        raise NotOneBodyError
    state, written, failure = ReachableState(*reached, restores=True), len(loops), None
    if state.unknown:
        reason_of = "it uses an iterator, which gives another value each time" if state.runs_out else ""
        raise NotOneBodyError(reason_of or f"it may change what nobody sees: {state.unknown[0].reason}")
    try:
        with discarding_recorded_errors(), open_scope() as inner:
            body = WrittenBody(scope, inner, count, start=len(scope.graph), home=home)
            inner.gather, inner.loops = body.gather, {} if nested else None
            yield body
    except LimitError:
        raise
    except Exception as error:
        failure = error
    changed = state.changed(user_place())
    if changed or failure is not None:
        state.restore(user_place())
        while len(loops) > written:
            loops.popitem()
        if failure is not None and not isinstance(failure, NotOneBodyError) and is_defect(failure):
            fall_back(f"the loop at {short(user_place())}", "its body cannot be traced", failure)
        raise NotOneBodyError(*reason(changed, failure)) from failure


def result_of(f: Callable[..., Any], inner: Scope, run: Callable[[], Any], *, of_captured: bool = False) -> Tree:
    """Return the tree of the result of a body, merged over the paths through its conditions.

    The function around decides conditions on captured values, unless `of_captured`.
    """
    around = inner.paths if isinstance(inner.paths, Paths) else None
    limit = MAX_PATHS if around is None else around.limit
    inner.paths = paths = Paths(inner, limit, name_of(f), around, of_captured=of_captured)
    tree = paths.explore(run, lambda value: lift(inner, value, paths_of((value,), ["result"]), role="result"))
    for scope in inner.chain():
        scope.raises = scope.raises or paths.raises
    return with_nan(inner.graph, tree, paths.without_value())


def write_down(
    body: WrittenBody,
    ends: Sequence[int],
    others: Sequence[int],
    kind: Kind,
    stop: int | None = None,
    *,
    numbers: bool = False,
) -> Written:
    """Record the loop of a body: `ends` are the new values of its carries, `others` its summed or stacked results.

    Return the nodes of the ends, and those of the others. The repetition in which `stop` (a truth value) holds is the
    last one. NotOneBodyError for a loop on numbers only, unless `numbers` are allowed.
    """
    graph, scope = body.scope.graph, body.scope
    after = dict(zip(body.carries, ends, strict=True))
    for slot in _constant_slots(after) if body.count != ENDLESS else []:
        body.reads[slot] = np.full(body.count, body.carries[slot])  # the same in all repetitions
    moving = [slot for slot in after if slot not in body.reads]
    computed = [*(after[slot] for slot in moving), *(as_number(graph, node) for node in others)]
    program, reads, first, loops = _program(body, moving, computed if stop is None else [*computed, stop])
    if not numbers and not any(map(is_nodes, reads)) and all(constant(graph, node) is not None for node in first):
        raise NotOneBodyError
    inside = tuple(map(key_of, loops))
    bare = without_aliases(graph, first)
    key = (rows_of(program), body.count, tuple(map(digest, reads)), bare, kind, stop is None, inside)

    def written() -> Loop:
        last: Kind = "last"
        kinds = [last] * len(moving) + [kind] * len(others)
        sizes = {"each": body.count}
        results = tuple(LoopResult(k, use, leaves(graph, sizes.get(use, 1))) for k, use in enumerate(kinds))
        outputs = [*range(len(moving)), *range(len(program.outputs) - len(first) + len(moving), len(program.outputs))]
        carries = tuple(LoopCarry(output, np.array([node])) for output, node in zip(outputs, first, strict=True))
        final = None if stop is None else len(computed)
        return Loop(program, body.count, tuple(reads), results, carries, final, origin(), inside=loops)

    stored = [result.nodes for result in keep(body.home or scope, key, written).results]
    becomes = body.carries | {slot: int(nodes[0]) for slot, nodes in zip(moving, stored, strict=False)}
    return list(becomes.values()), stored[len(moving) :]


def _constant_slots(after: dict[int, int]) -> list[int]:
    """Return the slots that keep their value. A few among many stay carries: they are the edges of a grid."""
    held = [slot for slot, node in after.items() if slot == node]
    return [] if len(after) >= GRID and EDGES * len(held) <= len(after) else held


def keep(scope: Scope, key: Any, make: Callable[[], Loop]) -> Loop:
    """Return the loop of a scope with a key; it is made unless it exists."""
    assert scope.loops is not None
    if key not in scope.loops:
        scope.loops[key] = make()
        scope.graph.place_all(len(scope.graph.marks), user_frame)
    return scope.loops[key]


Parts = tuple[Program, list[Reads], list[int], tuple[Loop, ...]]


def _program(body: WrittenBody, moving: Sequence[int], outputs: Sequence[int]) -> Parts:
    """Return the body as a program of scalars, what its first slots read, the initial nodes of the others, its loops.

    Loop-invariant nodes are read in every repetition, or carried where the trip count is not known.
    """
    graph = body.scope.graph
    inside, invariant = _nodes_of_body(graph, body, outputs)
    reads = {slot: column for slot, column in body.reads.items() if slot in inside}
    carried = {slot: body.carries[slot] for slot in moving}
    endless = body.count == ENDLESS
    if not endless:
        reads |= {node: np.broadcast_to(np.int64(node), (body.count,)) for node in invariant}
    slots = [*reads, *carried, *(invariant if endless else [])]
    table = RowTable()
    row_of = {slot: table.leaf(sp.Symbol(f"slot_{k}", real=True)) for k, slot in enumerate(slots)}
    row_of |= {node: table.leaf(sp.Symbol(f"inner_{node}", real=True)) for node in sorted(inside & body.made.keys())}
    add_rows(table, row_of, graph, sorted(inside), graph.atoms.__getitem__)
    inputs = tuple(Input(f"slot_{k}", ()) for k in range(len(slots)))
    results = tuple(Output((), (row_of[node],)) for node in [*outputs, *slots[len(reads) + len(carried) :]])
    program = Program(table.heads, table.operands, table.atoms, inputs, results, "body")
    needed = dict.fromkeys(loop for node, loop in body.made.items() if node in inside)
    loops = tuple(_between_rows(loop, table, row_of) for loop in needed)
    return program, list(reads.values()), [*carried.values(), *(invariant if endless else [])], loops


def _between_rows(loop: Loop, table: RowTable, row_of: dict[int, int]) -> Loop:
    """Return a loop of the graph as a loop between the rows of a body."""

    def at(nodes: Nodes) -> Nodes:
        different, where = np.unique(nodes, return_inverse=True)
        return np.array([row_of[node] for node in different.tolist()], dtype=np.int64)[where]

    for node in (node for use in loop.results for node in use.nodes.tolist()):
        if node not in row_of:  # not needed, but stored
            row_of[node] = table.leaf(sp.Symbol(f"inner_{node}", real=True))
    return between(loop, at)


def _nodes_of_body(graph: Graph, body: WrittenBody, outputs: Sequence[int]) -> tuple[set[int], list[int]]:
    """Return the nodes of the body, and the loop-invariant nodes that it reads from outside."""
    moving = moving_nodes(graph, body, outputs)
    inside, invariant, stack = set[int](), dict[int, None](), list(outputs)
    while stack:
        node = stack.pop()
        if node in inside or node in invariant:
            continue
        if node in moving or _is_number(graph, node) or graph.is_boolean(node):
            if node in graph.rules and body.home is None:  # whose derivative is the user's: rows would lose it
                raise NotOneBodyError(
                    "a custom or implicit derivative in its body belongs to one node, and not to a loop"
                )
            inside.add(node)
            stack += graph.operands[node]
            stack += read_by(body.made[node]) if node in body.made else []
        else:
            invariant[node] = None
    return inside, sorted(invariant)


def _is_number(graph: Graph, node: int) -> bool:
    return not (graph.operands[node] or graph.heads[node] is sp.Symbol or can_be_input(graph.atoms[node]))


def moving_nodes(graph: Graph, body: WrittenBody, outputs: Sequence[int]) -> set[int]:
    """Return the nodes that depend on slots. All of them are younger than the slots."""
    seen, stack = set[int](), [node for node in outputs if node >= body.start]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            parts = read_by(body.made[node]) if node in body.made else graph.operands[node]
            stack += [part for part in parts if part >= body.start]
    moving = seen & (body.reads.keys() | body.carries.keys() | body.made.keys())
    for node in sorted(seen - moving):
        if not moving.isdisjoint(graph.operands[node]):
            moving.add(node)
    return moving


def _columns(leaf: Any, scope: Scope) -> tuple[list[Reads], bool]:
    """Return an operand's columns, one for each element of a piece and its slot; whether these are truth values."""
    if isinstance(leaf, np.ndarray) and type(leaf) is np.ndarray and leaf.dtype != object:
        flat = leaf.reshape(len(leaf), -1)
        return list(np.ascontiguousarray(flat.T, dtype=np.float64)), leaf.dtype == bool
    nodes = nodes_of(leaf, scope)
    truths = all_truths(scope.graph, nodes)  # of the first: arrays are kept homogeneous
    flat = (numbers(scope.graph, nodes) if truths else nodes).reshape(len(nodes), -1)
    return list(np.ascontiguousarray(flat.T)), truths


def leaves(graph: Graph, count: int) -> Nodes:
    """Return leaves for slots and results."""
    created = graph.own_leaves(count, lambda k: sp.Dummy("slot", real=True))
    return np.arange(created.start, created.stop, dtype=np.int64)


def read_by(loop: Loop) -> list[int]:
    """Return the nodes that a loop reads."""
    columns = [column for column in (*loop.reads, *(use.initial for use in loop.carries)) if is_nodes(column)]
    nodes: list[int] = distinct(np.concatenate([distinct(column) for column in columns])).tolist() if columns else []
    return nodes


def origin() -> str:
    """Return the user's file and line, without folders; "" if unknown."""
    return short(user_place())
