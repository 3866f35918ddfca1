"""Few rows: operations among many leaves, under numbers of their own; loops are looked for in them alone.

Where loops over arrays are written down, nearly all rows are leaves that stand for their results, and operations read
few of them. Of an array that no operation reads one node is kept, so that it is still known which loop waits for which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from codegen.ir.program import Head, Rows
from codegen.ir.tables import distinct
from codegen.loops.find.flat_rows import Flags, Flat, flat_of
from codegen.loops.loop import Loop, LoopResult, Nodes, between, is_nodes

FEW = 16  # rows for each operation, from which on these are looked at alone


@dataclass(frozen=True, eq=False)
class FewRows:
    """Some rows, what is known of the loops between them, and which rows they were."""

    heads: list[Head]
    operands: list[tuple[int, ...]]
    atoms: dict[int, sp.Basic]
    flat: Flat
    kept: Nodes
    inputs: Nodes
    outputs: Nodes
    written: list[Loop]
    first: int  # of the numbers for new rows

    def original(self, nodes: Nodes) -> Nodes:
        """Return the numbers that nodes had, and those of new ones behind all rows."""
        nodes = np.asarray(nodes, dtype=np.int64)
        old = self.kept[np.minimum(nodes, len(self.kept) - 1)]
        return np.where(nodes < len(self.kept), old, nodes - len(self.kept) + self.first)

    def loop(self, found: Loop) -> Loop:
        """Return a loop between the original nodes."""
        example = tuple(self.original(np.array(found.example, dtype=np.int64)).tolist())
        return replace(between(found, self.original), example=example)

    def sums(self, found: dict[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Return sums of the original nodes."""
        return {
            int(self.original(np.array([node]))[0]): tuple(self.original(np.array(parts)).tolist())
            for node, parts in found.items()
        }


def few_rows(rows: Rows, flat: Flat, inputs: Nodes, outputs: Nodes, written: Sequence[Loop]) -> FewRows | None:
    """Return the operations and what they read; None where most rows are operations.

    >>> import sympy as sp
    >>> from codegen.loops.find.flat_rows import flattened
    >>> from codegen.ir.program import Program
    >>> x = sp.Symbol("x")
    >>> rows = Program([sp.Symbol] * 100 + [sp.sin], [()] * 100 + [(7,)], dict.fromkeys(range(100), x), (), ())
    >>> results = LoopResult(0, "each", np.arange(20, 100))
    >>> body = Program([sp.Symbol], [()], {0: x}, (), ())
    >>> few = few_rows(rows, flattened(rows), np.arange(20), np.array([100]), [Loop(body, 80, (), (results,))])
    >>> few.kept.tolist()[-2:], few.operands[-1], few.written[0].results[0].nodes
    ([20, 100], (7,), array([20]))
    """
    if FEW * len(flat.rows) > len(flat):
        return None
    top = max([len(flat), *(int(use.nodes.max()) + 1 for loop in written for use in loop.results if use.nodes.size)])
    read = np.zeros(top, dtype=bool)
    read[flat.rows] = read[flat.operands] = True
    for loop in written:
        for carry in loop.carries:
            read[carry.initial] = True
    kept, stands_for = read.copy(), np.full(top, -1)
    whole = [inputs, outputs, *(use.nodes for loop in written for use in loop.results)]
    for nodes in whole:
        if read[nodes].any():
            kept[nodes] = True
    for loop in written:
        for use in loop.results:
            if use.nodes.size and not kept[use.nodes[0]]:
                stands_for[use.nodes] = use.nodes[0]
    for nodes in whole[2:]:
        kept[nodes[:1]] = True
    return _made(rows, flat, kept, stands_for, (inputs, outputs), written)


def _made(
    rows: Rows, flat: Flat, kept: Flags, stands_for: Nodes, arrays: tuple[Nodes, Nodes], written: Sequence[Loop]
) -> FewRows:
    old, new = np.flatnonzero(kept), np.cumsum(kept) - 1
    heads = [rows.heads[row] for row in old[old < len(flat)].tolist()]
    heads += [sp.Symbol] * (len(old) - len(heads))  # results of loops beyond the rows
    operands: list[tuple[int, ...]] = [()] * len(old)
    for row in flat.rows.tolist():
        operands[new[row]] = tuple(new[list(rows.operands[row])].tolist())
    named = kept.copy()  # leaves that are no results of loops, nor inputs
    named[arrays[0]] = False
    for loop in written:
        for use in loop.results:
            named[use.nodes] = False
    leaves = np.flatnonzero(named[: len(flat)] & ~flat.is_operation).tolist()
    atoms = {int(new[row]): rows.atoms[row] for row in leaves if row in rows.atoms}

    def column(nodes: Nodes) -> Nodes:
        """Return the nodes of a column that are kept, and those that stand for others."""
        if kept[nodes].all():
            return new[nodes]
        others = stands_for[nodes[~kept[nodes]]]
        return distinct(np.concatenate([new[nodes[kept[nodes]]], new[others[others >= 0]]]))

    loops = [
        replace(
            loop,
            reads=tuple(column(reads) if is_nodes(reads) else reads for reads in loop.reads),
            results=tuple(LoopResult(use.output, use.kind, column(use.nodes)) for use in loop.results),
            carries=tuple(replace(carry, initial=new[carry.initial]) for carry in loop.carries),
        )
        for loop in written
    ]
    inputs, outputs = (new[nodes[kept[nodes]]] for nodes in arrays)
    return FewRows(
        heads, operands, atoms, flat_of(heads, operands), old, inputs, outputs, loops, max(len(kept), len(flat))
    )
