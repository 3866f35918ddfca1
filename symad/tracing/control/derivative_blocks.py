"""Derivatives taken in the code of a function whose loops are recorded.

The function that is differentiated is traced once, on leaves of the graph in place of its arguments, with its loops;
what it captures from around it becomes an input too, in which it is not differentiated. Its derivative is a rolled
program, made by what `Scope.differentiate` says, and stands between the nodes of the graph as a loop does: transforms
around it differentiate it again. So a captured value and an argument that equals it stay apart at every level.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.expressions.sympy_forms import can_be_input
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.ir.sparsity import SparsityPattern
from codegen.ir.strictness import fall_back
from codegen.ir.tables import distinct
from codegen.loops.find.flat_rows import flattened
from codegen.loops.loop import Loop, LoopResult, Nodes, RolledBlock
from codegen.records import dataclass
from symad.errors import InvariantError, LimitError, WorkbenchError
from symad.graph.graph import Graph
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.calling.scope import Scope, innermost_scope, open_scope
from symad.tracing.calling.user_place import is_defect, user_frame, user_place
from symad.tracing.control.paths import Paths
from symad.tracing.control.written_bodies import leaves, result_of
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.node_arrays import has_truths
from symad.tracing.values.node_trees import Tree, lift, paths_of, wrap
from symad.tracing.values.traced import Traced

NOTHING = Program([], [], {}, (), (), "nothing")


@dataclass(frozen=True)
class Differentiation:
    """What makes derivatives of functions with loops, and those functions that were found to be too small for any."""

    make: Callable[..., tuple[RolledProgram, Sequence[Loop]] | None]
    small: set[Any] = field(default_factory=set)


class NotABlockError(Exception):
    """A derivative is taken in the graph, operation by operation."""


@dataclass(frozen=True, eq=False)
class Taken:
    """What a derivative gives: traced arrays, and the patterns of those that are the data of sparse matrices."""

    arrays: list[Any]
    patterns: list[SparsityPattern | None]


@dataclass(frozen=True, eq=False)
class Inner:
    """A function that is differentiated in the code of another one: its trace between leaves, as a program can have it.

    `inputs` are the nodes of the arguments, and those that are captured; `traced` has leaves for the former, and the
    captured nodes themselves.
    """

    scope: Scope  # of the function around it
    graph: Graph
    name: str
    arguments: Tree
    captured: Nodes
    parameters: Tree
    result: Tree
    loops: tuple[Loop, ...]
    size: int  # nodes that it needs
    has_rules: bool  # whether a custom or implicit derivative is in it
    key: Any  # what tells it from other functions, as far as can be told
    state: ReachableState  # before it was called
    of_arrays: bool  # whether some of its loops are operations on large arrays

    def derivative(self, kind: str, seeds: tuple[Any, ...] = (), **options: Any) -> Taken | None:
        """Return a kind of derivative as arrays (`symad.derivatives.loops.kinds`); None where it is not taken of loops.

        `seeds` are further inputs of the program, such as tangents.
        """
        try:
            with discarding_recorded_errors():
                made = self.scope.differentiate.make(self, kind, **options)
                if made is None:
                    return None
                arrays = lift(self.scope, seeds, paths_of(seeds, [kind] * len(seeds))).arrays
                program, found = made
                return self._written(program, found, [*self.inputs, *arrays], kind)
        except (LimitError, InvariantError):
            raise
        except (WorkbenchError, NotABlockError):  # refused in the graph too, there with the user's line
            return None

    def put_back(self) -> None:
        """Put back what the function has changed: it will be called again, to be differentiated in the graph."""
        self.state.restore(user_place())
        if not self.loops:
            self.scope.differentiate.small.add(self.key)

    @property
    def inputs(self) -> list[Nodes]:
        """The nodes around that the inputs of its program stand for."""
        return [*self.arguments.arrays, *([self.captured] if self.captured.size else [])]

    @property
    def leaves(self) -> list[Nodes]:
        """The nodes that they have inside."""
        return [*self.parameters.arrays, *self.inputs[len(self.arguments.arrays) :]]

    def _written(self, program: RolledProgram, found: Sequence[Loop], inputs: list[Nodes], kind: str) -> Taken:
        if [array.shape for array in program.inputs] != [nodes.shape for nodes in inputs]:
            raise NotABlockError
        if not all(buffer.size for buffer in program.buffers):
            raise NotABlockError
        made = [leaves(self.graph, array.size) for array in program.outputs]
        results = tuple(LoopResult(number, "each", nodes) for number, nodes in enumerate(made))
        assert self.scope.loops is not None
        self.scope.loops[object()] = RolledBlock(
            NOTHING, 1, tuple(nodes.ravel() for nodes in inputs), results,
            origin=f"{kind} of {self.name}", program=program, found=tuple(found),
        )  # fmt: skip
        self.graph.place_all(len(self.graph.marks), user_frame)
        shaped = [nodes.reshape(array.shape) for nodes, array in zip(made, program.outputs, strict=True)]
        return Taken([from_nodes(nodes, self.scope) for nodes in shaped], [array.pattern for array in program.outputs])


def scope_of_code() -> Scope | None:
    """Return the innermost scope where loops are written down and differentiated, as in code that is compiled."""
    scope = innermost_scope()
    return None if scope is None or scope.loops is None or scope.differentiate is None else scope


def inner_function(
    f: Callable[..., Any], arguments: tuple[Any, ...], names: Sequence[str], seeds: Any = ()
) -> Inner | None:
    """Return a function whose derivative at traced values is taken in a function whose loops are written down.

    None where it is not; where nothing is traced; and where it cannot be traced for itself.
    """
    scope = scope_of_code()
    if scope is None or scope.loops is None:
        return None
    given = containers.flatten((arguments, seeds))[0]
    if not any(isinstance(leaf, Traced) for leaf in given):
        return None
    key = _key(f, given)
    if key in scope.differentiate.small or (state := ReachableState(f, restores=True)).unknown:
        return None
    written = len(scope.loops)
    try:
        with discarding_recorded_errors():
            return _traced(scope, f, arguments, names, state, key)
    except LimitError:
        raise
    except Exception as error:
        state.restore(user_place())
        while len(scope.loops) > written:
            scope.loops.popitem()
        if is_defect(error) and not isinstance(error, NotABlockError):
            fall_back(name_of(f), "it cannot be traced for itself", error)
        return None


def _key(f: Any, values: Sequence[Any]) -> Any:
    """Return what tells a function at some values from others: its code, what it calls, and the values' shapes."""
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = getattr(f, "__code__", None)
    if code is None:
        return id(f), *map(containers.shape_of, values)
    empty = types.CellType()
    cells = [cell.cell_contents for cell in f.__closure__ or () if cell != empty]
    return code, tuple(id(value) for value in cells if callable(value)), *map(containers.shape_of, values)


def _traced(
    scope: Scope,
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    names: Sequence[str],
    state: ReachableState,
    key: Any,
) -> Inner:
    graph = scope.graph
    given = lift(scope, arguments, paths_of(arguments, names), differentiable=True)
    start = len(graph)
    with open_scope() as inner:
        parameters = given.refill(leaves(graph, given.size))
        inner.parameters, inner.loops = parameters.nodes, {}
        inner.arrays = None if scope.arrays is None else scope.arrays.within(inner)
        result = result_of(f, inner, lambda: call(f, lambda: wrap(inner, parameters)), of_captured=True)
        loops = tuple(inner.loops.values())
        of_arrays = inner.arrays is not None and inner.arrays.written_down > 0
        if isinstance(inner.paths, Paths) and inner.paths.explored > 1 and not state.unchanged():
            raise NotABlockError  # the code around would see what the last path has changed
    if has_truths(graph, result.nodes):
        raise NotABlockError
    needed, captured = _needed(graph, start, parameters.nodes, result.nodes, loops)
    has_rules = any(needed[rule] for rule in graph.rules)
    return Inner(
        scope, graph, name_of(f), given, captured, parameters, result, loops, int(needed.sum()), has_rules, key,
        state, of_arrays,
    )  # fmt: skip


def _needed(
    graph: Graph, start: int, parameters: Nodes, results: Nodes, loops: Sequence[Loop]
) -> tuple[NDArray[np.bool_], Nodes]:
    """Return which nodes a function needs, and those that it captures: numbers of its own aside."""
    flat = flattened(graph)
    is_leaf, given = ~flat.is_operation, np.zeros(len(flat), dtype=bool)
    for nodes in (parameters, *(use.nodes for loop in loops for use in loop.results)):
        given[nodes] = True
    wave = distinct(np.concatenate([results, *(nodes for loop in loops for nodes in loop.nodes_read)]))
    seen, captured, stack = given.copy(), [], wave[~(given | is_leaf)[wave]].tolist()
    seen[wave] = True
    while stack:
        node = stack.pop()
        if node < start and not graph.is_boolean(node):
            captured.append(node)
            continue
        for part in graph.operands[node]:
            stack += [] if seen[part] or is_leaf[part] else [part]
            seen[part] = True
    found = np.flatnonzero(seen & is_leaf & ~given)
    for code in distinct(flat.codes[found]).tolist():  # also slots that were made inside for a loop around: `x[k]`
        its = found[flat.codes[found] == code].tolist()
        all_are = flat.heads[code] is sp.Symbol  # whose atoms need not be made
        captured += its if all_are else [leaf for leaf in its if can_be_input(graph.atoms[leaf])]
    seen[captured] = False
    return seen, np.array(sorted(captured), dtype=np.int64)
