"""Large arrays that a function reads are inputs of its kept trace, and are read anew at each call.

Comparing 16 MB with their earlier values takes longer than most functions of them. So copies of the function, and of
the functions that it calls by name, are traced with traced arrays in their place. Questions about these numbers are
noted, as for arguments. The user's own objects are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.loops.loop import Nodes
from symad.graph.array_operands import ArrayNode
from symad.reach.code_facts import facts_of
from symad.reach.compared_state import is_bound
from symad.reach.object_rows import may_change
from symad.reach.reachable_state import functions_around
from symad.tracing.calling.running import copied
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import is_library
from symad.tracing.values.containers import from_nodes

LEAST = 2**16  # bytes of an array; smaller ones are compared


class LiveArrays:
    """The large arrays among the variables of a function, and of those that it calls by name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._functions = functions_around(function)
        arrays = {id(value): value for reader in self._functions for value in _values(reader) if _is_large(value)}
        self.arrays: Sequence[NDArray[np.float64]] = tuple(arrays.values())

    @property
    def bytes(self) -> int:
        """How many they have in all."""
        return sum(array.nbytes for array in self.arrays)

    def traced(self, scope: Scope) -> tuple[list[Nodes], Callable[..., Any]]:
        """Return nodes that stand for the arrays in a scope, and the function with traced arrays of these nodes."""
        nodes = [_nodes(scope, array) for array in self.arrays]
        traced = [from_nodes(ids, scope) for ids in nodes]
        return nodes, self.bound({id(array): value for array, value in zip(self.arrays, traced, strict=True)})

    def bound(self, stand_ins: Mapping[int, Any]) -> Callable[..., Any]:
        """Return the function with other values in place of some, by their ids.

        >>> data = np.ones(10**5)
        >>> live = LiveArrays(lambda x: x * data.sum())
        >>> float(live.bound({id(data): np.zeros(2)})(3.0)), len(live.arrays)
        (0.0, 1)
        """
        cells = {id(cell): (cell, CellType()) for function in self._functions for cell in function.__closure__ or ()}
        spaces = {
            id(function.__globals__): (function.__globals__, dict(function.__globals__))
            for function in self._functions
            if not _is_ours(function)
        }
        copies: dict[int, Any] = dict(stand_ins)
        for function in self._functions:
            space = function.__globals__ if _is_ours(function) else spaces[id(function.__globals__)][1]
            around = tuple(cells[id(cell)][1] for cell in function.__closure__ or ())
            copies[id(function)] = copied(function, function.__code__, space, around or None)
        for cell, own in cells.values():
            if is_bound(cell):
                own.cell_contents = copies.get(id(cell.cell_contents), cell.cell_contents)
        for space, own_space in spaces.values():
            own_space.update({name: copies.get(id(value), value) for name, value in space.items()})
        copy: Callable[..., Any] = copies[id(self._function)]
        return copy


def _values(function: FunctionType) -> list[Any]:
    """Return the values of a function's variables: those of enclosing functions and the user's global ones."""
    values = [cell.cell_contents for cell in function.__closure__ or () if is_bound(cell)]
    if not _is_ours(function):
        space = function.__globals__
        values += [space[load.name] for load in facts_of(function.__code__).loads if load.name in space]
    return values


def _is_ours(function: FunctionType) -> bool:
    return is_library(function.__code__.co_filename)


def _is_large(value: Any) -> bool:
    """Whether a value is an array of floats that would be compared, and takes long."""
    if type(value) is not np.ndarray or value.dtype != np.float64:
        return False
    return value.nbytes >= LEAST and may_change(value)


def _nodes(scope: Scope, array: NDArray[np.float64]) -> Nodes:
    """Return an alias of an array's numbers, so that they are no constants."""
    arrays = scope.graph.arrays
    leaves = arrays.handed_out(arrays.made(ArrayNode("given", array.shape, sp.Float, numbers=array.ravel())))
    nodes: Nodes = scope.arrays.aliases(leaves)
    return nodes
