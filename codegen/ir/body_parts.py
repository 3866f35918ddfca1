"""Parts of bodies: some of the outputs of what a region repeats, over some of its slots."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from codegen.ir.copy_rows import copied
from codegen.ir.program import Input, Output, Program, reachable
from codegen.ir.row_table import Table


def body_part(
    body: Program,
    slots: Sequence[int],
    outputs: Sequence[int | None],
    same: dict[int, int] | None = None,
    further: int = 0,
) -> Program:
    """Return the body with these slots, some further ones that nothing reads, and these outputs.

    An output ~s is slot s itself (those of the further ones count on from the body's), None is the number 0. `same`
    says of slots left out to which other one they are equal.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z = sp.symbols("x y z")
    >>> part = body_part(program_from_sympy([x, y, z], [x * y, z + y]), [1, 2], [1, None])
    >>> [head.__name__ for head in part.heads], part.operands, part.outputs[0].rows, part.outputs[1].rows
    (['Symbol', 'Symbol', 'Add', 'Zero'], [(), (), (0, 1), ()], (2,), (3,))
    >>> part = body_part(program_from_sympy([x, y, z], [x * y, z + y]), [2], [1, ~3], {1: 2}, 1)
    >>> part.operands, part.outputs[0].rows, part.outputs[1].rows
    ([(), (), (0, 0)], (2,), (1,))
    """
    table = Table()
    numbers = [*slots, *range(len(body.inputs), len(body.inputs) + further)]
    leaves = {slot: table.leaf(sp.Symbol(f"s{k}", real=True)) for k, slot in enumerate(numbers)}
    leaves |= {slot: leaves[other] for slot, other in (same or {}).items()}
    rows = {slot: row for slot, row in leaves.items() if slot < len(body.inputs)}
    copied(body, [row_of(body, output) for output in outputs if output is not None and output >= 0], table, rows)
    found = []
    for output in outputs:
        row = table.leaf(sp.S.Zero) if output is None else leaves[~output] if output < 0 else rows[row_of(body, output)]
        found.append(Output((), (row,)))
    inputs = tuple(Input(f"s{k}", ()) for k in range(len(numbers)))
    return Program(table.heads, table.operands, table.atoms, inputs, tuple(found), body.name)


def slots_behind(body: Program, outputs: Sequence[int]) -> list[int]:
    """Return the slots that some outputs need.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z = sp.symbols("x y z")
    >>> slots_behind(program_from_sympy([x, y, z], [x * y, z + y]), [1])
    [1, 2]
    """
    return [row for row in reachable(body, [row_of(body, output) for output in outputs]) if row < len(body.inputs)]


def row_of(body: Program, output: int) -> int:
    """Return the row of an output."""
    return body.outputs[output].rows[0]
