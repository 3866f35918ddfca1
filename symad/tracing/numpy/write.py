"""NumPy functions that write into a traced array, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import is_traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.array import plain_index
from symad.tracing.values.node_arrays import Nodes, like
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.traced import store_error

IN_PLACE = frozenset({np.copyto, np.fill_diagonal, np.put, np.put_along_axis, np.place, np.putmask})


def _write(target: Any, values: Any, writing: Callable[[Nodes, Nodes], None]) -> None:
    """Call writing(nodes of the target, nodes of the values); TraceError for an ordinary target."""
    if not is_traced(target):
        raise store_error()
    scope = scope_of(target, values)
    writing(target.nodes, like(scope.graph, target.nodes, nodes_of(values, scope)))
    target.scope = scope


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write src into the traced array dst, where the mask holds."""
    if not is_traced(dst):
        raise store_error()
    dst[...] = src if where is True else np.where(where, src, dst)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write val on the diagonal."""
    _write(a, val, lambda nodes, new: np.fill_diagonal(nodes, new, wrap))


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Write v at flat positions."""
    _write(a, v, lambda nodes, new: np.put(nodes, plain_index(ind), new, mode))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values at positions along an axis."""
    _write(arr, values, lambda nodes, new: np.put_along_axis(nodes, plain_index(indices), new, axis))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the first values where the mask (by its values) holds, one after the other."""
    _write(arr, vals, lambda nodes, new: np.place(nodes, plain_index(mask), new.ravel()))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the values at the same flat positions where the mask (by its values) holds."""
    _write(a, values, lambda nodes, new: np.putmask(nodes, plain_index(mask), new))
