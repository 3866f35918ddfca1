"""Boxes: bounds for all arguments of a kernel, whatever containers they come in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import Kernel
from symad.compiling.kernel_containers import ArgumentsApart
from symad.errors import ArgumentError
from symad.tracing.values.containers import flatten, unflatten

Points = NDArray[np.float64]  # one row for each point, in flat order of the arguments


@dataclass(frozen=True)
class Box:
    """Bounds of all flat arguments of a kernel, and the arguments' shapes."""

    low: Points
    high: Points
    shapes: tuple[tuple[int, ...], ...]
    structure: Any  # of the arguments' containers, None for plain arrays
    single: bool = False

    def arguments(self, points: Points) -> tuple[Any, ...]:
        """Return points as the kernel's arguments, with the leading axes of `points` in front."""
        leaves = [leaf if leaf.ndim else leaf.item() for leaf in self.arrays(points)]
        found: tuple[Any, ...] = tuple(leaves) if self.structure is None else unflatten(self.structure, leaves)
        return found

    def arrays(self, points: Points) -> list[Points]:
        """Return points as plain arrays, one for each leaf of the arguments."""
        leaves, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            leaves.append(points[..., start : start + size].reshape((*points.shape[:-1], *shape)))
            start += size
        return leaves

    def inside(self, points: Points) -> Points:
        """Return those points that lie in the box, as numbers of the kernel's type, each once."""
        kept = points.astype(np.float32).astype(float) if self.single else points
        kept = kept[np.all((kept >= self.low) & (kept <= self.high), axis=1)]
        _, first = np.unique(kept.view(np.uint64), axis=0, return_index=True)  # by bits: -0.0 is not 0.0
        return kept[np.sort(first)]


def box_of(kernel: Kernel, bounds: Any) -> Box:
    """Return the box of (low, high) for each argument of a kernel, or of one such pair for its only argument.

    Bounds are numbers, arrays or containers like the argument; a number holds for all of its entries, and an infinite
    one stands for the largest float. ArgumentError for anything else.

    >>> import symad as sa
    >>> kernel = sa.compile(lambda x, y: x @ x * y, np.zeros(2), 0.0)
    >>> box = box_of(kernel, [(-1, [1, 2]), (0, float("inf"))])
    >>> box.low, box.high
    (array([-1., -1.,  0.]), array([1.00000000e+000, 2.00000000e+000, 1.79769313e+308]))
    """
    shapes = tuple(array.shape for array in kernel.program.arguments)
    structure = kernel.pack.structure if isinstance(kernel.pack, ArgumentsApart) else None
    children = [None] * len(shapes) if structure is None else structure.children()
    low, high, start = [np.zeros(0)], [np.zeros(0)], 0
    for k, (pair, child) in enumerate(zip(_pairs(bounds, len(children)), children, strict=True)):
        part = shapes[start : start + (1 if child is None else child.num_leaves)]
        low.append(_bound(pair[0], part, child, f"the lower bound of argument {k}"))
        high.append(_bound(pair[1], part, child, f"the upper bound of argument {k}"))
        start += len(part)
    single = kernel.options.dtype == "float32"
    return _checked(Box(np.concatenate(low), np.concatenate(high), shapes, structure, single))


def _pairs(bounds: Any, slots: int) -> list[tuple[Any, Any]]:
    """Return one pair for each argument; a kernel of one argument may be given the pair itself."""
    try:
        given = list(bounds)
        if slots == 1 and len(given) == 2:
            given = [given]
        pairs = [tuple(pair) for pair in given]
    except TypeError:
        pairs = []
    if len(pairs) != slots or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"box={bounds!r}"[:200],
            why=f"the kernel takes {slots} argument{'s'[: slots != 1]}",
            do="give a pair (low, high) for each argument",
        )
    return [(pair[0], pair[1]) for pair in pairs]


def _bound(given: Any, shapes: Sequence[tuple[int, ...]], child: Any, name: str) -> Points:
    """Return a bound of one argument as flat numbers; `child` is the structure of a container, None for an array."""
    leaves = [given]
    if isinstance(given, int | float | np.number):
        leaves = [given] * len(shapes)
    elif child is not None and not child.is_leaf():
        leaves, structure = flatten(given)
        if structure != child:
            raise ArgumentError(f"{name} of structure {structure}", why=f"it is {child}", do="or give a number")
    parts = []
    for leaf, shape in zip(leaves, shapes, strict=True):
        try:
            parts.append(np.broadcast_to(np.asarray(leaf, dtype=float), shape).ravel())
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name} = {leaf!r}"[:200], why=f"not numbers of the shape {shape}") from error
    return np.concatenate(parts or [np.zeros(0)])


def _checked(box: Box) -> Box:
    if np.isnan(box.low).any() or np.isnan(box.high).any():
        raise ArgumentError("a box with a bound that is nan", do="give numbers")
    if (wrong := np.flatnonzero(box.low > box.high)).size:
        k = int(wrong[0])
        raise ArgumentError(f"a box from {box.low[k]:g} to {box.high[k]:g}", why=f"entry {k} has no point between them")
    largest = float(np.finfo(np.float32 if box.single else float).max)
    return replace(box, low=np.clip(box.low, -largest, largest), high=np.clip(box.high, -largest, largest))
