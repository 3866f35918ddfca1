"""A level: one application of a transform, with its own parameters and a record of its steps.

The parameters are alias nodes: equal in value to the arguments, never the same node. A captured `x` and the argument
`y` stay different nodes even where they are equal, which is what prevents perturbation confusion (Siskind and
Pearlmutter 2005; Manzyuk et al. 2019). When a level closes, its results belong to the level around it; at the outside
they are numbers for numbers and SymPy expressions for SymPy expressions.

Roles: what the levels of a computation did, step by step, noted while `noting` is open and never otherwise. What a node
is to a level (parameter, residual, tangent, cotangent) follows from these steps: `symad.derivatives.node_roles` reads
them. A pass says what it did by one call of `note`, whose details are what it has in its hands anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FrameType
from typing import Any, Literal, TypeVar

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.bound import bound
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.errors import ArgumentError
from symad.graph.array_values import values_of_array, values_of_nodes
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy, to_sympy
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import argument_names, check_function, name_of
from symad.tracing.calling.memory import telling
from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.scope import Scope, innermost_scope, open_scope
from symad.tracing.calling.user_place import is_library, user_frame
from symad.tracing.control.array_graph import ArrayGraph, array_graph
from symad.tracing.control.paths import followed
from symad.tracing.values.known_numbers import reaches
from symad.tracing.values.node_operands import SymbolMetArraysError
from symad.tracing.values.node_trees import Nodes, Tree, expressions, lift, lift_result, paths_of, wrap
from symad.tracing.values.python_numbers import note_arguments
from symad.tracing.values.traced import Traced

Kind = Literal["tangent", "cotangent"]
Step = Literal["opened", "called", "closed", "linearized", "carried", "residual", "eliminated"]

_INNER = {"described", "open_level", "Level", "require_scalar", "note", "jit"}
_MODULES = ("symad.tracing", "symad.derivatives.linear")  # where no transform is


@dataclass(frozen=True, eq=False)
class Event:
    """One step of a level: it made the nodes from `start` to `end`; `transform` is the function that opened a level."""

    step: Step
    graph: Graph
    level: int
    start: int
    end: int
    transform: str
    detail: tuple[Any, ...]


_events: ContextVar[list[Event] | None] = ContextVar("symad_events", default=None)


@contextmanager
def noting() -> Iterator[list[Event]]:
    """Collect the steps of derivatives in this block.

    >>> with noting() as events:
    ...     note("linearized", Graph(), 1, 0)
    >>> events[0].step, events[0].level
    ('linearized', 1)
    """
    events: list[Event] = []
    with bound(_events, events):
        yield events


def is_noting() -> bool:
    """Whether the steps of derivatives are recorded."""
    return _events.get() is not None


def note(step: Step, graph: Graph, level: int, start: int, *detail: Any) -> None:
    """Record a step of a level, if steps are recorded; levels are counted from the outermost, which is 1."""
    events = _events.get()
    if events is not None:
        transform = _transform() if step == "opened" else ""
        events.append(Event(step, graph, level, start, len(graph), transform, detail))


def _transform() -> str:
    """Return the transform that opened a level: our outermost function, up to the user's code or the level around."""
    name = ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_library(frame.f_code.co_filename):
        module, top = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname.partition(".")[0]
        if module == "symad.tracing.calling.attempts":
            break  # a level calls its function there
        if module.startswith("symad.") and not module.startswith(_MODULES):
            name = name if top in _INNER or top.startswith("_") else top
        frame = frame.f_back
    return name


class Epsilon(sp.Symbol):  # type: ignore[misc]
    """The nilpotent symbol of one level, for display: its square is zero, products with other levels are not.

    >>> one, two = Epsilon.of_level(1), Epsilon.of_level(2)
    >>> one**2, sp.expand((1 + one + two) ** 2)
    (0, 2*epsilon_1*epsilon_2 + 2*epsilon_1 + 2*epsilon_2 + 1)
    """

    @classmethod
    def of_level(cls, level: int) -> Epsilon:
        """Return the epsilon of a level, a real symbol."""
        return cls(f"epsilon_{level}", real=True)

    def _eval_power(self, exponent: sp.Expr) -> sp.Expr | None:
        if exponent.is_number and exponent >= 2:
            return sp.S.Zero
        if exponent.is_number and exponent < 0:
            raise ZeroDivisionError(f"{self} is nilpotent: it has no reciprocal")
        return None


class FunctionResultError(ArgumentError):
    """The traced function returned functions; a transform that can, differentiates their values instead."""

    function: Callable[..., Any]
    structure: containers.Structure

    def __init__(self, function: Callable[..., Any], structure: containers.Structure) -> None:
        self.function, self.structure = function, structure
        super().__init__(
            f"{name_of(function)} returned a function",
            why="only derivative, grad and jvp differentiate the values of a returned function",
            do="return the value of that function at some argument",
        )

    @property
    def is_single(self) -> bool:
        """Whether the result was a function itself, and no container."""
        return bool(self.structure.is_leaf())

    def each(self, f: Callable[..., Any], transform: Callable[[Callable[..., Any]], Any]) -> Any:
        """Return the containers with the transform of each function that returns one leaf of the result."""

        def part(k: int) -> Callable[..., Any]:
            return wraps(f)(lambda *args, **keywords: containers.flatten(f(*args, **keywords))[0][k])

        return containers.unflatten(self.structure, [transform(part(k)) for k in range(self.structure.num_leaves)])

    def unless_from(self, function: Callable[..., Any]) -> None:
        """Raise this error again when another function, in an inner transform, was its cause."""
        if function not in (self.function, getattr(self.function, "__wrapped__", None)):
            raise self


class Level:
    """An open level: its scope, the tree of its alias parameters."""

    __slots__ = ("build", "parameters", "scope", "start")

    def __init__(self, scope: Scope, arguments: tuple[Any, ...], names: Sequence[str]) -> None:
        self.scope: Scope = scope
        self.start: int = len(scope.graph)
        self.build: Builder = Builder(scope.graph)
        lifted = lift(scope, arguments, paths_of(arguments, names), differentiable=True)
        self.parameters: Tree = Tree(lifted.structure, [_aliases(scope, nodes) for nodes in lifted.arrays])
        note_arguments(scope.graph, containers.flatten(arguments)[0], self.parameters.arrays)
        scope.parameters = scope.graph.arrays.roots(self.parameters.nodes)
        note("opened", scope.graph, scope.depth, self.start, self.parameters, names)
        scope.graph.place_all(len(scope.graph.marks), user_frame)

    @property
    def has_array_nodes(self) -> bool:
        """Whether operations on arrays are array nodes, and there are some."""
        return self.scope.arrays is not None and bool(self.scope.graph.arrays.nodes)

    def call(self, f: Callable[..., Any]) -> Tree:
        """Call `f` on the parameters and return the tree of its result's nodes, merged over its paths."""
        check_function(f)
        start, scope = len(self.scope.graph), self.scope

        def lift_of(result: Any) -> Tree:
            if not isinstance(result, Traced):
                leaves, structure = containers.flatten(result)
                if any(map(_is_function, leaves)):
                    raise FunctionResultError(f, structure)
            return self._with_slopes_of_nan(lift_result(scope, result, name_of(f)))

        if getattr(f, ONE_PATH, False):
            output = lift_of(f(*wrap(scope, self.parameters)))
        else:
            output = followed(scope, f, lambda: call(f, lambda: wrap(scope, self.parameters)), lift_of)
        note("called", self.scope.graph, self.scope.depth, start, name_of(f), output)
        return output

    def _with_slopes_of_nan(self, result: Tree) -> Tree:
        """Return a result in which a constant NaN depends on all parameters: its derivatives of any order are NaN."""
        graph, build = self.scope.graph, self.build
        if not graph.has(sp.nan):
            return result
        nan = graph.leaf(sp.nan)
        if not any(np.any(array == nan) for array in result.arrays):
            return result
        total = build.zero
        for parameter in self.parameters.flat:
            total = build.add(total, parameter)
        spoilt = build.mul(nan, build.call(sp.exp, total))
        return Tree(result.structure, [np.where(array == nan, spoilt, array) for array in result.arrays])

    def close(self, *trees: Tree) -> tuple[Any, ...]:
        """Return trees of nodes as values for the code around the level."""
        return tuple(deliver(self.scope, tree) for tree in trees)


def _aliases(scope: Scope, nodes: Nodes) -> Nodes:
    if scope.arrays is not None and (aliases := scope.arrays.aliases(nodes)) is not None:
        return aliases  # type: ignore[no-any-return]
    return np.array(list(map(scope.graph.alias, nodes.ravel().tolist())), dtype=np.int64).reshape(nodes.shape)


def _is_function(leaf: Any) -> bool:
    """Whether a leaf of a result can be called, and is no expression (SymPy's symbols can be called)."""
    return callable(leaf) and (isinstance(leaf, sp.Lambda) or not isinstance(leaf, sp.Expr))


ONE_PATH = "_symad_one_path"  # attribute of functions of ours in which nothing is decided, and that raise no error
T = TypeVar("T")


def in_level(
    arguments: Sequence[Any], names: Sequence[str], carried_out: Callable[[Level], T], *, arrays: bool = True
) -> T:
    """Run in a level and return the result; on numbers, operations on arrays are array nodes (`array_linear`)."""
    if arrays and _suits_arrays(arguments):
        try:
            with open_level(arguments, names, arrays=True) as level:
                return carried_out(level)
        except SymbolMetArraysError as error:
            if innermost_scope() is not None:
                raise
            discard_recorded_error(error)
    with open_level(arguments, names) as level:
        return carried_out(level)


def _suits_arrays(arguments: Sequence[Any]) -> bool:
    """Whether a level has array nodes: inside another one as that, at the outside on numbers."""
    around = innermost_scope()
    if is_noting():
        return False
    if around is not None:
        return isinstance(around.arrays, ArrayGraph)
    leaves, _ = containers.flatten(tuple(arguments))
    return all(isinstance(leaf, int | float | np.number | np.ndarray) for leaf in leaves) and not any(
        isinstance(leaf, np.ndarray) and leaf.dtype == object for leaf in leaves
    )


@contextmanager
def open_level(
    arguments: Sequence[Any], names: Sequence[str] | None = None, *, arrays: bool = False
) -> Iterator[Level]:
    """Open a level whose parameters stand for the arguments (numbers, arrays, containers, SymPy or traced values).

    >>> with open_level([2.0]) as level:
    ...     result = level.call(lambda x: x * x)
    ...     level.close(result)
    (4.0,)
    """
    with open_scope() as scope:
        scope.arrays = array_graph(scope) if arrays else None
        level = Level(scope, tuple(arguments), names or argument_names(None, len(arguments)))
        try:
            with telling():
                yield level
        finally:
            note("closed", scope.graph, scope.depth, len(scope.graph))


def deliver(scope: Scope, tree: Tree) -> Any:
    """Return a tree of nodes as the code outside `scope` sees it: numbers, SymPy expressions or traced values.

    Inside another level only values that depend on its parameters stay traced. The others become numbers, and their
    derivative there is a structural zero.
    """
    scope.graph.place_all(len(scope.graph.marks), user_frame)  # the rest was made for the user's line at this moment
    if scope.parent is not None:
        outside = {node for outer in scope.parent.chain() for node in outer.parameters}
        if reaches(scope.graph, tree.nodes, outside, scope.parent.reaching):
            return wrap(scope.parent, tree)
    symbolic = scope.parent is None and not scope.graph.arrays.nodes and _has_symbols(scope.graph, tree.flat)
    values = (expressions(scope.graph, array) if symbolic else _numbers(scope, array) for array in tree.arrays)
    return containers.unflatten(tree.structure, list(values))


def carry(scope: Scope, nodes: Sequence[int], graph: Graph) -> dict[int, int]:
    """Return nodes of another graph with the values of a closed scope's nodes: their numbers or expressions."""
    if not scope.graph.arrays.nodes and _has_symbols(scope.graph, nodes):
        return dict(zip(nodes, from_sympy(graph, to_sympy(scope.graph, nodes), binary=True), strict=True))
    values = values_of_nodes(scope.graph, list(nodes), scope.values)
    return {node: graph.number(value) for node, value in zip(nodes, values, strict=True)}


def _has_symbols(graph: Graph, nodes: Sequence[int]) -> bool:
    return any(isinstance(graph.atoms.get(node), sp.Symbol) for node in reachable(graph, nodes))


def _numbers(scope: Scope, array: Nodes) -> Any:
    values = values_of_array(scope.graph, array, scope.values)
    return values.item() if array.ndim == 0 else values
