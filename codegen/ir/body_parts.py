"""Regions made of some outputs of a body, and regions that copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import sympy as sp

from codegen.ir.copy_rows import body_of, copied, program_over
from codegen.ir.program import Program, reachable
from codegen.ir.region import Carry, Gather, Kind, Region, Result
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Table
from codegen.records import dataclass


def body_part(
    body: Program,
    slots: Sequence[int],
    outputs: Sequence[int | None],
    same: Mapping[int, int] | None = None,
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
    table = RowTable()
    numbers = [*slots, *range(len(body.inputs), len(body.inputs) + further)]
    leaves = {slot: table.leaf(sp.Symbol(f"s{k}", real=True)) for k, slot in enumerate(numbers)}
    leaves |= {slot: leaves[other] for slot, other in (same or {}).items()}
    rows = {slot: row for slot, row in leaves.items() if slot < len(body.inputs)}
    copied(body, [row_of(body, output) for output in outputs if output is not None and output >= 0], table, rows)
    found = []
    for output in outputs:
        row = table.leaf(sp.S.Zero) if output is None else leaves[~output] if output < 0 else rows[row_of(body, output)]
        found.append(row)
    return body_of(table, (f"s{k}" for k in range(len(numbers))), found, body.name)


def slots_behind(body: Program, outputs: Sequence[int]) -> list[int]:
    """Return the slots that some outputs need.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z = sp.symbols("x y z")
    >>> slots_behind(program_from_sympy([x, y, z], [x * y, z + y]), [1])
    [1, 2]
    """
    wanted = [row_of(body, output) for output in outputs]
    made = partial(_slots_behind, body, wanted)
    return body.once(("slots", *wanted), made).copy()


def _slots_behind(body: Program, wanted: Sequence[int]) -> list[int]:
    return [row for row in reachable(body, wanted) if row < len(body.inputs)]


def row_of(body: Program, output: int) -> int:
    """Return the row of an output."""
    return body.outputs[output].rows[0]


@dataclass(frozen=True, eq=False)
class Wiring:
    """A region in the making: what each slot of a body reads, in any order, and where its outputs go.

    Outputs may be those that `body_part` knows: ~s for slot s itself, None for the number 0. `same` says of slots that
    are not read to which other one they are equal.
    """

    body: Program
    gathers: Mapping[int, Gather]
    carries: Mapping[int, tuple[int | None, tuple[Gather, ...]]]
    results: Sequence[tuple[int | None, Result]]  # the output of the result is not looked at
    same: Mapping[int, int] = field(default_factory=dict)

    def region(self, count: int, origin: str, stop: int | None = None) -> Region:
        """Return the region: gathers first, outputs one after the other."""
        outputs = [output for output, _ in self.results] + [output for output, _ in self.carries.values()]
        outputs += [] if stop is None else [stop]
        number = {output: k for k, output in enumerate(dict.fromkeys(outputs))}
        slots = [*self.gathers, *self.carries]
        whole = slots == list(range(len(self.body.inputs))) and list(number) == list(range(len(self.body.outputs)))
        key = "part", tuple(slots), tuple(number), tuple(self.same.items())
        made = partial(body_part, self.body, slots, list(number), self.same)
        body = self.body if whole else self.body.once(key, made)
        results = tuple(_of_output(use, number[output]) for output, use in self.results)
        carries = tuple(Carry(number[output], initial) for output, initial in self.carries.values())
        last = None if stop is None else number[stop]
        return Region(body, count, tuple(self.gathers.values()), results, carries, last, origin)


def _of_output(use: Result, output: int) -> Result:
    return use if use.output == output else replace(use, output=output)


def rebuilt(region: Region, outputs: Sequence[tuple[int, Result]], reads: Mapping[int, Gather]) -> Region:
    """Return a parallel region with other results, each with its row of the body; some rows are read, not computed.

    Slots and rows that nothing needs are left out.
    """
    rows = list(dict.fromkeys(row for row, _ in outputs))
    given = dict(enumerate(region.gathers)) | dict(reads)
    slots = [*sorted(given.keys() - reads.keys()), *sorted(reads)]
    body, used = program_over(region.body, slots, rows, region.body.name)
    gathers = tuple(given[slots[number]] for number in used)
    results = tuple(replace(use, output=rows.index(row)) for row, use in outputs)
    return replace(region, body=body, gathers=gathers, results=results)


def outputs_of(region: Region) -> list[tuple[int, Result]]:
    """Return the results of a region, each with its row of the body."""
    return [(region.body.outputs[use.output].rows[0], use) for use in region.results]


def identities(count: int) -> Program:
    """Return the body that gives back its slots."""
    symbols = [sp.Symbol(f"s{k}", real=True) for k in range(count)]
    table = RowTable()
    rows = [table.leaf(symbol) for symbol in symbols]
    return body_of(table, (symbol.name for symbol in symbols), rows, "copy")


IDENTITY = identities(1)


def copy(source: Gather, buffer: int, places: Table, kind: Kind = "store", origin: str = "copies") -> Region:
    """Return the region that stores what it gathers at places of a buffer, or adds it to what is there."""
    return Region(IDENTITY, source.table.count, (source,), (Result(0, buffer, places, kind),), origin=origin)
