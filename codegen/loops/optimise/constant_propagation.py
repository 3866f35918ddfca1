"""Constant propagation: write a number that one region computes into the bodies that read it.

In a reverse pass, the factor 1/n of a mean reaches the loop over all elements through a buffer, and that loop would
wait for the row that fills it. With the number in its body it can be fused with the loop of the forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import isfinite

import sympy as sp

from codegen.evaluation.constant_folding import fold_constants
from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import BodyRows, copied
from codegen.ir.program import Program, atom_key, needed
from codegen.ir.readdress import each_region
from codegen.ir.region import Nest, Region, Step
from codegen.ir.tables import Affine, Table
from codegen.records import dataclass


@dataclass
class _Numbers:
    """The known numbers in a buffer: at single places, and at all places of an interval."""

    at: dict[int, sp.Number] = field(default_factory=dict)
    between: list[tuple[int, int, sp.Number]] = field(default_factory=list)

    def enter(self, table: Table, number: sp.Number) -> None:
        """Note a number that is stored at the places of a table, if these lie side by side."""
        if table.count == 1:
            self.at[table.first] = number
        elif isinstance(table, Affine) and table.step == 1:
            self.between.append((*table.bounds, number))

    def read(self, table: Table) -> sp.Number | None:
        """Return the number that is read at all places of a table."""
        low, high = table.bounds
        if any(table.shifts):
            return None
        if low == high and low in self.at:
            return self.at[low]
        return next((number for first, last, number in self.between if first <= low and high <= last), None)


def with_constants(steps: Sequence[Step]) -> list[Step]:
    """Return steps with numbers in their bodies that earlier steps store in buffers.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.region import Gather, Result
    >>> x, y = sp.symbols("x y")
    >>> line = Region(program_from_sympy([], [sp.Integer(3)]), 1, (), (Result(0, 1, Affine(0, 1, 1), "store"),))
    >>> reads = Gather(0, Affine(0, 1, 9)), Gather(1, Affine(0, 0, 9))
    >>> loop = Region(program_from_sympy([x, y], [x * y]), 9, reads, (Result(0, 2, Affine(0, 1, 9), "store"),))
    >>> region = with_constants([line, loop])[1]
    >>> len(region.gathers), region.body.atoms
    (1, {0: s0, 1: 3})
    """
    numbers: dict[int, _Numbers] = {}
    changed: list[Step] = []
    for step in steps:
        if isinstance(step, Nest):
            changed.append(replace(step, steps=each_region(step.steps, lambda region: _with_numbers(region, numbers))))
            continue
        region = _with_numbers(step, numbers)
        for use in region.results:
            if use.kind == "store":
                row = row_of(region.body, use.output)
                number = region.body.once(("number", row), partial(_number, region.body, row))
                if number is not None:
                    numbers.setdefault(use.buffer, _Numbers()).enter(use.table, number)
        changed.append(region)
    return changed


def _number(body: Program, row: int) -> sp.Number | None:
    """Return the value of a row, rounded as in memory; None where it depends on a slot, or on more than 4 rows."""
    rows = needed(body, [row], ())
    if len(rows) > 4 or rows[0] < len(body.inputs):
        return None
    value = fold_constants(body, rows, len(body.inputs)).get(row)
    if value is None or isinstance(value, bool) or not isfinite(value) or (value == 0 and str(value) < "0"):
        return None
    return sp.Integer(value) if value == int(value) else sp.Float(value)


def _with_numbers(region: Region, numbers: Mapping[int, _Numbers]) -> Region:
    """Return a region with the numbers that it reads in its body."""
    if region.matrix is not None:
        return region
    reads = [(slot, use) for slot, use in enumerate(region.gathers) if use.buffer in numbers]
    known = {slot: number for slot, use in reads if (number := numbers[use.buffer].read(use.table)) is not None}
    if not known:
        return region
    key = "numbers", *((slot, atom_key(number)) for slot, number in known.items())
    body = region.body.once(key, partial(_body, region.body, known))
    return replace(region, body=body, gathers=tuple(use for k, use in enumerate(region.gathers) if k not in known))


def _body(body: Program, known: Mapping[int, sp.Number]) -> Program:
    """Return a body with numbers in the place of some slots."""
    table = BodyRows(len(body.inputs) - len(known))
    rows = dict(zip([slot for slot in range(len(body.inputs)) if slot not in known], table.slots, strict=True))
    rows |= {slot: table.leaf(number) for slot, number in known.items()}
    return table.body(copied(body, [row_of(body, k) for k in range(len(body.outputs))], table, rows), body.name)
