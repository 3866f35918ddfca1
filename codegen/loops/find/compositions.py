"""Compute the operands of a derivative in one body instead of reading them from another loop.

sqrt(u) sqrt(u), |u|**2, log(1 + exp(u)), 1/(1 + exp(u)) and log(cosh(u)) are smooth where their inner function has no
derivative, or overflows. A body that reads such an inner function recomputes it from u. Where straight lines are the
outer function, the loop stores u instead. The values are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import TypeAlias

import numpy as np
import sympy as sp

from codegen.heads import log1p
from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import BodyRows, copy_rows
from codegen.ir.program import Head, Output, Rows
from codegen.limits import check
from codegen.loops.find.flat_rows import FlatRows, needed
from codegen.loops.loop import Loop, LoopResult, Nodes, Reads, RolledBlock, is_nodes
from codegen.records import dataclass

Operands: TypeAlias = Sequence[int | sp.Basic]


class Outer(Enum):
    """Outer functions of compositions; the comments say with which inner functions they stay together."""

    EVEN_POWER = auto()  # a root, or an absolute value
    LOGARITHM = auto()  # cosh(u), or 1 + exp(u)
    INVERSE = auto()  # 1 + exp(u)
    OF_EXP = auto()  # the logarithm, or the inverse, of 1 + exp(u): here exp(u)


def whole_compositions(rows: Rows, loops: Sequence[Loop], outputs: Nodes, flat: FlatRows | None = None) -> list[Loop]:
    """Return loops with compositions in one body each; additional results have new numbers.

    With `flat`, compositions across straight lines are treated too.

    >>> from codegen.ir.program import Input, Program
    >>> x = sp.Symbol("x")
    >>> root = Program([sp.Symbol, sp.core.numbers.Half, sp.Pow], [(), (), (0, 1)], {0: x, 1: sp.S.Half},
    ...                (Input("x", ()),), (Output((), (2,)),))
    >>> square = Program([sp.Symbol, sp.Mul], [(), (0, 0)], {0: x}, (Input("x", ()),), (Output((), (1,)),))
    >>> ahead = Loop(root, 9, (np.arange(9),), (LoopResult(0, "each", np.arange(9, 18)),))
    >>> after = Loop(square, 9, (np.arange(17, 8, -1),), (LoopResult(0, "sum", np.array([18])),))
    >>> rows = Program([sp.Symbol] * 19, [()] * 19, dict.fromkeys(range(19), x), (), ())
    >>> _, loop = whole_compositions(rows, [ahead, after], np.array([18]))
    >>> loop.reads, loop.body.heads[-2:]
    ((array([8, 7, 6, 5, 4, 3, 2, 1, 0]),), [<class 'sympy.core.power.Pow'>, <class 'sympy.core.mul.Mul'>])
    """
    loops = list(map(_with_squares, loops))
    slots = ((slot, loop) for loop in loops for slot, _ in compositions(loop.body, range(len(loop.body))))
    if flat is None and not any(slot < len(loop.reads) for slot, loop in slots):
        return loops
    used = [len(rows.heads), *(int(use.nodes.max(initial=-1)) + 1 for loop in loops for use in loop.results)]
    bodies = _Loops(rows, loops, max(used))
    if flat is not None:
        bodies.move_to_straight(outputs, flat)
    for number in range(len(loops)):
        bodies.complete(number)
    return bodies.loops


def compositions(rows: Rows, order: Iterable[int]) -> Iterator[tuple[int, Outer]]:
    """Yield operands of rows that may be inner functions, with the outer function.

    >>> table = BodyRows(1)
    >>> list(compositions(table, [table.row(sp.Mul, (0, 0))])) == [(0, Outer.EVEN_POWER)]
    True
    """
    for row in order:
        outer = _outer(rows, row)
        if outer is None:
            continue
        operand = rows.operands[row][0]
        yield operand, outer
        rest = _above_one(rows, operand) if outer in (Outer.LOGARITHM, Outer.INVERSE) else None
        if rest is not None:
            yield rest, Outer.OF_EXP


def _outer(rows: Rows, row: int) -> Outer | None:
    head, parts = rows.heads[row], rows.operands[row]
    if head is sp.Mul:
        return Outer.EVEN_POWER if len(parts) == 2 and parts[0] == parts[1] else None
    if head is sp.Pow:
        exponent = rows.atoms.get(parts[1])
        if exponent is sp.S.NegativeOne:
            return Outer.INVERSE
        return Outer.EVEN_POWER if isinstance(exponent, sp.Integer) and exponent % 2 == 0 else None
    if head is log1p:
        return Outer.OF_EXP
    return Outer.LOGARITHM if head is sp.log and len(parts) == 1 else None


def _above_one(rows: Rows, row: int) -> int | None:
    """Return u of a row 1 + u."""
    parts = rows.operands[row]
    if rows.heads[row] is not sp.Add or len(parts) != 2:
        return None
    ones = [isinstance(atom := rows.atoms.get(part), sp.Number) and atom == 1 for part in parts]
    return parts[ones.index(False)] if sum(ones) == 1 else None


def _argument(rows: Rows, row: int) -> int | None:
    """Return u of a row that is an inner function of u."""
    parts = rows.operands[row]
    if rows.heads[row] in (sp.Abs, sp.cosh, sp.exp):
        return parts[0]
    return parts[0] if _is_root(rows, row) else _above_one(rows, row)


def _is_root(rows: Rows, row: int) -> bool:
    return rows.heads[row] is sp.Pow and rows.atoms.get(rows.operands[row][1]) is sp.S.Half


@dataclass(frozen=True, eq=False)
class _NodeSource:
    """The row that computes nodes, in some repetitions of a loop; a row of straight lines has no loop and no slots."""

    rows: Rows
    row: int
    slots: int
    loop: int | None
    repetitions: Nodes


class _Loops:
    """Loops whose reads and results grow while compositions are completed."""

    def __init__(self, rows: Rows, loops: Sequence[Loop], first: int) -> None:
        self.rows, self.loops = rows, list(loops)
        self.owner, self.output, self.repetition = np.full((3, first), -1, dtype=np.int32)
        for number, loop in enumerate(loops):
            for result in loop.results:
                self.note(number, result)

    def note(self, number: int, result: LoopResult) -> None:
        """Note which loop computes nodes; only results of a plain loop in each repetition have an output."""
        missing = int(result.nodes.max(initial=-1)) + 1 - len(self.owner)
        if missing > 0:
            more = np.full(missing, -1, dtype=np.int32)
            self.owner, self.output, self.repetition = (
                np.concatenate([known, more]) for known in (self.owner, self.output, self.repetition)
            )
        self.owner[result.nodes] = number
        if result.kind == "each" and _is_plain(self.loops[number]):
            self.output[result.nodes] = result.output
            self.repetition[result.nodes] = np.arange(len(result.nodes))

    def source_of(self, nodes: Reads) -> _NodeSource | None:
        """Return the source of all nodes of a column: an output of one loop, or one row of straight lines."""
        if not is_nodes(nodes):
            return None
        node = int(nodes[0])
        number, output = int(self.owner[node]), int(self.output[node])
        if number < 0:
            straight = node < len(self.rows.heads) and (nodes == node).all()
            return _NodeSource(self.rows, node, 0, None, nodes) if straight else None
        if output < 0 or not ((self.owner[nodes] == number) & (self.output[nodes] == output)).all():
            return None
        body = self.loops[number].body
        return _NodeSource(
            body, row_of(body, output), body.input_count, number, self.repetition[nodes].astype(np.int64)
        )

    def is_inner(self, source: _NodeSource, outer: Outer) -> bool:
        """Whether a source is an inner function of an outer one."""
        rows, head = source.rows, source.rows.heads[source.row]
        if outer is Outer.EVEN_POWER:
            return head is sp.Abs or _is_root(rows, source.row)
        if outer is Outer.OF_EXP:
            return head is sp.exp
        if outer is Outer.LOGARITHM and head is sp.cosh:
            return True
        above = _above_one(rows, source.row)
        if above is None or rows.heads[above] is sp.exp:
            return above is not None
        column = self.operand(source, above) if source.loop is None or above < source.slots else None
        ahead = self.source_of(column) if isinstance(column, np.ndarray) else None
        return ahead is not None and ahead.rows.heads[ahead.row] is sp.exp

    def operand(self, source: _NodeSource, part: int) -> Reads | sp.Basic | None:
        """Return an operand of a source: a column of nodes or numbers, or an atom; None for a carry."""
        atom = source.rows.atoms.get(part)
        if isinstance(atom, sp.Expr) and not isinstance(atom, sp.Symbol):
            return atom
        if source.loop is None:
            return np.full(len(source.repetitions), part)
        if part >= source.slots:
            return self.stored(source.loop, part)[source.repetitions]
        reads = self.loops[source.loop].reads
        return reads[part][source.repetitions] if part < len(reads) else None

    def stored(self, number: int, row: int) -> Nodes:
        """Return the nodes of a row of a body, one for each repetition; the loop stores them from now on."""
        loop = self.loops[number]
        for result in loop.results:
            if result.kind == "each" and loop.body.outputs[result.output].rows == (row,):
                return result.nodes
        outputs = (*loop.body.outputs, Output((), (row,)))
        result = LoopResult(len(outputs) - 1, "each", np.arange(len(self.owner), len(self.owner) + loop.count))
        self.loops[number] = replace(loop, body=replace(loop.body, outputs=outputs), results=(*loop.results, result))
        self.note(number, result)
        return result.nodes

    def complete(self, number: int) -> None:
        """Let a body recompute inner functions until it reads none."""
        loop: Loop | None = self.loops[number]
        while loop is not None and _is_plain(loop):
            check("completing loops")
            self.loops[number] = loop
            pairs = compositions(loop.body, range(len(loop.body)))
            loops = (self.computing(number, slot, outer) for slot, outer in pairs if slot < len(loop.reads))
            loop = next((better for better in loops if better is not None), None)

    def computing(self, number: int, slot: int, outer: Outer) -> Loop | None:
        """Return a loop that computes the operand of an outer function itself; None where it is no inner function."""
        source = self.source_of(self.loops[number].reads[slot])
        if source is None or not self.is_inner(source, outer):
            return None
        parts = [self.operand(source, part) for part in source.rows.operands[source.row]]
        if any(part is None for part in parts):
            return None
        loop = self.loops[number]
        kept = [k for k in range(len(loop.reads)) if k != slot]
        columns = [loop.reads[k] for k in kept]
        own: list[int | sp.Basic] = []
        for part in parts:
            own.append(len(columns) if isinstance(part, np.ndarray) else part)
            columns += [part] if isinstance(part, np.ndarray) else []
        operation = source.rows.heads[source.row], own
        return _over(loop, columns, {k: place for place, k in enumerate(kept)}, {slot: operation})

    def move_to_straight(self, outputs: Nodes, flat: FlatRows) -> None:
        """Leave inner functions to the straight lines of their outer functions."""
        while True:
            inner = {
                node: self.output[node]
                for node, outer in compositions(self.rows, self.straight(outputs, flat))
                if self.output[node] >= 0
                and self.is_inner(_NodeSource(self.rows, node, 0, None, np.array([node])), outer)
            }
            if not inner:
                return
            for node in inner:
                self.move_node(node)

    def straight(self, outputs: Nodes, flat: FlatRows) -> list[int]:
        """Return the rows of straight lines that may be compositions."""
        if not (self.output[flat.rows] >= 0).any():
            return []
        is_read, owned = np.zeros(len(self.owner), dtype=bool), self.owner >= 0
        for nodes in (outputs, *(nodes for loop in self.loops for nodes in loop.nodes_read)):
            is_read[nodes] = True
        likely, start = flat.has_head(sp.Pow, sp.log, log1p), np.cumsum(flat.counts) - flat.counts
        twice = np.flatnonzero((flat.counts == 2) & flat.has_head(sp.Mul))
        likely[twice] = flat.operands[start[twice]] == flat.operands[start[twice] + 1]
        left = needed(flat, is_read, owned) & ~owned
        candidates: list[int] = flat.rows[left[flat.rows] & likely].tolist()
        return candidates

    def move_node(self, node: int) -> None:
        """Let straight lines compute a node from an argument that its loop stores."""
        number, output, place = (int(of[node]) for of in (self.owner, self.output, self.repetition))
        body = self.loops[number].body
        argument, inside = _argument(self.rows, node), _argument(body, row_of(body, output))
        self.rename(number, output, place, len(self.owner))
        if argument is None or inside is None or inside < body.input_count:
            return
        if self.rows.operands[argument] and self.owner[argument] < 0:
            nodes = self.stored(number, inside)
            self.rename(number, int(self.output[nodes[place]]), place, argument)

    def rename(self, number: int, output: int, place: int, node: int) -> None:
        """Let a result of a loop in one repetition be another node."""
        loop = self.loops[number]
        use = next(result for result in loop.results if result.kind == "each" and result.output == output)
        nodes = use.nodes.copy()
        self.owner[nodes[place]] = self.output[nodes[place]] = -1
        nodes[place] = node
        changed = replace(use, nodes=nodes)
        self.loops[number] = replace(loop, results=tuple(changed if r is use else r for r in loop.results))
        self.note(number, changed)


def _over(
    loop: Loop, columns: Sequence[Reads], at: Mapping[int, int], recomputed: Mapping[int, tuple[Head, Operands]]
) -> Loop:
    """Return a loop over other columns: a slot becomes column `at[slot]`, or is recomputed."""
    table = BodyRows(len(columns) + len(loop.carries))
    leaves = table.slots
    copies = {slot: leaves[column] for slot, column in at.items()}
    copies |= {len(loop.reads) + k: leaves[len(columns) + k] for k in range(len(loop.carries))}
    for slot, (head, parts) in recomputed.items():
        own = tuple([leaves[part] if isinstance(part, int) else table.leaf(part) for part in parts])
        copies[slot] = table.canonical(head, own)
    copy_rows(loop.body, range(len(loop.body)), table, copies)
    body = table.body([copies[output.rows[0]] for output in loop.body.outputs], loop.body.name)
    return replace(loop, body=body, reads=tuple(columns))


def _with_squares(loop: Loop) -> Loop:
    """Return a loop whose products of two slots that read the same are squares of one."""
    products = (
        parts
        for head, parts in zip(loop.body.heads, loop.body.operands, strict=True)
        if head is sp.Mul and len(parts) == 2 and parts[0] != parts[1] and max(parts) < len(loop.reads)
    )
    same = {max(parts): min(parts) for parts in products if _are_equal(*(loop.reads[part] for part in parts))}
    if not same or not _is_plain(loop):
        return loop
    kept = [slot for slot in range(len(loop.reads)) if slot not in same]
    at = {slot: place for place, slot in enumerate(kept)}
    for slot in sorted(same):
        at[slot] = at[same[slot]]
    return _over(loop, [loop.reads[slot] for slot in kept], at, {})


def _are_equal(left: Reads, right: Reads) -> bool:
    return left.dtype == right.dtype and bool(left[0] == right[0]) and np.array_equal(left, right)


def _is_plain(loop: Loop) -> bool:
    """Whether a body has no loops inside and no sums that override rows."""
    return not isinstance(loop, RolledBlock) and not loop.inside and not loop.sums
