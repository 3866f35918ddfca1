"""Regions made of some outputs of a body, and regions that copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import sympy as sp

from codegen.ir.copy_rows import BodyRows, copied, program_over
from codegen.ir.program import Program, reachable
from codegen.ir.region import Carry, Gather, Kind, Region, Result
from codegen.ir.tables import Table
from codegen.records import dataclass


def body_part(
    body: Program,
    slots: Sequence[int],
    outputs: Sequence[int | None],
    same: Mapping[int, int] | None = None,
    further: int = 0,
) -> Program:
    """Return the body with these slots, `further` ones that nothing reads, and these outputs.

    An output ~s is slot s itself (further slots count on from the body's), None is the number 0. `same` maps slots
    that are left out to equal ones.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z = sp.symbols("x y z")
    >>> part = body_part(program_from_sympy([x, y, z], [x * y, z + y]), [1, 2], [1, None])
    >>> [head.__name__ for head in part.heads], part.operands, part.outputs[0].rows, part.outputs[1].rows
    (['Symbol', 'Symbol', 'Add', 'Zero'], [(), (), (0, 1), ()], (2,), (3,))
    >>> part = body_part(program_from_sympy([x, y, z], [x * y, z + y]), [2], [1, ~3], {1: 2}, 1)
    >>> part.operands, part.outputs[0].rows, part.outputs[1].rows
    ([(), (), (0, 0)], (2,), (1,))
    """
    numbers = [*slots, *range(len(body.inputs), len(body.inputs) + further)]
    table = BodyRows(len(numbers))
    leaves = dict(zip(numbers, table.slots, strict=True))
    leaves |= {slot: leaves[other] for slot, other in (same or {}).items()}
    rows = {slot: row for slot, row in leaves.items() if slot < len(body.inputs)}
    copied(body, [row_of(body, output) for output in outputs if output is not None and output >= 0], table, rows)
    results = [
        table.leaf(sp.S.Zero) if output is None else leaves[~output] if output < 0 else rows[row_of(body, output)]
        for output in outputs
    ]
    return table.body(results, body.name)


def slots_behind(body: Program, outputs: Sequence[int]) -> list[int]:
    """Return the slots that some outputs need.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z = sp.symbols("x y z")
    >>> slots_behind(program_from_sympy([x, y, z], [x * y, z + y]), [1])
    [1, 2]
    """
    rows = [row_of(body, output) for output in outputs]
    return body.once(("slots", *rows), lambda: [row for row in reachable(body, rows) if row < len(body.inputs)]).copy()


def row_of(body: Program, output: int) -> int:
    return body.outputs[output].rows[0]


@dataclass(frozen=True, eq=False)
class Wiring:
    """A region under construction: the gather or carry of each slot of a body, in any order, and its results.

    Outputs are those of `body_part`: ~s for slot s itself, None for the number 0. `same` maps slots that are not read
    to equal ones.
    """

    body: Program
    gathers: Mapping[int, Gather]
    carries: Mapping[int, tuple[int | None, tuple[Gather, ...]]]
    results: Sequence[tuple[int | None, Result]]  # the output of the result is ignored
    same: Mapping[int, int] = field(default_factory=dict)

    def region(self, count: int, origin: str, stop: int | None = None) -> Region:
        """Return the region: gathers first, outputs one after the other."""
        outputs = [output for output, _ in self.results] + [output for output, _ in self.carries.values()]
        outputs += [] if stop is None else [stop]
        number = {output: k for k, output in enumerate(dict.fromkeys(outputs))}
        slots = [*self.gathers, *self.carries]
        whole = slots == list(range(len(self.body.inputs))) and list(number) == list(range(len(self.body.outputs)))
        key = "part", tuple(slots), tuple(number), tuple(self.same.items())
        body = (
            self.body if whole else self.body.once(key, partial(body_part, self.body, slots, list(number), self.same))
        )
        pairs = [(use, number[output]) for output, use in self.results]
        results = tuple(use if use.output == output else replace(use, output=output) for use, output in pairs)
        carries = tuple(Carry(number[output], initial) for output, initial in self.carries.values())
        last = None if stop is None else number[stop]
        return Region(body, count, tuple(self.gathers.values()), results, carries, last, origin)


def rebuilt(region: Region, outputs: Sequence[tuple[int, Result]], reads: Mapping[int, Gather]) -> Region:
    """Return a parallel region with other results, each with its row of the body; the rows `reads` are read instead."""
    rows = list(dict.fromkeys(row for row, _ in outputs))
    gather_of = dict(enumerate(region.gathers)) | dict(reads)
    slots = [*sorted(gather_of.keys() - reads.keys()), *sorted(reads)]
    body, used = program_over(region.body, slots, rows, region.body.name)
    gathers = tuple(gather_of[slots[number]] for number in used)
    results = tuple(replace(use, output=rows.index(row)) for row, use in outputs)
    return replace(region, body=body, gathers=gathers, results=results)


def outputs_of(region: Region) -> list[tuple[int, Result]]:
    """Return the results of a region, each with its row of the body."""
    return [(region.body.outputs[use.output].rows[0], use) for use in region.results]


def identities(count: int) -> Program:
    """Return the body whose outputs are its slots."""
    rows = BodyRows(count)
    return rows.body(rows.slots, "copy")


IDENTITY = identities(1)


def copy(source: Gather, buffer: int, places: Table, kind: Kind = "store", origin: str = "copies") -> Region:
    """Return the region that copies numbers to places of a buffer, or adds them."""
    return Region(IDENTITY, source.table.count, (source,), (Result(0, buffer, places, kind),), origin=origin)
