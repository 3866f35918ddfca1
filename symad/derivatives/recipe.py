"""Recipe: which transform made a function, of which function: what `compile` may do in another way.

It is noted on the function itself, and holds for that very object: `functools.wraps` copies notes to functions that
compute something else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from codegen.ir.sparsity import Format
from symad.derivatives.selection import FIRST, Argnums
from symad.tracing.values.sparse_matrix import Triangle

Function = Callable[..., Any]


@dataclass(frozen=True)
class Columns:
    """How one column of a matrix is computed: `pushforward(args, seed)`, the seed shaped as argument `argument`."""

    pushforward: Callable[[tuple[Any, ...], Any], Any]
    argument: int


@dataclass(frozen=True)
class Recipe:
    """A transform of `function` in arguments `argnums`, with the layout of its matrix, and how its columns are made.

    Only a dense matrix in one argument has columns.
    """

    transform: Literal["value and gradient", "gradient", "derivative", "Jacobian", "Hessian"]
    function: Function
    argnums: Argnums = FIRST
    sparse: bool | Triangle = False
    format: Format = "coo"
    columns: Columns | None = None


def noted(function: Function, recipe: Recipe) -> Function:
    """Return a function with its recipe noted on it."""
    function.__recipe__ = (function, recipe)  # type: ignore[attr-defined]
    return function


def recipe_of(function: Function) -> Recipe | None:
    """Return how a transform made this very function, None for any other function.

    >>> from functools import wraps
    >>> f = noted(lambda x: x, Recipe("gradient", abs))
    >>> recipe_of(f).transform, recipe_of(wraps(f)(lambda x: 2 * x))
    ('gradient', None)
    """
    owner, recipe = getattr(function, "__recipe__", (None, None))
    return recipe if owner is function else None
