"""A program as a plan, as IR, and as lines of a dump; statistics of loops."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from math import prod
from typing import TypeAlias

from codegen.emission.emit import Emitted, Form
from codegen.emission.schedule import Schedule
from codegen.emission.straight import StraightPlan, SweepPlan
from codegen.expressions.printing import rolled_text
from codegen.ir.machine_rows import LEAVES, Row, operands_of
from codegen.ir.operations import NEGATED
from codegen.ir.program import Program, operations_of
from codegen.ir.region import RolledProgram, regions_of
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.lowering.lower import Lowered
from codegen.lowering.passes import Prepared, prepare
from codegen.machine.calls.compiled import RegionStats, Stats
from codegen.options import Options
from codegen.stages import Effect, Listing, allowed

Plan: TypeAlias = StraightPlan | SweepPlan | RolledPlan


def plan(prepared: Prepared) -> StraightPlan | SweepPlan:
    """Return the operations in order, ready to be written.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> plan(prepare(program_from_sympy([x], [x + 1]), Options())).strategy
    'straight'
    """
    program, chunk = prepared.program, prepared.options.chunk
    fast = uses_library(prepared.options)
    if program.seeded:
        return SweepPlan.of(program, prepared.halves, chunk, vector_libm=fast)
    return StraightPlan.of(program, prepared.fused, chunk, vector_libm=fast)


def uses_library(options: Options) -> bool:
    """Whether functions are those of the vector libm, where there are any.

    >>> uses_library(Options(accuracy="fast")), uses_library(Options())
    (True, False)
    """
    return options.accuracy == "fast" and allowed("vector-library")


def planned(program: Program | RolledProgram, options: Options) -> Plan:
    """Return the plan of the text of any program.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> planned(program_from_sympy([x], [x + 1]), Options()).executed().total()
    1
    """
    if isinstance(program, RolledProgram):
        return RolledPlan.of(program, options)
    return plan(prepare(program, options))


def write(program: Program | RolledProgram, options: Options) -> Emitted:
    """Return the IR of a kernel for one point, in the numbers of its options.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> "fadd float" in write(program_from_sympy([x], [x + 1]), Options(dtype="float32")).text
    True
    """
    return planned(program, options).emit(Form(lanes=options.number.lanes()))


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
        yield from rolled_text(program).splitlines()
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
            return operations_of(subject)
        case RolledProgram():
            return subject.operations
        case Lowered():
            return subject.count().total()
    return 0


LISTING = Listing(lines, size)


def sizes(plan: RolledPlan) -> Stats:
    """Return the statistics of a rolled program that do not depend on how its loops are written.

    >>> sizes(RolledPlan.of(RolledProgram((), (), (), ()), Options())).total
    0
    """
    bodies = [prepared.plain for prepared in plan.prepared]
    kinds = sum((body.count() for body in bodies), Counter[str]())
    regions = tuple(
        RegionStats(region.count, prod(rounds), prepared.plain.count().total(), region.origin, blocks)
        for ((region, rounds), prepared), blocks in zip(plan.regions, plan.cut, strict=True)
    )
    return Stats(
        nodes=sum(body.nodes for body in bodies),
        operations_before=sum(body.operations_before for body in bodies),
        operations_after=sum(body.operations_after_sharing for body in bodies),
        machine_operations=dict(kinds),
        fused=sum(part.fused.rows[row][0] in NEGATED for part in plan.prepared for row in part.fused.live()),
        passes=_effects(plan.prepared),
        regions=regions,
    )


def _effects(bodies: Sequence[Prepared]) -> tuple[Effect, ...]:
    effects: dict[str, Effect] = {}
    for effect in (effect for body in bodies for effect in body.effects):
        before = effects.get(effect.name, Effect(effect.name, 0, 0))
        effects[effect.name] = Effect(effect.name, before.before + effect.before, before.after + effect.after)
    return tuple(effects.values())
