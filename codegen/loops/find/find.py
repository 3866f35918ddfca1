"""Find loops in straight lines: chains first, then sums and maps among the rest.

Sums and maps are operations written alike, many times (see `row_classes`, `cover`). Their loops are exact by
construction: every slot is a column of the original nodes. Only the order of additions in a sum of many terms changes,
to that of the loop.

Repetitions are sorted so that tables become long affine runs. It is known before buffers are which nodes lie side by
side: inputs by number, results of a loop by repetition, outputs in their order.

Where loops over arrays are written down, nearly all rows are leaves that stand for their results, and operations read
few of them: loops are looked for in these few rows alone, under new numbers. One node is kept of an array that no
operation reads, because it says which loop waits for which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.program import Head, Rows
from codegen.ir.region import span
from codegen.ir.tables import SHORTEST, distinct, usual
from codegen.limits import check
from codegen.loops.find.anti_unification import BodyTemplate, Name, fused, is_uniform, to_loop
from codegen.loops.find.chains import find_chains
from codegen.loops.find.compositions import whole_compositions
from codegen.loops.find.cover import OPERATIONS, cover
from codegen.loops.find.flat_rows import Flags, FlatRows, flat_of, flattened
from codegen.loops.find.plain_rows import PlainRows
from codegen.loops.find.row_classes import Classes, classify
from codegen.loops.find.sum_terms import ragged_sums
from codegen.loops.loop import Loop, LoopResult, Nodes, between, is_nodes
from codegen.records import dataclass

FEW = 16  # rows for each operation, from which on these are looked at alone


@dataclass(frozen=True, eq=False)
class FewRows:
    """Some rows, the loops between them, and their original numbers."""

    heads: list[Head]
    operands: list[tuple[int, ...]]
    atoms: dict[int, sp.Basic]
    flat: FlatRows
    kept: Nodes
    inputs: Nodes
    outputs: Nodes
    written: list[Loop]
    first: int  # of the numbers for new rows

    def original(self, nodes: Nodes) -> Nodes:
        """Return the original numbers of nodes; new nodes have numbers behind all rows."""
        nodes = np.asarray(nodes, dtype=np.int64)
        old = self.kept[np.minimum(nodes, len(self.kept) - 1)]
        return np.where(nodes < len(self.kept), old, nodes - len(self.kept) + self.first)

    def loop(self, loop: Loop) -> Loop:
        """Return a loop between the original nodes."""
        example = tuple(self.original(np.array(loop.example, dtype=np.int64)).tolist())
        return replace(between(loop, self.original), example=example)

    def sums(self, sums: dict[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Return sums of the original nodes."""
        return {
            int(self.original(np.array([node]))[0]): tuple(self.original(np.array(parts)).tolist())
            for node, parts in sums.items()
        }


def few_rows(rows: Rows, flat: FlatRows, inputs: Nodes, outputs: Nodes, written: Sequence[Loop]) -> FewRows | None:
    """Return the operations and their operands; None where most rows are operations.

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
    return _renumbered(rows, flat, kept, stands_for, (inputs, outputs), written)


def _renumbered(
    rows: Rows, flat: FlatRows, kept: Flags, stands_for: Nodes, arrays: tuple[Nodes, Nodes], written: Sequence[Loop]
) -> FewRows:
    old, new = np.flatnonzero(kept), np.cumsum(kept) - 1
    heads = [rows.heads[row] for row in old[old < len(flat)].tolist()]
    heads += [sp.Symbol] * (len(old) - len(heads))  # results of loops beyond the rows
    operands: list[tuple[int, ...]] = [()] * len(old)
    for row in flat.rows.tolist():
        operands[new[row]] = tuple(new[list(rows.operands[row])].tolist())
    named = kept.copy()  # leaves that are neither results of loops nor inputs
    named[arrays[0]] = False
    for loop in written:
        for use in loop.results:
            named[use.nodes] = False
    leaves = np.flatnonzero(named[: len(flat)] & ~flat.is_operation).tolist()
    atoms = {int(new[row]): rows.atoms[row] for row in leaves if row in rows.atoms}

    def column(nodes: Nodes) -> Nodes:
        """Return the nodes of a column that are kept, and the nodes that stand for others."""
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


_ENOUGH = 8  # repetitions in a run, on average: then the order is left as it is


class Places:
    """Where nodes will lie: a number for each, side by side for those that are kept side by side."""

    def __init__(self, classes: Classes, outputs: Nodes, done: Sequence[Loop], size: int) -> None:
        self.at: NDArray[np.int64] = np.arange(max(size, len(classes.of)))
        self.shown: NDArray[np.int64] = np.full(len(self.at), -1)
        self.shown[outputs] = np.arange(len(outputs))
        for loop in done:
            for result in loop.results:
                self.keep(result.nodes)

    def keep(self, nodes: Nodes) -> None:
        """Note that nodes lie side by side."""
        self.at[nodes] = np.arange(len(nodes))


def order_of(template: BodyTemplate, classes: Classes, places: Places) -> Nodes:
    """Return the order of repetitions with the fewest runs: as found, as the outputs lie, or sorted by reads."""
    columns = [
        places.at[entry.nodes]
        for entry in template.with_role("slot")
        if not classes.constant[entry.kind] and not is_uniform(entry.nodes)
    ]
    shown = [places.shown[entry.nodes] for entry in template.stores]
    columns += [column for column in shown if (column >= 0).all()]
    columns += [places.at[targets] for _, targets in template.adds]
    order = np.arange(template.count)
    if not columns or runs(columns, order) * _ENOUGH <= template.count:
        return order
    by_variety = sorted(columns, key=lambda column: (len(distinct(column)), int(column.sum())), reverse=True)
    orders = [order, np.lexsort(by_variety), *(np.argsort(column, kind="stable") for column in columns[-1:])]
    return min(orders, key=lambda candidate: runs(columns, candidate))


def gathered(template: BodyTemplate, classes: Classes, places: Places) -> int:
    """Return the number of columns that are results, and lie in short runs."""
    columns = [
        places.at[entry.nodes] for entry in template.with_role("slot")
        if classes.heads[entry.kind] is not None and not is_uniform(entry.nodes)
    ]  # fmt: skip
    order = np.arange(template.count)
    return sum(1 for column in columns if runs([column], order) * SHORTEST > template.count)


def runs(columns: Sequence[Nodes], order: Nodes) -> int:
    """Return the number of stretches in which each column has its usual step.

    >>> i, j = np.triu_indices(9, 1)
    >>> runs([i, j], np.arange(36)), runs([i, j], np.argsort(j, kind="stable"))
    (8, 8)
    """
    broken = np.zeros(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        ordered = column[order]
        steps = ordered[1:] - ordered[:-1]
        if (steps != steps[:1]).any():
            broken |= steps != usual(steps)
    return 1 + int(broken.sum())


@dataclass(frozen=True, eq=False)
class Found:
    """Loops, and sums of other nodes, from left to right, which override rows."""

    loops: list[Loop]
    sums: dict[int, tuple[int, ...]]


def find_sums(
    rows: Rows, inputs: Nodes, outputs: Nodes, done: Sequence[Loop], first: int, flat: FlatRows | None = None
) -> Found:
    """Return the sums and maps that outputs and loops in `done` need; new nodes are numbered from `first`.

    >>> import sympy as sp
    >>> from codegen.ir.program import Program
    >>> x, n = sp.Symbol("x"), 40
    >>> heads = [sp.Symbol] * n + [sp.sin] * n + [sp.Add] * (n - 1)
    >>> sums = [(n, n + 1)] + [(2 * n + k, n + 2 + k) for k in range(n - 2)]
    >>> rows = Program(heads, [()] * n + [(k,) for k in range(n)] + sums, dict.fromkeys(range(n), x), (), ())
    >>> found = find_sums(rows, np.arange(n), np.array([3 * n - 2]), [], 3 * n - 1)
    >>> [(loop.count, len(loop.body), loop.results[0].kind) for loop in found.loops], found.sums
    ([(40, 2, 'sum')], {})
    """
    inputs, outputs = (np.asarray(nodes, dtype=np.int64).ravel() for nodes in (inputs, outputs))
    columns = [np.asarray(nodes, dtype=np.int64).ravel() for loop in done for nodes in loop.nodes_read]
    targets = distinct(np.concatenate([outputs, *columns]))
    if not targets.size:
        return Found([], {})
    ragged: set[int] = set()
    flat = flattened(rows) if flat is None else flat
    while more := set(ragged_sums(classes := classify(rows, inputs, targets, done, ragged, flat)).tolist()):
        ragged |= more
    refused: set[Name] = set()
    for _ in range(5):  # tries: each refuses loops that are not worth it
        templates, sums = cover(classes, targets, first, refused)
        places = Places(classes, outputs, done, first + len(rows.heads))
        poor = [name for template in templates if not _settled(template, classes, places) for name in template.names]
        if not poor:
            break
        refused.update(poor)
    return Found([to_loop(template, rows, classes) for template in fused(templates, classes)], sums)


def _settled(template: BodyTemplate, classes: Classes, places: Places) -> bool:
    """Put the repetitions of a loop in order; return whether it does enough besides gathering."""
    check("ordering repetitions")
    template.reorder(order_of(template, classes, places))
    for entry in template.stores:
        places.keep(entry.nodes)
    return template.count * template.size >= OPERATIONS * (1 + gathered(template, classes, places))


Line = Callable[[int], tuple[str, int] | None]  # the user's file and line of a row


def find(rows: Rows, inputs: Nodes, outputs: Nodes, written: Sequence[Loop], line_of: Line) -> Found:
    """Return all loops, those that the user wrote first; the others get the user's lines as their origin."""
    flat = rows.flat if isinstance(rows, PlainRows) else flattened(rows)
    if 2 * len(flat.rows) < OPERATIONS:
        return Found(whole_compositions(rows, written, outputs), {})
    few = few_rows(rows, flat, inputs, outputs, written)
    if few is None:
        pattern = _unwritten(rows, flat, inputs, outputs, written)
    else:
        pattern = _unwritten(few, few.flat, few.inputs, few.outputs, few.written)
        pattern = Found(list(map(few.loop, pattern.loops)), few.sums(pattern.sums))
    loops = [replace(loop, origin=_origin(loop, line_of)) for loop in pattern.loops]
    return Found(whole_compositions(rows, [*written, *loops], outputs, flat if loops else None), pattern.sums)


def _unwritten(rows: Rows, flat: FlatRows, inputs: Nodes, outputs: Nodes, written: Sequence[Loop]) -> Found:
    """Return the loops that the user did not write: chains, then sums and maps in the rest."""
    chains = find_chains(rows, inputs, outputs, written, flat)
    known = [*written, *chains]
    top = [int(result.nodes.max()) + 1 for loop in known for result in loop.results if result.nodes.size]
    sums = find_sums(rows, inputs, outputs, known, max([len(rows.heads), *top]), flat)
    return Found([*chains, *sums.loops], sums.sums)


def _origin(loop: Loop, line_of: Line) -> str:
    """Return the user's lines of one repetition: "forces.py:12-16"."""
    rows = loop.example or [int(result.nodes[0]) for result in loop.results]
    lines = sorted({line for row in rows if (line := line_of(row)) is not None})
    if not lines:
        return loop.origin
    file = lines[0][0]
    return f"{Path(file).name}:{span([line for other, line in lines if other == file])}"
