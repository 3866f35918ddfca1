"""Python's own numbers under the convention of traces: a sum begins with its first term (docs/extremes.md).

NumPy's sums begin with 0.0, which shows in the sign of a sum of negative zeros only: -0.0 is the neutral element.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

Numbers = Any


def TOTAL(terms: Numbers, axis: int | None = None) -> Numbers:  # noqa: N802
    """Return a sum that begins with its first term.

    >>> float(TOTAL(np.array([-0.0])))
    -0.0
    """
    return np.sum(terms, axis=axis, initial=-0.0)


def PRODUCT(left: Numbers, right: Numbers) -> Numbers:  # noqa: N802
    """Return the product of a matrix or a vector with a vector, of sums that begin with their first terms."""
    return TOTAL(left * right, axis=-1)


class _Sums(ast.NodeTransformer):
    """Puts these sums in place of `np.sum(a)`, `a.sum()` and `a @ b`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return ast.Call(ast.Name("PRODUCT", ast.Load()), [node.left, node.right], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "sum":
            return node
        summed = node.func.value
        given = [] if isinstance(summed, ast.Name) and summed.id == "np" else [summed]
        return ast.Call(ast.Name("TOTAL", ast.Load()), [*given, *node.args], node.keywords)


def of_first_terms(text: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Return what a text defines, in a scope, with its sums beginning with their first terms.

    >>> float(of_first_terms("def f(x): return np.sum(x) + x.sum() + x @ x", {"np": np})["f"](np.full(2, -0.0)))
    0.0
    >>> float(of_first_terms("def f(x): return np.sum(x) + x.sum(axis=0)", {"np": np})["f"](np.full(2, -0.0)))
    -0.0
    """
    tree = ast.fix_missing_locations(_Sums().visit(ast.parse(text)))
    found = {**scope, "TOTAL": TOTAL, "PRODUCT": PRODUCT}
    exec(compile(tree, "<program>", "exec"), found)
    return found
