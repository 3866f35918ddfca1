"""The results of transforms: a function with a name and a recipe, and a matrix in the requested storage."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from itertools import count
from typing import Any, get_args

from codegen.ir.sparsity import Format
from codegen.options import check_names
from symad.derivatives import modes
from symad.derivatives.application import Function, check_choice, close_blocks, close_sparse
from symad.derivatives.in_code import TransformRecord, noted
from symad.derivatives.level import Level, in_level
from symad.derivatives.selection import Selection
from symad.derivatives.signatures import P, R
from symad.errors import ArgumentError, UncompiledWarning
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.transformed_function import Transformed
from symad.tracing.calling.user_place import is_symad
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import Entries, Triangle

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
        return close_blocks(level, modes.dense(level, entries, shape), outputs, chosen)
    return close_sparse(level, entries, shape, storage)
