"""Listings: what dumps of a compilation show of each kind of subject, line by line, and what logs say of its size."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import singledispatch

from codegen.emission.schedule import Schedule
from codegen.expressions.printing import text
from codegen.ir.machine_rows import LEAVES, Row, operands_of
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram, regions_of
from codegen.lowering.lower import Lowered
from codegen.stages import Listing

READABLE = 2000  # operations in the bodies of a rolled program that is written as loops with formulas


@singledispatch
def lines(subject: object) -> Iterable[str]:
    """Return a subject as lines; anything that is not known by `str()`.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 2])
    >>> list(lines(program))
    ['%0 = x', '%1 = 2', '%2 = Add %1 %0', 'out0 = %2']
    >>> list(lines(lower(program)))
    ['%0 = input 0', '%1 = const 2.0', '%2 = add %0 %1', 'out0[0] = %2']
    """
    return str(subject).splitlines()


@lines.register
def _program(program: Program) -> Iterator[str]:
    for row, (head, operands) in enumerate(zip(program.heads, program.operands, strict=True)):
        yield f"%{row} = {_numbered((head.__name__, *operands)) if operands else program.atoms.get(row, head.__name__)}"
    for number, output in enumerate(program.outputs):
        if output.positions is None and not output.shape:
            yield from (f"out{number} = %{row}" for row in output.rows)
            continue
        places = range(len(output.rows)) if output.positions is None else output.positions
        at = " + column" if output.swept else ""
        yield from (f"out{number}[{place}{at}] = %{row}" for place, row in zip(places, output.rows, strict=True))


@lines.register
def _lowered(lowered: Lowered) -> Iterator[str]:
    """Rows that nothing needs are left out."""
    for number in lowered.live():
        yield f"%{number} = {_machine_row(lowered.rows[number])}"
    yield from (f"out{array}[{place}] = %{row}" for array, place, row in lowered.stores)


@lines.register
def _rolled(program: RolledProgram) -> Iterator[str]:
    if program.operations <= READABLE:
        yield from text(program).splitlines()
        return
    yield f"{program.name}: {program.operations} operations in bodies, which are written as rows"
    for number, (region, counts) in enumerate(regions_of(program.steps)):
        rounds = "".join(f"{count} rounds of " for count in counts)
        yield f"region {number}: {rounds}{region.count} repetitions  # {region.origin}"
        yield from (f"    %{slot} from {use.buffer}: {use.table}" for slot, use in enumerate(region.gathers))
        yield from (f"    %{slot} carried: {use}" for slot, use in enumerate(region.carries, len(region.gathers)))
        yield from (f"    {line}" for line in _program(region.body))
        yield from (f"    buffer {use.buffer}, {use.kind}: out{use.output} at {use.table}" for use in region.results)


@lines.register
def _schedule(order: Schedule) -> Iterator[str]:
    for number, chunk in enumerate(order.chunks):
        yield f"chunk {number}:"
        yield from (f"    %{row}" + (f" in place {order.slots[row]}" if row in order.slots else "") for row in chunk)


def _numbered(parts: tuple[object, ...]) -> str:
    head, *operands = parts
    return " ".join([str(head), *(f"%{operand}" for operand in operands)])


def _machine_row(row: Row) -> str:
    if row[0] == "const":
        return f"const {struct.unpack('>d', row[1])[0]!r}"
    operands = () if row[0] in LEAVES else operands_of(row)
    fields = row[: len(row) - len(operands)]
    return _numbered((" ".join(map(str, fields)), *operands))


def size(subject: object) -> int:
    """Return the number of operations of a program, 0 for anything else.

    >>> size("x + 1")
    0
    """
    match subject:
        case Program():
            return sum(map(bool, subject.operands))
        case RolledProgram():
            return subject.operations
        case Lowered():
            return subject.count().total()
    return 0


LISTING = Listing(lines, size)
