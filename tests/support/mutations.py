"""Small defects that can be planted into a file of Python: the mutants of `python -m tests.mutants`.

A mutant negates a condition, adds one to a constant, changes a sign or an operator, or leaves out a statement.
"""

from __future__ import annotations

import ast
import copy
from functools import cache
from pathlib import Path
from typing import NamedTuple

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


class Place(NamedTuple):
    """A node of a file that can be changed: its number in the walk, its line, and the statement it belongs to.

    The statement is given by its line, and is 0 where it runs when the module is imported, outside all functions.
    """

    number: int
    line: int
    statement: int
    what: str


@cache
def places_of(path: Path) -> list[Place]:
    """Return all places of a file where a defect can be planted."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = _statements(tree)
    changes = [(number, node, change(copy.copy(node))) for number, node in enumerate(ast.walk(tree))
               if id(node) in statements]  # fmt: skip
    return [Place(number, getattr(node, "lineno", 0), statements[id(node)], what)
            for number, node, what in changes if what]  # fmt: skip


def planted(path: Path, number: int) -> ast.Module:
    """Return the tree of a file with the defect at a place planted."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    change(next(node for k, node in enumerate(ast.walk(tree)) if k == number))
    return tree


def change(node: ast.AST) -> str:
    """Change a node in its place; return what was done, "" where nothing can be."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "a condition is negated"
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        old = ast.unparse(node)
        node.ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        return f"{old} becomes {ast.unparse(node)}"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _is_of_types(node):
        old = ast.unparse(node)
        node.op = OPERATORS[type(node.op)]()
        return f"{old} becomes {ast.unparse(node)}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
        return f"the sign of {ast.unparse(node.operand)} is lost"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
        return f"the constant {node.value - 1} becomes {node.value}"
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        old = ast.unparse(node)
        node.__class__ = ast.Pass  # type: ignore[assignment]
        return f"left out: {old}"
    return ""


def _is_of_types(node: ast.BinOp) -> bool:
    """Whether an operation is one of annotations, `int | None`."""
    parts = ast.unparse(node)
    return isinstance(node.op, ast.BitOr) and ("None" in parts or parts[0].isupper())


def _statements(tree: ast.Module) -> dict[int, int]:
    """Return, for each node by its identity, the line of its statement; annotations are left out, nothing runs them."""
    lines: dict[int, int] = {}
    stack: list[tuple[ast.AST, int, bool]] = [(tree, 0, False)]
    while stack:
        node, line, is_in_function = stack.pop()
        if isinstance(node, ast.stmt) and is_in_function:
            line = node.lineno
        lines[id(node)] = line
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            is_run_later = name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    stack.append((child, line, is_in_function or is_run_later))
    return lines
