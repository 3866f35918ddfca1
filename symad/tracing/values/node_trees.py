"""Convert containers of values to containers of node arrays, and back; the inputs of a trace.

A trace has a symbol for each number of its inputs. Those of large arrays are made on demand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.tracing.numpy.protocols  # noqa: F401 (fills the tables behind NumPy's protocols)
import symad.tracing.values.containers as containers
from codegen.expressions.sympy_forms import can_be_input
from codegen.records import dataclass
from symad.graph.graph import MANY, Graph
from symad.graph.sympy_io import to_sympy
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import refusal
from symad.tracing.values.python_numbers import note_arguments

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
        return [np.shape(array) for array in self.arrays]

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


@dataclass(frozen=True)
class InputNames:
    """The symbols of the elements of an array: x_0_0, x_0_1, ..."""

    stem: str
    shape: tuple[int, ...]

    def symbol(self, k: int) -> sp.Symbol:
        """Return the symbol of an element, by its place in C order."""
        index = np.unravel_index(k, self.shape) if self.shape else ()
        return sp.Symbol("_".join([self.stem, *map(str, index)]), real=True)

    def has(self, symbol: Any) -> bool:
        """Whether a symbol is that of an element.

        >>> names = InputNames("x", (2, 3))
        >>> names.has(sp.Symbol("x_1_2", real=True)), names.has(sp.Symbol("x_1_3", real=True))
        (True, False)
        """
        numbers = re.fullmatch(re.escape(self.stem) + r"((?:_\d+)*)", getattr(symbol, "name", ""))
        if numbers is None:
            return False
        index = tuple(map(int, numbers[1].split("_")[1:]))
        inside = len(index) == len(self.shape) and all(k < size for k, size in zip(index, self.shape, strict=True))
        return inside and bool(symbol == self.symbol(int(np.ravel_multi_index(index, self.shape)) if index else 0))


KEPT = 256  # shapes of arguments, by name, whose symbols are cached
Names = list[sp.Basic] | InputNames  # of the elements of one argument


def lift_inputs(scope: Scope, args: Sequence[Any], names: Sequence[str]) -> tuple[Tree, Callable[[Any], bool]]:
    """Return the inputs of a trace as leaves of their own, and a predicate for their symbols.

    ArgumentError for arguments that are no containers of real numbers.
    """
    graph, paths = scope.graph, paths_of(args, names)
    leaves, structure = containers.flatten(tuple(args))
    for leaf, path in zip(leaves, paths, strict=True):
        containers.check_differentiable(leaf, path)
    shapes = [
        leaf.shape if _is_plain(leaf) else containers.to_nodes(leaf, scope, path=path).shape
        for leaf, path in zip(leaves, paths, strict=True)
    ]
    inputs = _names(leaves, paths)
    arrays = [_leaves(graph, name, prod(shape)).reshape(shape) for shape, name in zip(shapes, inputs, strict=True)]
    note_arguments(graph, leaves, arrays)
    single = {symbol for name in inputs if isinstance(name, list) for symbol in name}
    lazy = [name for name in inputs if isinstance(name, InputNames)]
    return Tree(structure, arrays), lambda symbol: symbol in single or any(name.has(symbol) for name in lazy)


def symbols_of(args: Sequence[Any], names: Sequence[str]) -> list[sp.Basic]:
    """Return a symbol for each number of arguments: symbols themselves, others named by their place.

    >>> symbols_of((1.0, [sp.Symbol("t"), np.zeros(2)]), ["x", "y"])
    [x, t, y_1_0, y_1_1]
    """
    leaves, _ = containers.flatten(tuple(args))
    pairs = zip(leaves, paths_of(args, names), strict=True)
    return [symbol for leaf, path in pairs for symbol in _leaf_symbols(leaf, path)]


@lru_cache(maxsize=KEPT)
def input_symbols(path: str, shape: tuple[int, ...]) -> tuple[sp.Symbol, ...]:
    """Return one real symbol for each scalar of an input array: x, or x_0, x_1, ..., or x_0_0, ...

    >>> input_symbols('params["w"]', (2,))
    (params_w_0, params_w_1)
    """
    stem = _stem(path)
    return tuple([sp.Symbol("_".join([stem, *map(str, index)]), real=True) for index in np.ndindex(*shape)])


def _leaves(graph: Graph, name: Names, size: int) -> NDArray[np.int64]:
    if isinstance(name, InputNames):
        created = graph.own_leaves(size, name.symbol)
        return np.arange(created.start, created.stop, dtype=np.int64)
    return np.array([graph.own_leaf(symbol) for symbol in name], dtype=np.int64)


def _names(leaves: Sequence[Any], paths: Sequence[str]) -> list[Names]:
    """Return the names of all arguments, all different; those of a large array lazily, if no other can be equal."""
    stems = [_stem(path) for path in paths]
    symbolic = any(isinstance(leaf, sp.Basic) or getattr(leaf, "dtype", None) == np.dtype(object) for leaf in leaves)
    late = [
        _is_large(leaf) and not symbolic and not any(_may_meet(stem, other) for other in [*stems[:k], *stems[k + 1 :]])
        for k, (leaf, stem) in enumerate(zip(leaves, stems, strict=True))
    ]
    small = [[] if later else _leaf_symbols(*pair) for *pair, later in zip(leaves, paths, late, strict=True)]
    distinct = iter(_distinct(symbol for symbols in small for symbol in symbols))
    return [
        InputNames(stem, np.shape(leaf)) if later else [next(distinct) for _ in symbols]
        for leaf, stem, later, symbols in zip(leaves, stems, late, small, strict=True)
    ]


def _may_meet(stem: str, other: str) -> bool:
    """Whether names that begin with these stems may be equal: `p["a_0"]` and `p["a"][0]`."""
    return stem == other or stem.startswith(other + "_") or other.startswith(stem + "_")


def _is_plain(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and leaf.dtype.kind == "f"


def _is_large(leaf: Any) -> bool:
    return _is_plain(leaf) and leaf.size >= MANY


def _stem(path: str) -> str:
    return re.sub(r"\W+", "_", path).strip("_") or "argument"


def _leaf_symbols(leaf: Any, path: str) -> list[sp.Basic]:
    """Return the elements of a leaf that are symbols, and the names of the others."""
    shape = np.shape(leaf)
    named = input_symbols(path, shape)
    if _is_plain(leaf):
        return list(named)
    items = np.ravel(leaf).tolist() if shape else [leaf]
    return [item if can_be_input(item) else name for item, name in zip(items, named, strict=True)]


def _distinct(symbols: Iterable[Any]) -> list[Any]:
    """Return the symbols with the later of two equal ones renamed: `p["a_0"]` and `p["a"][0]` have the same name."""
    different: dict[sp.Symbol, None] = {}
    for symbol in symbols:
        while symbol in different:
            symbol = sp.Symbol(symbol.name + "_", real=True)
        different[symbol] = None
    return list(different)
