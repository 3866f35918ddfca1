"""Apply a transform to a user's function: arguments, structures, checks; the result's name, recipe and storage."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import count
from typing import Any, get_args

import numpy as np

import symad.tracing.values.containers as containers
from codegen.ir.sparsity import Format
from codegen.limits import check_bytes, machine_memory
from codegen.options import check_names
from symad.derivatives.elimination import dense
from symad.derivatives.in_code import TransformRecord, noted
from symad.derivatives.level import Level, in_level
from symad.derivatives.selection import Selection
from symad.derivatives.signatures import P, R
from symad.errors import ArgumentError, UncompiledWarning
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.transformed_function import Transformed
from symad.tracing.calling.user_place import is_symad, written_at
from symad.tracing.values.node_trees import Nodes, Tree, lift
from symad.tracing.values.sparse_matrix import Entries, SparseMatrix, Triangle, in_order, pattern_of

Function = Callable[..., Any]

MANY = 100  # calls on numbers


def known_options(transform: Callable[P, R]) -> Callable[P, R]:
    """Return a transform that refuses an option which it does not have by the name of the nearest one.

    >>> @known_options
    ... def smoothed(f, *, window=3):
    ...     return f
    >>> smoothed(abs, windwo=5)
    Traceback (most recent call last):
        ...
    codegen.errors.ArgumentError: windwo=...: there is no such option; did you mean window?
    """
    names = tuple(inspect.signature(transform).parameters)

    @wraps(transform)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        if not options.keys() <= set(names):
            check_names(options, names)
        result = transform(*args, **options)
        if isinstance(result, Transformed) and result.made_by is None:
            result.made_by = checked, args, options
        return result

    return checked


def described(apply: Function, f: Function, what: str, recipe: TransformRecord | None = None) -> Function:
    """Return `apply` as the function that a transform made of f: with a name, a docstring, its recipe, f behind it."""
    check_function(f)
    transformed: Any = Transformed.of(public_api(_counted(apply, f"the {what} of {name_of(f)}")), f)
    transformed.__name__ = f"{what.replace(' ', '_')}_of_{name_of(f)}"
    transformed.__doc__ = f"The {what} of {name_of(f)}."
    return transformed if recipe is None else noted(transformed, recipe)


def _counted(apply: Function, what: str) -> Function:
    """Return a function that tells a user who calls it a hundred times on numbers that `jit` exists."""
    calls = count(1)

    def counted(*args: Any, **keywords: Any) -> Any:
        by_user = innermost_scope() is None and not is_symad(sys._getframe(3).f_code.co_filename)
        if by_user and next(calls) == MANY:
            warnings.warn(
                f"{what} was called {MANY} times, and is not compiled: sa.jit(...) of it compiles it at the first call",
                UncompiledWarning, stacklevel=4,
            )  # fmt: skip
        return apply(*args, **keywords)

    return wraps(apply)(counted)


def in_level_of_arrays_or_elements(chosen: Selection, compose: Callable[[Level], Any], arrays: bool) -> Any:
    """Return what is made in a level with array nodes, where it may have some; element by element if that is None."""
    result = in_level(chosen.arguments, chosen.names, compose) if arrays else None
    return in_level(chosen.arguments, chosen.names, compose, arrays=False) if result is None else result


def storage_of(sparse: bool | Triangle, format: Format) -> Format | None:
    """Return the format of a sparse matrix, None for a dense one; ArgumentError for a format that cannot be."""
    check_choice("format", format, get_args(Format))
    if format != "coo" and not sparse:
        raise ArgumentError(f"format={format!r} of a dense matrix", do="ask for a sparse one: sparse=True")
    return format if sparse else None


def close_matrix(level: Level, entries: Entries, outputs: Tree, chosen: Selection, storage: Format | None) -> Any:
    """Return the entries of a matrix (outputs x parameters) as a SparseMatrix, or as dense blocks without a format."""
    shape = (len(outputs.flat), len(level.parameters.flat))
    if storage is None:
        return close_blocks(level, dense(level.build, entries, shape), outputs, chosen)
    places = in_order(entries, storage)
    data = Tree(containers.flatten(0)[1], [np.array([entries[place] for place in places], dtype=np.int64)])
    (values,) = level.close(data)
    return SparseMatrix(values, pattern_of(places, shape, storage))


def check_dense(f: Function, matrix_name: str, rows: int, columns: int) -> None:
    """Raise MemoryLimitError for a dense matrix beyond a limit, or beyond this machine's memory."""
    check_bytes(
        f"a dense {matrix_name} of {rows:,} x {columns:,} entries",
        8 * rows * columns,
        where=written_at(f),
        do="ask for its entries with sparse=True, or for products with it (hvp, jvp, vjp)",
        at_most=machine_memory(),
    )


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
