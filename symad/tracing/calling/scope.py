"""A scope: the part of a computation in which traced values may be used.

Every derivative level opens one. Nested levels share the graph of the outermost one. A value of a closed scope is
refused, so that a traced value kept after its level closed never gives a stale number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.bound import bound
from codegen.loops.loop import Loop
from symad.errors import EscapedValueError, TraceError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import user_place

_lines: ContextVar[bool] = ContextVar("symad_source_lines", default=True)
_innermost: ContextVar[Scope | None] = ContextVar("symad_innermost_scope", default=None)


@contextmanager
def source_lines(keep: bool) -> Iterator[None]:
    """Keep, or do not keep, the user's line of each node in the graphs that are begun in this block (default: keep).

    The lines appear in errors about a node. Keeping them costs about a tenth of the time of tracing.

    >>> import symad as sa
    >>> with sa.source_lines(False):
    ...     sa.trace(lambda x: x * x, 1.0).graph.marks
    []
    """
    with bound(_lines, keep):
        yield


class Scope:
    """A graph to trace into, the scope around it, and whether it is still open.

    `parameters` are the nodes of the arguments of this scope; `values` has the numbers of nodes that Python control
    flow has asked for; `paths` (`control.paths.Paths`) answers conditions without a number, if all paths are followed.
    `raises` says whether the function, or a body in it, raises on a path that numbers can take.
    `loops` has the recorded loops, by their keys; None where loops are unrolled. `carried_out` has the reasons for
    unrolled ones, by the user's line. `arrays`, if not None, records operations on large arrays.
    `gather` returns `nodes[key]` in the body of a loop, for a key that is known for every repetition.
    `differentiate` makes rolled programs of derivatives that are taken in the code, where loops are recorded.
    """

    __slots__ = (
        "__weakref__", "_parameters", "arrays", "carried_out", "depth", "differentiate", "gather", "graph", "loops",
        "open", "parent", "paths", "raises", "reaching", "symbolic", "symbols", "values",
    )  # fmt: skip

    def __init__(self, graph: Graph, parent: Scope | None) -> None:
        self.graph: Graph = graph
        self.parent: Scope | None = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.open: bool = True
        self._parameters: Sequence[int] | NDArray[np.int64] | frozenset[int] = ()
        self.values: dict[int, float | bool] = {} if parent is None else parent.values
        self.reaching: dict[int, bool] = {}  # which nodes depend on this level, on those around it, or on symbols
        self.symbolic: dict[int, bool] = {} if parent is None else parent.symbolic  # which nodes depend on symbols
        self.symbols: dict[int, Any] = {}  # of nodes that SymPy functions got
        self.paths: Any = None if parent is None else parent.paths
        self.raises: bool = False
        self.carried_out: dict[str, str] = {} if parent is None else parent.carried_out
        self.loops: dict[Any, Loop] | None = None
        self.arrays: Any = None
        self.gather: Callable[[Any, Any], Any] | None = None if parent is None else parent.gather
        self.differentiate: Any = None if parent is None else parent.differentiate

    @property
    def parameters(self) -> frozenset[int]:
        """The nodes that stand for the arguments; given as an array, of which a set is made when it is asked for."""
        if not isinstance(self._parameters, frozenset):
            self._parameters = frozenset(np.asarray(self._parameters, dtype=np.int64).tolist())
        return self._parameters

    @parameters.setter
    def parameters(self, nodes: Sequence[int] | NDArray[np.int64] | frozenset[int]) -> None:
        self._parameters = nodes

    def deciding(self) -> Any:
        """Return the exploration that answers conditions on values of this scope here, None if there is none."""
        inner = innermost_scope()
        paths = None if inner is None or inner.graph is not self.graph else inner.paths
        return paths if paths is not None and paths.of_captured else self.paths

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and those around it, outwards."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def check_open(self) -> None:
        """Raise EscapedValueError, with the user's file and line, when this scope has been closed."""
        if not self.open:
            raise escaped_value()


def escaped_value() -> EscapedValueError:
    """Return the error for a value of a closed scope."""
    return EscapedValueError(
        "a traced value was used after its derivative level closed",
        where=user_place(),
        why="it was kept in a variable, a list or an attribute outside the differentiated function",
        do="return the value from the function instead of storing it",
    )


def join(left: Scope, right: Scope) -> Scope:
    """Return the deeper of two scopes, which the result of an operation on values of both belongs to.

    EscapedValueError when one is closed, TraceError when they belong to different traces.
    """
    left.check_open()
    right.check_open()
    if left.graph is not right.graph:
        raise independent_traces()
    return left if left.depth >= right.depth else right


def independent_traces() -> TraceError:
    """Return the error for values of two graphs in one operation."""
    return TraceError(
        "traced values of two independent traces met",
        where=user_place(),
        why="they come from different threads, or from a function traced or compiled on its own",
        do="pass one of them in as an argument of the function that is being differentiated; where that starts "
        "threads, let each run its work by contextvars.copy_context().run",
    )


def innermost_scope() -> Scope | None:
    """Return the innermost open scope of this thread, or None outside every trace.

    A task or thread that was started inside a level inherits its context, and may run after the level closed.
    """
    scope = _innermost.get()
    while scope is not None and not scope.open:
        scope = scope.parent
    return scope


@contextmanager
def open_scope(*, apart: bool = False, graph: Graph | None = None) -> Iterator[Scope]:
    """Open a scope inside the innermost one (sharing its graph), or a fresh graph; it closes on every way out.

    A given graph is always used (a derivative rule works where the derivative is taken). `apart=True` always takes a
    fresh graph: a function that is traced on its own (to be compiled or shown) may not use traced values from around
    it, which would lose their derivatives.

    >>> with open_scope() as outer, open_scope() as inner, open_scope(apart=True) as alone:
    ...     inner.graph is outer.graph, inner.depth, alone.graph is outer.graph
    (True, 1, False)
    >>> inner.open
    False
    """
    parent = None if apart else innermost_scope()
    if graph is None:
        graph = Graph(lines=_lines.get()) if parent is None else parent.graph
    elif parent is not None and parent.graph is not graph:
        parent = None
    scope = Scope(graph, parent)
    try:
        with bound(_innermost, scope):
            yield scope
    finally:
        scope.open = False
        scope.paths = scope.arrays = None  # they refer to the scope: without them reference counting frees it
