"""Recognise recorded loops with equal bodies, also in another run of the function.

A function runs once for each of its paths, in one graph. A loop that the runs have in common must be one loop, or the
conditions on its results would differ in each run. In later runs constants are older than the nodes that use them, and
the two operands of a sum change places; so the key does not depend on their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import sympy as sp

from codegen.ir.copy_rows import copy_rows
from codegen.ir.program import Program, needed
from codegen.ir.row_table import COMMUTATIVE
from codegen.loops.loop import Loop, Reads
from symad.graph.graph import Graph


def key_of(loop: Loop) -> Any:
    """Return a key of a loop."""
    columns = [*loop.reads, *(use.initial for use in loop.carries), *(use.nodes for use in loop.results)]
    kinds = tuple((use.output, use.kind) for use in loop.results)
    outputs = tuple(use.output for use in loop.carries)
    return rows_of(loop.body), loop.count, tuple(map(digest, columns)), kinds, outputs, tuple(map(key_of, loop.inside))


def rows_of(program: Program) -> Any:
    """Return a key of the operations of a program.

    >>> x, heads = sp.Symbol("slot_0"), [sp.Symbol, sp.Integer, sp.Add]
    >>> from codegen.ir.program import Output
    >>> first, second = (
    ...     Program(heads, [(), (), pair], {0: x, 1: sp.Integer(2)}, (), (Output((), (2,)),))
    ...     for pair in ((0, 1), (1, 0))
    ... )
    >>> rows_of(first) == rows_of(second)
    True
    """
    known: list[bytes] = []
    for row, (head, parts) in enumerate(zip(program.heads, program.operands, strict=True)):
        below = [known[part] for part in parts]
        name = f"{head.__module__}.{head.__qualname__}" if parts else sp.srepr(program.atoms[row])
        hashed = hashlib.blake2b(name.encode(), digest_size=32)
        for part in sorted(below) if head in COMMUTATIVE and len(below) == 2 else below:
            hashed.update(part)
        known.append(hashed.digest())
    return tuple(tuple(known[row] for row in output.rows) for output in program.outputs)


def without_aliases(graph: Graph, nodes: Sequence[int]) -> tuple[int, ...]:
    """Return nodes without the aliases on their way: the same nodes for every level that opens again."""
    bare: dict[int, int] = {}
    copy_rows(graph, needed(graph, list(nodes), bare), graph, bare, lambda leaf: leaf)
    return tuple(bare[node] for node in nodes)


def digest(column: Reads) -> bytes:
    """Return a key of a column."""
    if column.strides == (0,):
        return b"%d times %d" % (len(column), column[0])
    return column.dtype.char.encode() + hashlib.blake2b(column.tobytes(), digest_size=32).digest()
