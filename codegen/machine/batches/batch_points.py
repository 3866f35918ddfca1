"""Points of a batch: which axes of an array lead, how they broadcast, and where each point stands in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from codegen.errors import ArgumentError
from codegen.ir.program import Input, Output
from codegen.machine.calls.arguments import Array


def signature(inputs: Sequence[Input], outputs: Sequence[Output]) -> str:
    """Return how a batch broadcasts, in NumPy's notation.

    >>> signature([Input("x", (3,)), Input("s", ())], [Output((3, 3), ())])
    '(3),()->(3,3)'
    """

    def shapes(arrays: Sequence[Input | Output]) -> str:
        return ",".join(f"({','.join(map(str, array.shape))})" for array in arrays)

    return f"{shapes(inputs)}->{shapes(outputs)}"


def leading_axes(arrays: Sequence[Array], declared: Sequence[Input]) -> tuple[int, ...]:
    """Return the common shape of the axes in front of the declared ones.

    ArgumentError for an array that does not end in its declared shape, or leading axes that do not broadcast.

    >>> leading_axes([np.zeros((4, 1, 2)), np.zeros(5)], [Input("x", (2,)), Input("s", ())])
    (4, 5)
    """
    leading = []
    for k, (array, given) in enumerate(zip(arrays, declared, strict=True)):
        axes = array.ndim - len(given.shape)
        if axes < 0 or array.shape[axes:] != given.shape:
            raise ArgumentError(
                f"shape {array.shape}",
                where=f"argument {k} ({given.name})",
                why=f"its last axes are not {given.shape}, which the kernel was compiled for",
            )
        leading.append(array.shape[:axes])
    if leading and all(axes in ((), leading[0]) for axes in leading):
        return leading[0]
    try:
        return np.broadcast_shapes(*leading)
    except ValueError as error:
        shapes = ", ".join(map(str, leading))
        raise ArgumentError(f"leading axes {shapes}", why="they do not broadcast against each other") from error


def input_points(value: Array, declared: Input, leading: tuple[int, ...]) -> Array:
    """Return an input with one axis of points and one of machine numbers, without a copy where steps are regular.

    >>> input_points(np.zeros((4, 6))[::2, ::3], Input("x", (2,)), (2,)).strides
    (96, 24)
    """
    aligned = value if value.flags.aligned else value.copy()
    own = aligned.shape[: aligned.ndim - len(declared.shape)]
    rows = aligned.reshape(*own, declared.size)
    rows = _machine_numbers(rows if _parts_together(rows) else np.ascontiguousarray(rows))
    spread = rows if own == leading else np.broadcast_to(rows, (*leading, rows.shape[-1]))
    return spread if spread.ndim == 2 else spread.reshape(prod(leading), rows.shape[-1])


def points_of(value: Array, declared: Output, leading: tuple[int, ...]) -> Array | None:
    """Return a view of a result with one axis of points and one of machine numbers, None where steps are irregular.

    >>> result = np.zeros((3, 2, 2))
    >>> view = points_of(result, Output((2, 2), ()), (3,))
    >>> view.shape, view.base is result, points_of(np.zeros((3, 4, 4))[:, :2, :2], Output((2, 2), ()), (3,))
    ((3, 4), True, None)
    """
    flat = value.reshape(prod(leading), declared.size)
    regular = value.flags.aligned and np.may_share_memory(flat, value) and _parts_together(flat)
    return _machine_numbers(flat) if regular or not value.size else None


def overlaps(value: Array, others: Sequence[Array]) -> bool:
    """Whether an array may share memory with others."""
    return any(np.may_share_memory(value, other) for other in others)


def _parts_together(flat: Array) -> bool:
    """Whether the machine numbers of a point have one step: the parts of complex numbers are neighbours."""
    return flat.dtype.kind != "c" or flat.shape[-1] == 1 or flat.strides[-1] == flat.itemsize


def _machine_numbers(flat: Array) -> Array:
    return flat.view(np.float64) if flat.dtype.kind == "c" else flat
