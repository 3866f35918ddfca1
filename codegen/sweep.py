"""Sweeps: a program whose last input is a seed is evaluated at every unit vector of that seed, in vector lanes.

A dense Jacobian or Hessian is a pushforward along every column. What does not depend on the seed (values and partial
derivatives) is computed once, in scalar code; the linear rest runs over blocks of columns, one column in each lane.
So the code stays as small as one pushforward, where the straight-line matrix has an operation for every entry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import sympy as sp

from codegen.emit import MEMORY, POINT, STACK_BYTES, Emitted, Form
from codegen.engine import vector_bits
from codegen.guards import guard
from codegen.lanes import Lanes, Layout
from codegen.lower import Lowered
from codegen.machine import TRUTHS, operands_of
from codegen.program import Input, Output, Program
from codegen.schedule import CHUNK
from codegen.straight import StraightPlan
from codegen.table import Table

ZERO = ("const", bytes(8))


def lanes_of(program: Program) -> Lanes:
    """Return the lanes of a sweep: the widest registers that the columns fill.

    >>> lanes_of(Program([], [], {}, (Input("seed", (3,)),), (), seeded=True)).width
    2
    """
    columns, width = program.inputs[-1].size, max(1, vector_bits() // 64)
    while width > columns:
        width //= 2
    return Lanes(max(width, 1))


@dataclass(frozen=True)
class Split:
    """The two halves of a sweep: `once` stores the residuals as a last array, and `columns` reads them."""

    once: Lowered
    columns: Lowered
    residuals: int


@dataclass(frozen=True)
class SweepPlan:
    """The two halves of a sweep, ready to be written: `once` writes the residuals that `columns` reads."""

    program: Program
    once: StraightPlan
    columns: StraightPlan
    residuals: int
    strategy = "sweep"

    @classmethod
    def of(cls, program: Program, lowered: Lowered, chunk: int | None = None) -> SweepPlan:
        """Split a seeded program, and schedule both halves."""
        seed = program.inputs[-1]
        halves = split(program, guard(lowered, program.input_count - seed.size, seed.size))
        fixed = tuple(output for output in program.outputs if not output.swept)
        swept = tuple(replace(output, positions=None) for output in program.outputs if output.swept)
        kept = Output((halves.residuals,), ())
        first = replace(program, inputs=program.arguments, outputs=(*fixed, kept), seeded=False)
        second = replace(program, inputs=(Input("residuals", kept.shape), seed), outputs=swept, seeded=False)
        return cls(
            program,
            StraightPlan.of(first, halves.once, chunk),
            StraightPlan.of(second, halves.columns, chunk or CHUNK),
            halves.residuals,
        )

    @property
    def lanes(self) -> Lanes:
        """Lanes of the columns: the widest registers that they fill."""
        return lanes_of(self.program)

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR: both halves, and the kernel that runs the second one over blocks of columns.

        Several points side by side fill the lanes themselves, and columns follow one another.
        """
        columns, points = self.program.inputs[-1].size, form.lanes.width
        if points > 1:
            second = Form("columns", form.lanes, {1: Layout(-1, uniform=True)})
        else:
            rows = {k: Layout(1) for k in range(len(self.columns.program.outputs))}
            second = Form("columns", self.lanes, {0: Layout(1, uniform=True), 1: Layout(-1)}, rows)
        emitted = self.once.emit(Form("once", form.lanes)) + self.columns.emit(second)
        driver = _driver(self.program, self.residuals, 1 if points > 1 else self.lanes.width, points)
        return emitted + Emitted([], [_unit_vectors(columns), driver], {found.name: found for found in MEMORY})

    def executed(self) -> Counter[str]:
        """Operations that one call carries out, by kind; one on a vector register counts once."""
        blocks = -(-self.program.inputs[-1].size // self.lanes.width)
        repeated = {kind: blocks * count for kind, count in self.columns.executed().items()}
        return self.once.executed() + Counter(repeated)

    @property
    def chunks(self) -> int:
        """Number of chunk functions."""
        return self.once.chunks + self.columns.chunks

    @property
    def workspace(self) -> int:
        """Number of values that pass through memory, between halves and from chunk to chunk."""
        return self.residuals + self.once.workspace + self.columns.workspace * self.lanes.width


def split(program: Program, lowered: Lowered) -> Split:
    """Return the rows that do not depend on the seed and those that do, each with its stores."""
    rows, start = lowered.rows, program.input_count - program.inputs[-1].size
    swept = [output.swept for output in program.outputs]
    moving = [store for store in lowered.stores if swept[store[0]]]
    depends = _dependent(lowered, start)
    crossing = _crossing(lowered, depends, [row for _, _, row in moving])
    once, columns = list(rows), list(rows)
    stores = [store for store in lowered.stores if not swept[store[0]]]
    number = {array: sum(other == swept[array] for other in swept[:array]) for array in range(len(swept))}
    stores = [(number[array], position, row) for array, position, row in stores]
    for row, place in crossing.items():
        kept = row
        if rows[row][0] in TRUTHS:  # crosses as a number
            kept = len(once)
            once.append(("number", row))
            columns += [("input", place), ZERO]
            columns[row] = ("compare", "une", len(columns) - 2, len(columns) - 1)
        else:
            columns[row] = ("input", place)
        stores.append((len(swept) - sum(swept), place, kept))
    for index, (code, *fields) in enumerate(rows):
        if code == "input" and fields[0] >= start:
            columns[index] = ("input", fields[0] - start + len(crossing))
    second = [(number[array], position, row) for array, position, row in moving]
    return Split(
        replace(lowered, rows=once, stores=stores), replace(lowered, rows=columns, stores=second), len(crossing)
    )


def _dependent(lowered: Lowered, start: int) -> bytearray:
    """Mark the rows that depend on the seed: the inputs from position `start` on."""
    depends = bytearray(len(lowered.rows))
    for index in lowered.live():
        row = lowered.rows[index]
        seed = row[0] == "input" and row[1] >= start
        depends[index] = seed or any(depends[operand] for operand in operands_of(row))
    return depends


def _crossing(lowered: Lowered, depends: bytearray, stored: list[int]) -> dict[int, int]:
    """Number the rows without seed that rows with seed, or stores of columns, read; constants are known to both."""
    wanted = [u for row in lowered.live() if depends[row] for u in operands_of(lowered.rows[row])]
    needed = dict.fromkeys(u for u in [*wanted, *stored] if not depends[u])
    constant = ("const", "true", "false")
    return {row: place for place, row in enumerate(row for row in needed if lowered.rows[row][0] not in constant)}


def _unit_vectors(columns: int) -> str:
    """A one between zeros: read from different places on, it is every unit vector."""
    zeros = f"[{columns - 1} x double] zeroinitializer"
    kind = f"[{columns - 1} x double]"
    return f"@unit=internal constant <{{{kind},double,{kind}}}> <{{{zeros},double 1.0,{zeros}}}>,align 64"


def _driver(program: Program, residuals: int, width: int, points: int) -> str:
    """The exported function. The last block of columns overlaps the one before, so that every block is whole."""
    columns = program.inputs[-1].size
    fixed = [k for k, output in enumerate(program.outputs) if not output.swept]
    swept = [k for k, output in enumerate(program.outputs) if output.swept]
    size, last = 8 * points * max(residuals, 1), max(0, columns - width)
    large = size > STACK_BYTES
    lines = [
        "define i32 @kernel(ptr noalias %in,ptr noalias %out) nounwind {",
        f"%once=alloca [{len(fixed) + 1} x ptr],align 8",
        "%given=alloca [2 x ptr],align 8",
        f"%moving=alloca [{max(len(swept), 1)} x ptr],align 8",
        f"%c=call ptr @malloc(i64 {size})" if large else f"%c=alloca [{size} x i8],align 64",
        "%full=icmp eq ptr %c,null",
        "br i1 %full,label %failed,label %start",
        "start:",
    ]
    for k, output in enumerate(program.outputs):
        lines += [f"%a{k}=getelementptr ptr,ptr %out,i64 {k}", f"%o{k}=load ptr,ptr %a{k},align 8"]
        if output.swept and len(output.rows) * columns < output.size:
            lines.append(f"call void @llvm.memset.p0.i64(ptr %o{k},i8 0,i64 {8 * points * output.size},i1 false)")
    for place, value in enumerate([*(f"%o{k}" for k in fixed), "%c"]):
        lines += [f"%p{place}=getelementptr ptr,ptr %once,i64 {place}", f"store ptr {value},ptr %p{place},align 8"]
    lines += [
        "%status=call i32 @once(ptr %in,ptr %once)",
        "%bad=icmp ne i32 %status,0",
        "br i1 %bad,label %drop,label %prepare",
        "prepare:",
        "store ptr %c,ptr %given,align 8",
        "%seed.at=getelementptr ptr,ptr %given,i64 1",
        f"%center=getelementptr double,ptr @unit,i64 {columns - 1}",
        "br label %block",
        "block:",
        "%column=phi i64 [0,%prepare],[%next,%again]",
        "%seed=getelementptr double,ptr %center,i64 %column",
        "store ptr %seed,ptr %seed.at,align 8",
    ]
    for place, k in enumerate(swept):
        lines += [
            f"%s{place}=getelementptr [{points} x double],ptr %o{k},i64 %column",
            f"%m{place}=getelementptr ptr,ptr %moving,i64 {place}",
            f"store ptr %s{place},ptr %m{place},align 8",
        ]
    return "\n".join(
        [
            *lines,
            "%code=call i32 @columns(ptr %given,ptr %moving)",
            "%wrong=icmp ne i32 %code,0",
            "br i1 %wrong,label %drop,label %more",
            "more:",
            f"%done=icmp uge i64 %column,{last}",
            "br i1 %done,label %drop,label %again",
            "again:",
            f"%stepped=add i64 %column,{width}",
            f"%over=icmp ugt i64 %stepped,{last}",
            f"%next=select i1 %over,i64 {last},i64 %stepped",
            "br label %block",
            "drop:",
            "%result=phi i32 [1,%start],[1,%block],[0,%more]",
            "call void @free(ptr %c)" if large else "",
            "ret i32 %result",
            "failed:",
            "ret i32 1",
            "}",
        ]
    )


def unroll(program: Program) -> Program:
    """Return the straight-line program of a sweep, and any other program as it is.

    A seed of 0 makes products structurally zero and drops out of sums; whatever else depends on it is written down
    for every column.

    >>> x, v = sp.symbols("x v")
    >>> heads, operands = [sp.Symbol, sp.Symbol, sp.Mul], [(), (), (0, 1)]
    >>> outputs = (Output((1, 1), (2,), (0,), swept=True),)
    >>> unroll(Program(heads, operands, {0: x, 1: v}, (Input("x", ()), Input("v", ())), outputs, seeded=True)).outputs
    (Output(shape=(1, 1), rows=(0,), positions=None, pattern=None, swept=False),)
    """
    if not program.seeded:
        return program
    table, seed = Table(), program.inputs[-1]
    start, columns = program.input_count - seed.size, seed.size
    depends = bytearray(len(program))
    kept: dict[int, int] = {}
    for row, (head, operands) in enumerate(zip(program.heads, program.operands, strict=True)):
        depends[row] = start <= row < start + columns or any(depends[operand] for operand in operands)
        if not depends[row]:
            atom = program.atoms.get(row)
            kept[row] = table.row(head, tuple(kept[u] for u in operands)) if atom is None else table.leaf(atom)
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
        else:
            found[row] = table.row(head, tuple(zero if part is None else part for part in parts))
    return found


def _joined(table: Table, head: type[sp.Basic], parts: list[int], empty: int | None) -> int | None:
    if len(parts) < 2:
        return parts[0] if parts else empty
    return table.row(head, tuple(sorted(parts)) if len(parts) == 2 else tuple(parts))
