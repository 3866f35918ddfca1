"""as_strided: a view of a traced array by strides, which are those of the array of its node ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symad.errors import ArgumentError
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.registry import implements
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.node_arrays import Nodes, all_truths
from symad.tracing.values.node_operands import nodes_of, scope_of


@implements(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None, subok: bool = False, **_: Any
) -> Any:
    """A view with another shape and other strides; refused where it would read what is no element of the array."""
    scope = scope_of(x)
    nodes = x.nodes if isinstance(x, Array) else np.array(nodes_of(x, scope))
    shape = nodes.shape if shape is None else tuple(shape)
    steps = nodes.strides if strides is None else tuple(strides)
    if all_truths(scope.graph, nodes) or not _is_inside(nodes, shape, steps):
        raise ArgumentError(
            f"as_strided with shape {shape} and strides {steps}",
            where=user_place(),
            why=f"it reads what is no element of the array, of shape {nodes.shape} and strides {nodes.strides}",
            do="give multiples of x.strides, of an array that is no view with gaps (np.ascontiguousarray(x))",
        )
    return wrap(np.lib.stride_tricks.as_strided(nodes, shape, steps), scope)


def _is_inside(nodes: Nodes, shape: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether all places of a view are those of elements, which stand without gaps."""
    if 0 in shape:
        return True
    own = [(abs(step), count, step) for step, count in zip(nodes.strides, nodes.shape, strict=True) if count > 1]
    width = nodes.itemsize
    for size, count, _ in sorted(own):
        if size not in (0, width):
            return False
        width = size * count if size else width
    low, high = (sum(pick(0, (count - 1) * step) for _, count, step in own) for pick in (min, max))
    reads = [(count - 1) * step for count, step in zip(shape, steps, strict=True)]
    first, last = (sum(pick(0, read) for read in reads) for pick in (min, max))
    return nodes.size > 0 and low <= first and last <= high and not any(step % nodes.itemsize for step in steps)
