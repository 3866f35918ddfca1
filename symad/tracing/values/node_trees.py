"""Convert containers of values to containers of node arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.numpy.protocols  # noqa: F401 (fills the tables behind NumPy's protocols)
import symad.tracing.values.containers as containers
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_sympy
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import refusal

Nodes = NDArray[np.int64]


class Tree:
    """A container of node arrays: the structure, one int64 array of nodes for each leaf."""

    __slots__ = ("arrays", "structure")

    def __init__(self, structure: Any, arrays: Sequence[Nodes]) -> None:
        self.structure: Any = structure
        self.arrays: list[Nodes] = list(arrays)

    @property
    def flat(self) -> list[int]:
        """All nodes in flat order (C order within each leaf)."""
        return [node for array in self.arrays for node in array.ravel().tolist()]

    @property
    def nodes(self) -> Nodes:
        """All nodes in flat order, as an array that must not be changed."""
        if len(self.arrays) == 1:
            return self.arrays[0].ravel()
        return np.concatenate([np.empty(0, dtype=np.int64), *(array.ravel() for array in self.arrays)])

    @property
    def size(self) -> int:
        """The number of nodes."""
        return sum(array.size for array in self.arrays)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each leaf."""
        return [array.shape for array in self.arrays]

    def is_like(self, other: Tree) -> bool:
        """Whether another tree has the same structure and shapes."""
        return bool(self.structure == other.structure) and self.shapes == other.shapes

    def filled(self, leaves: Sequence[Any]) -> Any:
        """Return the container with other leaves."""
        return containers.unflatten(self.structure, list(leaves))

    def refill(self, nodes: Sequence[int] | Nodes) -> Tree:
        """Return a tree of the same structure and shapes with other nodes."""
        flat, arrays, start = np.asarray(nodes, dtype=np.int64), [], 0
        for array in self.arrays:
            arrays.append(flat[start : start + array.size].reshape(array.shape))
            start += array.size
        return Tree(self.structure, arrays)


def lift(
    scope: Scope, value: Any, paths: Sequence[str], *, role: str = "argument", differentiable: bool = False
) -> Tree:
    """Return the nodes of a container of values; ArgumentError names the path of an unsuitable leaf."""
    leaves, structure = containers.flatten(value)
    if differentiable:
        for leaf, path in zip(leaves, paths, strict=True):
            containers.check_differentiable(leaf, path)
    arrays = [containers.to_nodes(leaf, scope, path=path, role=role) for leaf, path in zip(leaves, paths, strict=True)]
    return Tree(structure, arrays)


def lift_arguments(scope: Scope, args: tuple[Any, ...], names: Sequence[str]) -> Tree:
    """Return arguments as aliases, in which a function is differentiated on its own: their origin is hidden.

    Otherwise a derivative rule could look into an argument that is a product or a power.
    """
    tree, graph = lift(scope, args, paths_of(args, names)), scope.graph
    return tree.refill([node if node in graph.atoms else graph.alias(node) for node in tree.flat])


def lift_result(scope: Scope, value: Any, name: str) -> Tree:
    """Return the nodes of the result of a traced function; an error for None and for other values than numbers."""
    if value is None:
        raise refusal(
            f"{name} returned None",
            why="nothing was returned, so there is nothing to differentiate or compile",
            do="return the result; a function without a return statement returns None",
        )
    return lift(scope, value, containers.paths(value, f"result of {name}"), role="result")


def wrap(scope: Scope, tree: Tree) -> Any:
    """Return a tree of nodes as traced values of a scope."""
    return containers.unflatten(tree.structure, [containers.from_nodes(array, scope) for array in tree.arrays])


def expressions(graph: Graph, nodes: Nodes) -> Any:
    """Return an array of nodes as SymPy expressions: one for shape (), else an object array."""
    values = to_sympy(graph, nodes.ravel().tolist(), evaluate=True)
    return values[0] if nodes.ndim == 0 else object_array(values, nodes.shape)


def object_array(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return values in an object array of a shape. NumPy does not look into them."""
    filled = np.empty(len(values), dtype=object)
    filled[:] = values
    return filled.reshape(shape)


def paths_of(arguments: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Return the path of every leaf of a sequence of named arguments."""
    return [path for part, name in zip(arguments, names, strict=True) for path in containers.paths(part, name)]
