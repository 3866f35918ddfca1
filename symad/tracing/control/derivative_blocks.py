"""Derivatives taken in the code of a function whose loops are recorded.

The inner function is traced once with its loops, on leaves of the graph in place of its arguments. Captured values
become inputs too, in which it is not differentiated. Its derivative is a rolled program, made by `Scope.differentiate`,
and stands between the nodes of the graph like a loop: outer transforms differentiate it again. So a captured value and
an argument of equal value stay different at every level.
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
    """The maker of derivatives of functions with loops, and the keys of functions that are too small for one."""

    make: Callable[..., tuple[RolledProgram, Sequence[Loop]] | None]
    small: set[Any] = field(default_factory=set)


class NotABlockError(Exception):
    """A derivative is taken in the graph, operation by operation."""


@dataclass(frozen=True, eq=False)
class Taken:
    """A derivative: traced arrays, and the patterns of those that are the data of sparse matrices."""

    arrays: list[Any]
    patterns: list[SparsityPattern | None]


@dataclass(frozen=True, eq=False)
class Inner:
    """A function that is differentiated in the code of another one: its trace between leaves, in a program's form."""

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
    key: Any  # of the function, as far as it can be identified
    state: ReachableState  # before it was called
    of_arrays: bool  # whether some of its loops are operations on large arrays

    def derivative(self, kind: str, seeds: tuple[Any, ...] = (), **options: Any) -> Taken | None:
        """Return a kind of derivative as arrays (`symad.derivatives.loops.kinds`); None if loops lack it.

        `seeds` are further inputs of the program, such as tangents.
        """
        try:
            with discarding_recorded_errors():
                derived = self.scope.differentiate.make(self, kind, **options)
                if derived is None:
                    return None
                arrays = lift(self.scope, seeds, paths_of(seeds, [kind] * len(seeds))).arrays
                program, loops = derived
                return self._written(program, loops, [*self.inputs, *arrays], kind)
        except (LimitError, InvariantError):
            raise
        except (WorkbenchError, NotABlockError):  # refused in the graph too, there with the user's line
            return None

    def put_back(self) -> None:
        """Restore the state that the function has changed: it is called again, to be differentiated in the graph."""
        self.state.restore(user_place())
        if not self.loops:
            self.scope.differentiate.small.add(self.key)

    @property
    def inputs(self) -> list[Nodes]:
        """The outer nodes that are the inputs of its program."""
        return [*self.arguments.arrays, *([self.captured] if self.captured.size else [])]

    @property
    def leaves(self) -> list[Nodes]:
        """The inner nodes of these inputs."""
        return [*self.parameters.arrays, *self.inputs[len(self.arguments.arrays) :]]

    def _written(self, program: RolledProgram, loops: Sequence[Loop], inputs: list[Nodes], kind: str) -> Taken:
        shapes = [array.shape for array in program.inputs]
        if shapes != [nodes.shape for nodes in inputs] or not all(buffer.size for buffer in program.buffers):
            raise NotABlockError
        outputs = [leaves(self.graph, array.size) for array in program.outputs]
        results = tuple(LoopResult(number, "each", nodes) for number, nodes in enumerate(outputs))
        assert self.scope.loops is not None
        self.scope.loops[object()] = RolledBlock(
            NOTHING, 1, tuple(nodes.ravel() for nodes in inputs), results,
            origin=f"{kind} of {self.name}", program=program, found=tuple(loops),
        )  # fmt: skip
        self.graph.place_all(len(self.graph.marks), user_frame)
        shaped = [nodes.reshape(array.shape) for nodes, array in zip(outputs, program.outputs, strict=True)]
        return Taken([from_nodes(nodes, self.scope) for nodes in shaped], [array.pattern for array in program.outputs])


def scope_of_code() -> Scope | None:
    """Return the innermost scope whose loops are recorded and differentiated, as in code that is compiled."""
    scope = innermost_scope()
    return None if scope is None or scope.loops is None or scope.differentiate is None else scope


def inner_function(
    f: Callable[..., Any], arguments: tuple[Any, ...], names: Sequence[str], seeds: Any = ()
) -> Inner | None:
    """Return a function that is differentiated at traced values in a function whose loops are recorded.

    None if loops are not recorded, if no value is traced, and if the function cannot be traced on its own.
    """
    scope = scope_of_code()
    if scope is None or scope.loops is None:
        return None
    values = containers.flatten((arguments, seeds))[0]
    if not any(isinstance(leaf, Traced) for leaf in values):
        return None
    key = _key(f, values)
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
    """Return a key of a function at some values: its code, the functions that it calls, and the values' shapes."""
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
    actual = lift(scope, arguments, paths_of(arguments, names), differentiable=True)
    start = len(graph)
    with open_scope() as inner:
        parameters = actual.refill(leaves(graph, actual.size))
        inner.parameters, inner.loops = parameters.nodes, {}
        inner.arrays = None if scope.arrays is None else scope.arrays.within(inner)
        result = result_of(f, inner, lambda: call(f, lambda: wrap(inner, parameters)), of_captured=True)
        loops = tuple(inner.loops.values())
        of_arrays = inner.arrays is not None and inner.arrays.written_down > 0
        if isinstance(inner.paths, Paths) and inner.paths.explored > 1 and not state.unchanged():
            raise NotABlockError  # the code around would see the changes of the last path
    if has_truths(graph, result.nodes):
        raise NotABlockError
    needed, captured = _needed(graph, start, parameters.nodes, result.nodes, loops)
    has_rules = any(needed[rule] for rule in graph.rules)
    return Inner(
        scope, graph, name_of(f), actual, captured, parameters, result, loops, int(needed.sum()), has_rules, key,
        state, of_arrays,
    )  # fmt: skip


def _needed(
    graph: Graph, start: int, parameters: Nodes, results: Nodes, loops: Sequence[Loop]
) -> tuple[NDArray[np.bool_], Nodes]:
    """Return which nodes a function needs, and the nodes that it captures, without numbers."""
    flat = flattened(graph)
    is_leaf, is_given = ~flat.is_operation, np.zeros(len(flat), dtype=bool)
    for nodes in (parameters, *(use.nodes for loop in loops for use in loop.results)):
        is_given[nodes] = True
    wave = distinct(np.concatenate([results, *(nodes for loop in loops for nodes in loop.nodes_read)]))
    seen, captured, stack = is_given.copy(), [], wave[~(is_given | is_leaf)[wave]].tolist()
    seen[wave] = True
    while stack:
        node = stack.pop()
        if node < start and not graph.is_boolean(node):
            captured.append(node)
            continue
        for part in graph.operands[node]:
            stack += [] if seen[part] or is_leaf[part] else [part]
            seen[part] = True
    others = np.flatnonzero(seen & is_leaf & ~is_given)
    for code in distinct(flat.codes[others]).tolist():  # also inner slots of an outer loop: `x[k]`
        alike = others[flat.codes[others] == code].tolist()
        are_symbols = flat.heads[code] is sp.Symbol  # whose atoms need not be made
        captured += alike if are_symbols else [leaf for leaf in alike if can_be_input(graph.atoms[leaf])]
    seen[captured] = False
    return seen, np.array(sorted(captured), dtype=np.int64)
