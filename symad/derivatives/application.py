"""Apply a transform to a user's function: arguments, structures, checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from codegen.ir.sparsity import Format
from codegen.limits import check_bytes, machine_memory
from symad.derivatives import modes
from symad.derivatives.array_linear import ArrayLinear
from symad.derivatives.level import Level, carry, deliver
from symad.derivatives.linear import Linear
from symad.derivatives.selection import Selection
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.scope import Scope, independent_traces, innermost_scope, open_scope
from symad.tracing.calling.user_place import written_at
from symad.tracing.control.array_graph import ArrayGraph, array_graph
from symad.tracing.values.node_trees import Nodes, Tree, lift
from symad.tracing.values.sparse_matrix import Entries, SparseMatrix, in_order, pattern_of

Function = Callable[..., Any]


def check_dense(f: Function, matrix_name: str, rows: int, columns: int) -> None:
    """Raise MemoryLimitError for a dense matrix beyond a limit, or beyond this machine's memory."""
    check_bytes(
        f"a dense {matrix_name} of {rows:,} x {columns:,} entries",
        8 * rows * columns,
        where=written_at(f),
        do="ask for its entries with sparse=True, or for products with it (hvp, jvp, vjp)",
        at_most=machine_memory(),
    )


class LinearFunction:
    """A pushforward or pullback: a linear map that may be called after its level closed, also at deeper levels."""

    def __init__(
        self, level: Level, linear: Linear | ArrayLinear, source: Tree, target: Tree, *, pullback: bool
    ) -> None:
        self._scope, self._linear, self._source, self._target = level.scope, linear, source, target
        self._pullback = pullback

    def __call__(self, *values: Any) -> Any:
        """Return the image of tangents (one argument for each primal) or of one cotangent."""
        around, parent = innermost_scope(), self._scope.parent
        if parent is not None:
            parent.check_open()
            if around is None or around.graph is not parent.graph:
                raise independent_traces()  # a number would be the answer, without its derivative in that parent
        # outside every level on a graph of its own, so that many calls do not make the traced one grow
        with open_scope() as scope:
            if isinstance(self._linear, ArrayLinear) and (around is None or isinstance(around.arrays, ArrayGraph)):
                scope.arrays = array_graph(scope)
            linear = self._linear if scope.graph is self._scope.graph else self._moved(scope)
            return self._apply(scope, linear, values)

    def _apply(self, scope: Scope, linear: Linear | ArrayLinear, values: tuple[Any, ...]) -> Any:
        if self._pullback and len(values) != 1:
            raise ArgumentError(f"a pullback called with {len(values)} arguments", do="pass one cotangent")
        seed, role = (values[0], "cotangent") if self._pullback else (values, "tangents")
        seeds = fitting(scope, self._source, seed, role)
        return deliver(scope, self._target.refill(modes.push(scope, linear, seeds.nodes)))

    def _moved(self, around: Scope) -> Linear | ArrayLinear:
        """Return the map with its coefficients as constants of another graph (it was made outside that trace)."""
        if isinstance(self._linear, ArrayLinear):
            self._linear = self._linear.with_numbers(self._scope.graph, self._scope.values)
            return self._linear
        edges = [edge for _, row in self._linear.rows for edge in row]
        nodes = {node for coefficient, _, guard in edges for node in (coefficient, guard) if node is not None}
        moved = carry(self._scope, sorted(nodes), around.graph)
        there: dict[int | None, int | None] = {None: None, **{node: moved[node] for node in nodes}}
        rows = tuple(
            (target, tuple((there[c], source, there[g]) for c, source, g in row)) for target, row in self._linear.rows
        )
        return replace(self._linear, rows=rows, level=0)  # no level of that graph


def as_tuple(values: Any, name: str) -> tuple[Any, ...]:
    """Return primals or tangents as a tuple; ArgumentError for anything but a tuple or list."""
    if not isinstance(values, tuple | list):
        raise ArgumentError(
            f"{name} of type {type(values).__name__}",
            why=f"{name} holds one entry for each argument of the function",
            do=f"pass a tuple, e.g. {name}=(x,)",
        )
    return tuple(values)


def fitting(scope: Scope, tree: Tree, values: Any, role: str) -> Tree:
    """Return the nodes of tangents or cotangents; ArgumentError unless structure and shapes are those of `tree`."""
    _, structure = containers.flatten(values)
    if structure != tree.structure:
        raise ArgumentError(f"{role} of structure {structure}", why=f"the value has structure {tree.structure}")
    tree_of_values = lift(scope, values, containers.paths(values, role))
    for leaf, expected in zip(tree_of_values.arrays, tree.arrays, strict=True):
        if leaf.shape != expected.shape:
            raise ArgumentError(f"{role} of shape {leaf.shape}", why=f"the value has shape {expected.shape}")
    return tree_of_values


def call_scalar(level: Level, restricted: Function, f: Function) -> Tree:
    """Call a function that has to return one scalar; ArgumentError explains why a gradient needs that."""
    result = level.call(restricted)
    _check_scalar(result.shapes, f)
    return result


def require_scalar(f: Function) -> Function:
    """Return f with a check that its result is one scalar."""

    @wraps(f)
    def checked(*args: Any, **keywords: Any) -> Any:
        result = f(*args, **keywords)
        _check_scalar([np.shape(leaf) for leaf in containers.flatten(result)[0]], f)
        return result

    return checked


def _check_scalar(shapes: Sequence[tuple[int, ...]], f: Function) -> None:
    if len(shapes) != 1 or shapes[0] != ():
        raise ArgumentError(
            f"{name_of(f)} returned {', '.join(str(shape) for shape in shapes) or 'nothing'} instead of one scalar",
            why="the gradient of a vector-valued function is not defined (summing it silently would hide that)",
            do="use jacobian for all derivatives, vjp for one weighted sum, or return a scalar",
        )


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise ArgumentError unless a keyword has one of the known values."""
    truth = isinstance(value, bool) and not any(value is choice for choice in choices)  # True == 1
    if truth or value not in choices:
        raise ArgumentError(f"{name}={value!r}", do="use one of " + ", ".join(repr(choice) for choice in choices))


def close_blocks(level: Level, matrix: Nodes, outputs: Tree, selection: Selection) -> Any:
    """Return a matrix of nodes (outputs x parameters) as the user's containers of blocks of shape s + t."""
    blocks, row = [], 0
    for out in outputs.arrays:
        column = 0
        for into in level.parameters.arrays:
            block = matrix[row : row + out.size, column : column + into.size]
            blocks.append(block.reshape(out.shape + into.shape))
            column += into.size
        row += out.size
    flat = containers.flatten([0] * len(blocks))[1]
    (values,) = level.close(Tree(flat, blocks))
    width = len(level.parameters.arrays)
    grouped = [values[start : start + width] for start in range(0, len(values), width)]
    inner = [selection.as_asked(containers.unflatten(level.parameters.structure, group)) for group in grouped]
    container = containers.unflatten(outputs.structure, inner)
    return selection.as_asked(container) if outputs is level.parameters else container


def close_sparse(level: Level, entries: Entries, shape: tuple[int, int], format: Format) -> SparseMatrix:
    """Return sparse entries as a SparseMatrix of values for the code around the level."""
    places = in_order(entries, format)
    data = Tree(containers.flatten(0)[1], [np.array([entries[place] for place in places], dtype=np.int64)])
    (values,) = level.close(data)
    return SparseMatrix(values, pattern_of(places, shape, format))
