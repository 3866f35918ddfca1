"""Rows as plain data: what is pickled of a graph or a program. No SymPy DAG and no code is stored, only the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen.program import Head, Rows


def encode_rows(rows: Rows) -> dict[str, Any]:
    """Return the columns of a table as arrays, names and atoms, ready to pickle.

    Heads are classes, which pickle by their qualified name; an undefined function is kept by its name and assumptions.
    """
    kinds = list(dict.fromkeys(rows.heads))
    number = {head: k for k, head in enumerate(kinds)}
    return {
        "heads": [_encode_head(head) for head in kinds],
        "kinds": np.array([number[head] for head in rows.heads], dtype=np.int32),
        "counts": np.array([len(operands) for operands in rows.operands], dtype=np.int32),
        "operands": np.array([u for operands in rows.operands for u in operands], dtype=np.int64),
        "atoms": rows.atoms,
    }


def decode_rows(state: dict[str, Any]) -> tuple[list[Head], list[tuple[int, ...]], dict[int, sp.Basic]]:
    """Return the columns that `encode_rows` took apart."""
    kinds = [_decode_head(head) for head in state["heads"]]
    flat, operands, start = state["operands"].tolist(), [], 0
    for count in state["counts"].tolist():
        operands.append(tuple(flat[start : start + count]))
        start += count
    return [kinds[k] for k in state["kinds"].tolist()], operands, dict(state["atoms"])


def _encode_head(head: Head) -> Any:
    if isinstance(head, UndefinedFunction) and issubclass(head, AppliedUndef):
        return head.__name__, dict(head._kwargs)
    return head


def _decode_head(head: Any) -> Head:
    if isinstance(head, tuple):
        name, assumptions = head
        return sp.Function(name, **assumptions)  # type: ignore[no-any-return]
    return head  # type: ignore[no-any-return]
