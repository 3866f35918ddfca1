"""What a traced array answers without its values: shape, type, flags, views, copies."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from symad.errors import TraceError
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.known_numbers import Nodes
from symad.tracing.values.node_arrays import all_truths, converted
from symad.tracing.values.traced import Traced


class Flags:
    """NumPy's `flags` of an array of nodes, except those about ownership of memory."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Nodes) -> None:
        object.__setattr__(self, "_nodes", nodes)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_MEMORY:
            raise TraceError(f"flags.{name} of a traced array", where=user_place(), why="it has no memory of its own")
        return getattr(self._nodes.flags, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._nodes.flags, name, value)

    def __getitem__(self, key: str) -> Any:
        name = {"O": "owndata", "X": "writebackifcopy"}.get(key, key.lower())
        return getattr(self, name) if name in _OF_MEMORY else self._nodes.flags[key]


_OF_MEMORY = ("owndata", "writebackifcopy", "num")


def _of_nodes(name: str) -> Callable[..., Any]:
    """Return a method that returns the array of the nodes in another form: a view where NumPy makes one."""

    def method(self: ArrayForm, *args: Any, **keywords: Any) -> Any:
        return self._made(getattr(self.nodes, name)(*args, **keywords))

    return method


class ArrayForm(Traced):
    """One node of the graph of `scope` per element, in an ordinary array, whose views and copies are NumPy's own."""

    __slots__ = ("nodes", "scope")

    def __init__(self, nodes: Nodes, scope: Scope) -> None:
        self.nodes: Nodes = nodes
        self.scope = scope

    shape = property(attrgetter("nodes.shape"), doc="The shape.")
    ndim = property(attrgetter("nodes.ndim"), doc="The number of axes.")
    size = property(attrgetter("nodes.size"), doc="The number of elements.")
    setflags = property(attrgetter("nodes.setflags"), doc="The method that makes it writeable, or not.")

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64, or bool for an array of truth values."""
        return np.dtype(bool if all_truths(self.scope.graph, self.nodes) else np.float64)

    @property
    def itemsize(self) -> int:
        """Bytes of one element of that dtype."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the NumPy array in its place."""
        return self.nodes.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each axis, from those of the nodes, which are views where NumPy has views."""
        return tuple([step // self.nodes.itemsize * self.itemsize for step in self.nodes.strides])

    @property
    def flags(self) -> Flags:
        """The memory layout, which is that of the nodes; arguments have C order."""
        return Flags(self.nodes)

    @property
    def T(self) -> Any:  # noqa: N802 (NumPy's name)
        """The transposed array, a view."""
        return self._made(self.nodes.T)

    @property
    def mT(self) -> Any:  # noqa: N802 (NumPy's name)
        """The array with its last two axes swapped, a view."""
        return self._made(self.nodes.mT)

    @property
    def imag(self) -> Any:
        """Zeros: traced values are real."""
        check_real(".imag")
        return self._made(np.full(self.shape, self.scope.graph.number(0.0)))

    def __len__(self) -> int:
        return len(self.nodes)

    def __copy__(self) -> Any:
        return self._made(self.scope.graph.arrays.copied(self.nodes))

    def __deepcopy__(self, memo: object) -> Any:
        return self.__copy__()

    def copy(self, order: str = "C") -> Any:
        """Return an independent array of the same nodes, in this order in memory."""
        return self._made(self.scope.graph.arrays.copied(self.nodes, order))

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return a view; other dtypes and subclasses (np.matrix) are refused."""
        if args or kwargs:
            why = "traced arrays are plain arrays of float64"
            raise TraceError("view() of a traced array as another type", where=user_place(), why=why, do="leave it out")
        return self._made(self.nodes.view())

    reshape, transpose, flatten = map(_of_nodes, ("reshape", "transpose", "flatten"))

    def astype(self, dtype: Any, order: Any = "K", *, copy: bool = True, **keywords: Any) -> Any:
        """Return the array as float; bool and int follow NumPy's rules (int truncates). A copy, unless copy=False."""
        own = np.dtype(bool if all_truths(self.scope.graph, self.nodes) else float)
        if not copy and np.dtype(dtype) == own:
            return self
        nodes = converted(self.scope.graph, self.nodes, dtype)
        return self._made(nodes if order == "K" else np.array(nodes, order=order))

    def _made(self, nodes: Nodes) -> Any:
        """Return a traced array of other nodes in this scope."""
        raise NotImplementedError
