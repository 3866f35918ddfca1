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
class Recipe:
    """A transform of `function` in arguments `argnums`, with the layout of its matrix."""

    transform: Literal["value and gradient", "gradient", "derivative", "Jacobian", "Hessian"]
    function: Function
    argnums: Argnums = FIRST
    sparse: bool | Triangle = False
    format: Format = "coo"


def noted(function: Function, name: str, value: object) -> Function:
    """Return a function with a note on it."""
    setattr(function, name, (function, value))
    return function


def note_on(function: Function, name: str) -> Any:
    """Return a note on this very function, None where there is none, or another function's.

    >>> from functools import wraps
    >>> f = noted(lambda x: x, "__recipe__", 1)
    >>> note_on(f, "__recipe__"), note_on(wraps(f)(lambda x: 2 * x), "__recipe__")
    (1, None)
    """
    owner, value = getattr(function, name, (None, None))
    return value if owner is function else None


def recipe_of(function: Function) -> Recipe | None:
    """Return how a transform made a function, None for any other function."""
    found = note_on(function, "__recipe__")
    return found if isinstance(found, Recipe) else None
