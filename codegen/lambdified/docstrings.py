"""Docstrings of lambdified functions, in the form of `sympy.lambdify`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import sympy as sp

LONGEST = 78  # characters of an expression in one line
REDACTED = "EXPRESSION REDACTED DUE TO LENGTH, (see lambdify's `docstring_limit`)"


def docstring(names: Sequence[str], expressions: Any, limit: int | None) -> str:
    """Return the signature and the expressions as text; without these where they have more than `limit` operations.

    >>> x = sp.Symbol("x")
    >>> print(docstring(["x"], x**2, 1000))
    Created with lambdify. Signature:
    <BLANKLINE>
    func(x)
    <BLANKLINE>
    Expression:
    <BLANKLINE>
    x**2
    """
    signature = textwrap.fill(f"func({', '.join(names)})", subsequent_indent=" " * 8)
    return f"Created with lambdify. Signature:\n\n{signature}\n\nExpression:\n\n{shown(expressions, limit)}"


def shown(expressions: Any, limit: int | None) -> str:
    """Return expressions as text, cut to a line."""
    if limit is not None and not _within(expressions, limit):
        return REDACTED
    try:
        text = str(expressions)
    except RecursionError:
        return REDACTED
    return text if len(text) <= LONGEST else textwrap.wrap(text, 75)[0] + "..."


def _within(expressions: Any, limit: int) -> bool:
    """Whether expressions have at most `limit` objects as trees; larger ones are not visited completely."""
    count, stack = 0, [expressions]
    while stack:
        if count >= limit:
            return False
        part = stack.pop()
        count += not isinstance(part, list | tuple)
        stack += list(part) if isinstance(part, list | tuple) else _operands(part)
    return True


def _operands(part: Any) -> list[Any]:
    if isinstance(part, sp.MatrixBase):
        return list(part.flat())
    return list(part.args) if isinstance(part, sp.Basic) else []
