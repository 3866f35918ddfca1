"""Columns: the straight-line program of a sweep over columns, see `codegen.ir.unroll`."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from codegen.heads import Alias
from codegen.ir.copy_rows import copy_rows
from codegen.ir.program import Output, Program
from codegen.ir.row_table import Table


def columns_apart(program: Program) -> Program:
    """Return the straight-line program of a sweep.

    A seed of 0 makes products structurally zero and drops out of sums; whatever else depends on it is written down
    for every column.

    >>> from codegen.ir.program import Input
    >>> x, v = sp.symbols("x v")
    >>> heads, operands = [sp.Symbol, sp.Symbol, sp.Mul], [(), (), (0, 1)]
    >>> outputs = (Output((1, 1), (2,), (0,), swept=True),)
    >>> inputs = (Input("x", ()), Input("v", ()))
    >>> columns_apart(Program(heads, operands, {0: x, 1: v}, inputs, outputs, seeded=True)).outputs
    (Output(shape=(1, 1), rows=(0,), positions=None, pattern=None, swept=False),)
    """
    table, seed = Table(), program.inputs[-1]
    start, columns = program.input_count - seed.size, seed.size
    depends = bytearray(len(program))
    kept: dict[int, int] = {}
    for row, operands in enumerate(program.operands):
        depends[row] = start <= row < start + columns or any(depends[operand] for operand in operands)
    copy_rows(program, [row for row in range(len(program)) if not depends[row]], table, kept)
    linear = [row for row in range(start + columns, len(program)) if depends[row]]
    found = [_column(program, table, kept, linear, start, column) for column in range(columns)]
    outputs = []
    for output in program.outputs:
        if not output.swept:
            outputs.append(replace(output, rows=tuple(kept[row] for row in output.rows)))
            continue
        assert output.positions is not None
        entries = {
            position + column: value
            for row, position in zip(output.rows, output.positions, strict=True)
            for column in range(columns)
            if (value := found[column].get(row, kept.get(row))) is not None
        }
        full = len(entries) == output.size
        rows, places = tuple(entries[k] for k in sorted(entries)), tuple(sorted(entries))
        outputs.append(Output(output.shape, rows, None if full else places, output.pattern))
    return Program(table.heads, table.operands, table.atoms, program.arguments, tuple(outputs), program.name)


def _column(
    program: Program, table: Table, kept: dict[int, int], linear: list[int], start: int, column: int
) -> dict[int, int | None]:
    """Return the rows of one column; None is a structural zero."""
    one, zero = table.leaf(sp.S.One), table.leaf(sp.S.Zero)
    found: dict[int, int | None] = {start + k: None for k in range(program.inputs[-1].size)}
    found[start + column] = one
    for row in linear:
        head = program.heads[row]
        parts = [found[u] if u in found else kept[u] for u in program.operands[row]]
        present = [part for part in parts if part is not None]
        if head is sp.Mul:
            factors = [part for part in present if part != one]
            found[row] = None if len(present) < len(parts) else _joined(table, head, factors, one)
        elif head is sp.Add:
            found[row] = _joined(table, head, present, None)
        elif head in (Alias, sp.Piecewise) and all(_is_zero(table, part) for part in parts[::2]):
            found[row] = None  # no value to choose between (conditions stand at odd places)
        else:
            found[row] = table.row(head, tuple(zero if part is None else part for part in parts))
    return found


def _is_zero(table: Table, part: int | None) -> bool:
    return part is None or (part in table.atoms and table.atoms[part] == 0)


def _joined(table: Table, head: type[sp.Basic], parts: list[int], empty: int | None) -> int | None:
    if len(parts) < 2:
        return parts[0] if parts else empty
    return table.canonical(head, tuple(parts))
