"""Containers of arrays that a body gets piece by piece along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.expressions.sympy_in import entries
from codegen.machine.calls.arguments import refuse_rules
from codegen.records import dataclass
from symad.tracing.calling.user_place import refusal
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.node_operands import has_own_rules
from symad.tracing.values.node_trees import object_array
from symad.tracing.values.traced import Traced


@dataclass(frozen=True)
class Operands:
    """The arguments of a body: `leaves` have the repetitions as their first axis if `mapped`."""

    structure: Any
    leaves: tuple[Any, ...]
    mapped: tuple[bool, ...]
    count: int

    def row(self, k: int) -> Any:
        """Return the arguments of repetition k; arrays are copies, so that a body cannot write into its operands."""
        pairs = zip(self.leaves, self.mapped, strict=True)
        return containers.unflatten(self.structure, [_piece(leaf, k) if mapped else leaf for leaf, mapped in pairs])


def operands_of(arrays: Any, names: Sequence[str], axes: Sequence[int | None], count: int | None = None) -> Operands:
    """Return the operands with the axis of each leaf in front; ArgumentError for missing axes and different lengths.

    `count` is needed where no leaf is mapped.

    >>> operands_of((np.zeros((2, 3)), 1.0), ["x", "y"], [1, None]).row(0)
    (array([0., 0.]), 1.0)
    """
    leaves, structure = containers.flatten(arrays)
    moved = [
        leaf if axis is None else _axis_first(leaf, name, axis)
        for leaf, name, axis in zip(leaves, names, axes, strict=True)
    ]
    lengths = {name: leaf.shape[0] for name, leaf, axis in zip(names, moved, axes, strict=True) if axis is not None}
    if len(set(lengths.values()) | ({count} - {None})) > 1:
        raise refusal(
            "arrays of different lengths: " + ", ".join(f"{name} has {length}" for name, length in lengths.items()),
            why="repetition k takes piece k of each" + ("" if count is None else f", and there are to be {count}"),
        )
    repetitions = next(iter(lengths.values()), count)
    if repetitions is None:
        raise refusal("nothing to repeat over", do="pass at least one array")
    return Operands(structure, tuple(moved), tuple(axis is not None for axis in axes), repetitions)


def whole_number(value: Any, name: str) -> int:
    """Return a count as an int; ArgumentError for anything else, such as one that depends on a traced value."""
    if isinstance(value, int | np.integer | sp.Integer) and not isinstance(value, bool | Traced):
        return int(value)
    traced = isinstance(value, Traced)
    raise refusal(
        f"{name} is {'a traced value' if traced else f'{value!r}, of type {type(value).__name__}'}",
        why="how often a body is repeated is a whole number that is known while the function is traced",
        do="use while_loop with max_steps where it depends on a value" if traced else "pass an int",
    )


def _axis_first(leaf: Any, name: str, axis: int) -> Any:
    """Return a leaf as an array, plain or traced, with an axis moved to the front."""
    array = _as_array(leaf, name)
    if not -array.ndim <= axis < array.ndim:
        raise refusal(
            f"axis {axis} of {name}, which has shape {array.shape}",
            why="a scalar cannot be taken apart" if array.ndim == 0 else "there is no such axis",
            do="make an array of a list: np.array([...]), or np.stack of traced values" if array.ndim == 0 else "",
        )
    if isinstance(array, Array):
        return Array(np.moveaxis(array.nodes, axis, 0), array.scope)
    return np.moveaxis(array, axis, 0)


def _as_array(leaf: Any, name: str) -> Any:
    if isinstance(leaf, Traced):
        return leaf
    if isinstance(leaf, sp.MatrixBase | sp.NDimArray):
        return object_array(entries(leaf), tuple(leaf.shape))
    refuse_rules(leaf, name)
    array = object_array([leaf], ()) if isinstance(leaf, sp.Basic) else np.asarray(leaf)
    if array.dtype.kind not in "biufO" or has_own_rules(leaf):
        raise refusal(
            f"{name} is of type {type(leaf).__name__} ({array.dtype})",
            why="it is no array of real numbers",
            do="pass arrays of real numbers or expressions",
        )
    return array


def _piece(array: Any, k: int) -> Any:
    if isinstance(array, Array):
        return wrap(array.nodes[k].copy(), array.scope)
    piece = array[k]
    if isinstance(piece, np.ndarray):
        return piece.copy()
    return int(piece) if isinstance(piece, np.integer) else piece  # which is an index, and exact
