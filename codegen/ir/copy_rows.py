"""Copy rows into a table: drop aliases, merge equal rows, sort commutative operands.

A pair is sorted because different rows may be one row in the table, or be in another order there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import sympy as sp

from codegen.heads import Alias
from codegen.ir.program import Input, Output, Program, Rows, needed
from codegen.ir.row_table import RowTable


def copy_rows(
    rows: Rows, order: Iterable[int], table: RowTable, row_of: dict[int, int], leaf: Callable[[int], int] | None = None,
    *, alone: bool = False,
) -> None:  # fmt: skip
    """Copy rows, in topological order, into a table, and enter their copies into `row_of`.

    Rows in `row_of` are not copied. `leaf` returns the copy of a leaf; by default the leaf of its atom. `alone` means
    that no other thread knows the table, which is quicker.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> program, table = program_from_sympy([x, y], [x * y]), RowTable()
    >>> row_of = {1: table.leaf(y)}
    >>> copy_rows(program, range(len(program)), table, row_of)
    >>> row_of, table.operands
    ({1: 0, 0: 1, 2: 2}, [(), (), (0, 1)])
    """
    heads, operands, canonical = rows.heads, rows.operands, table.canonical
    for row in table.pairs_alone(heads, operands, order, row_of) if alone else order:
        if row in row_of:
            continue
        parts, head = operands[row], heads[row]
        if not parts:
            row_of[row] = table.leaf(rows.atoms[row]) if leaf is None else leaf(row)
        elif head is Alias:
            row_of[row] = row_of[parts[0]]
        else:
            row_of[row] = canonical(head, tuple([row_of[part] for part in parts]))


def copied(rows: Rows, targets: Sequence[int], table: RowTable, row_of: dict[int, int]) -> list[int]:
    """Return copies of target rows in a table; only rows that they need beyond `row_of` are copied.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program, table = program_from_sympy([x], [sp.sin(x) + sp.cos(x)]), RowTable()
    >>> copied(program, [program.heads.index(sp.sin)], table, {0: table.leaf(x)}), table.heads
    ([1], [<class 'sympy.core.symbol.Symbol'>, sin])
    """
    copy_rows(rows, needed(rows, targets, row_of), table, row_of)
    return [row_of[row] for row in targets]


def program_over(
    rows: Rows, slots: Sequence[int], targets: Sequence[int], name: str = "body"
) -> tuple[Program, list[int]]:
    """Return the program of target rows over the slots that they need, and the numbers of these slots.

    A slot is an input, whatever its row computes; the outputs are numbers.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> program = program_from_sympy([x, y], [sp.sin(x * y)])
    >>> body, used = program_over(program, [0, 1, 2], [3])
    >>> body.heads, used
    ([<class 'sympy.core.symbol.Symbol'>, sin], [2])
    """
    inner = needed(rows, targets, set(slots))
    read = {*targets, *chain.from_iterable(rows.operands[row] for row in inner)}
    used = [number for number, slot in enumerate(slots) if slot in read]
    table = BodyRows(len(used))
    row_of = dict(zip([slots[number] for number in used], table.slots, strict=True))
    copy_rows(rows, inner, table, row_of)
    return table.body([row_of[row] for row in targets], name), used


class BodyRows(RowTable):
    """The rows of a body under construction; the first are its slots.

    >>> rows = BodyRows(2)
    >>> rows.body([rows.pair(sp.Mul, *rows.slots)], "product").operands
    [(), (), (0, 1)]
    """

    slots: list[int]

    def __init__(self, count: int) -> None:
        super().__init__()
        self.slots = [self.leaf(sp.Symbol(f"s{k}", real=True)) for k in range(count)]

    def body(self, outputs: Iterable[int], name: str = "body") -> Program:
        """Return the program of these outputs, which are scalars as the slots are."""
        return body_of(self, (f"s{k}" for k in range(len(self.slots))), outputs, name)


def body_of(table: RowTable, slots: Iterable[str], outputs: Iterable[int], name: str) -> Program:
    """Return the program of a table's rows, with scalar inputs (the first leaves) and scalar outputs."""
    inputs, results = tuple(Input(slot, ()) for slot in slots), tuple(Output((), (row,)) for row in outputs)
    return Program(table.heads, table.operands, table.atoms, inputs, results, name)
