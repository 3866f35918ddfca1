"""Names of functions and their arguments, for messages and input symbols."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def name_of(f: Callable[..., Any]) -> str:
    """Return a name to show for a function."""
    return getattr(f, "__name__", type(f).__name__)


def argument_names(f: Callable[..., Any] | None, count: int) -> list[str]:
    """Return names for positional arguments: those of the signature, as far as it has them.

    >>> argument_names(lambda x, y: x, 3)
    ['x', 'y', 'argument_2']
    """
    try:
        parameters = [] if f is None else list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in kinds][:count]
    return names + [f"argument_{k}" for k in range(len(names), count)]
