"""Sweeps on a GPU: compute a few columns, write them to the tile, copy the tile by the warp.

Values that do not depend on the column are computed once, and stay in registers. A window has its columns of every row,
which are neighbours.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.emission.emit import LEAF_NAMES, OPERATIONS, ChunkWriter, Emitted, Form, Names
from codegen.emission.schedule import Schedule, depth_first
from codegen.emission.straight import StraightPlan, SweepPlan, unit_vectors
from codegen.functions.symbols import Symbol
from codegen.ir.program import Output, Program
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered
from codegen.machine.gpu.device_entry import KernelEntry
from codegen.machine.gpu.driver import WARP
from codegen.records import dataclass

WIDE = WARP  # positions of a window: a warp copies the numbers of one point at a time, side by side
ROW = "%row0"


def window_entry(program: Program, form: Form) -> KernelEntry:
    """Return the entry: a thread has a row as long as a window, or none where all outputs are single numbers."""
    longest = max((output.size for output in program.outputs), default=0)
    rows = (min(longest, WIDE),) if longest > 1 else ()
    return KernelEntry(len(program.inputs), len(program.outputs), form.lanes.type, form.lanes.size, rows)


def windowed(program: Program, lowered: Lowered, form: Form, entry: KernelEntry) -> tuple[str, dict[str, Symbol]]:
    """Return the function `body` of the tables of arrays and `KernelEntry.body_parameters`, and its symbols."""
    order = sorted(lowered.stores)
    rows = depth_first(replace(lowered, stores=order))
    at = {row: number for number, row in enumerate(rows)}
    writer = ChunkWriter(program, lowered.rows, Schedule([rows], {}, 0), {}, form)
    parameters = ",".join(["ptr %0", "ptr %1", "ptr %2", *(" ".join(pair) for pair in entry.body_parameters)])
    names = Names(writer, [f"define internal void @body({parameters}) alwaysinline {{"], 4)
    places = {(array, position): row for array, position, row in order}
    done = 0
    for array, output in enumerate(program.outputs):
        for begin in range(0, output.size, WIDE):
            window = range(begin, min(begin + WIDE, output.size))
            stored = {place: places[array, place] for place in window if (array, place) in places}
            until = max((at[row] + 1 for row in stored.values() if row in at), default=0)
            _compute(writer, names, rows[done:until])
            done = max(done, until)
            for place in window:
                value = names[stored[place]] if place in stored else "0.0"
                if entry.rows:
                    names.store(value, ROW, place - begin)
                else:
                    names.store(value, names.array("out", array), place)
            if entry.rows:
                names.lines += entry.flush(0, array, begin, len(window))
    return "\n".join([*names.lines, "ret void", "}"]), writer.symbols


def _compute(writer: ChunkWriter, names: Names, rows: list[int]) -> None:
    for number, index in enumerate(rows):
        row = writer.rows[index]
        if row[0] not in LEAF_NAMES:
            names[index] = OPERATIONS[row[0]](writer, names, row)
        if not number % EVERY:
            check("writing code")


BESIDE = (4, 2, 1)  # columns of a window, the first that fits
LITTLE = 90  # numbers of a point: the results of all running points stay in the cache until its lines are full
LONGEST = 100  # numbers of a window, of all outputs
BUSY = 400  # operations of columns that are computed side by side: with more, values do not stay in registers

# `once` fills the residuals; `columns` reads the input arrays, and writes those of %out, rows of the tile.
BLOCKS = """%residuals=alloca [COUNT x SCALAR],align 16
%made=alloca [1 x ptr],align 8
%given=alloca [2 x ptr],align 8
store ptr %residuals,ptr %made,align 8
store ptr %residuals,ptr %given,align 8
%status=call i32 @once(ptr %in,ptr %made)
%seed.at=getelementptr ptr,ptr %given,i64 1
%center=getelementptr SCALAR,ptr @unit,i64 CENTER
ZEROS
br label %prepare
prepare:
br label %block.next
block.next:
%column=phi i64 [0,%prepare],[%following,%again]
%seed=getelementptr SCALAR,ptr %center,i64 %column
store ptr %seed,ptr %seed.at,align 8
%code=call i32 @columns(ptr %given,ptr %out)
FLUSH
%done=icmp uge i64 %column,LAST
br i1 %done,label %finished,label %again
again:
%stepped=add i64 %column,WIDTH
%over=icmp ugt i64 %stepped,LAST
%following=select i1 %over,i64 LAST,i64 %stepped
br label %block.next
finished:"""


@dataclass(frozen=True)
class SweptWindows:
    """A sweep with swept results only, in windows of `width` columns, and its entry."""

    plan: SweepPlan
    width: int
    entry: KernelEntry

    @classmethod
    def of(cls, plan: SweepPlan, form: Form) -> SweptWindows | None:
        """Return the windows, None where there are other results, or where a window would be too long."""
        program = plan.program
        columns, busy = program.inputs[-1].size, plan.columns.executed().total()
        inputs, size = len(program.arguments), sum(output.size for output in program.outputs)
        for width in BESIDE:
            if (width * busy > BUSY and width > 1) if size <= LITTLE else width < max(BESIDE):
                continue
            rows = tuple(width * (output.size // columns) for output in program.outputs)
            if all(map(_is_whole, program.outputs)) and width <= columns and sum(rows) <= LONGEST:
                return cls(plan, width, KernelEntry(inputs, len(rows), form.lanes.type, form.lanes.size, rows))
        return None

    def emitted(self, form: Form) -> Emitted:
        """Return the functions `once` and `columns`; the latter stores a window of each row."""
        columns, plan = self.plan.program.inputs[-1].size, self.plan.columns
        stores = [(array, position // columns * self.width, row) for array, position, row in plan.lowered.stores]
        outputs = tuple(
            Output((length,), output.rows) for length, output in zip(self.entry.rows, self._outputs, strict=True)
        )
        second: StraightPlan = replace(
            plan, program=replace(plan.program, outputs=outputs), lowered=replace(plan.lowered, stores=stores)
        )
        unit = Emitted([], [unit_vectors(columns, form.lanes.scalar)], {})
        return self.plan.once.emit(replace(form, name="once")) + second.emit(self.plan.beside(form, self.width)) + unit

    @property
    def body(self) -> list[str]:
        """What the entry does."""
        columns, zeros, flushes = self.plan.program.inputs[-1].size, [], []
        for k, output in enumerate(self._outputs):
            present = {position // columns for array, position, _ in self.plan.columns.lowered.stores if array == k}
            for row in set(range(output.size // columns)) - present:
                for at in range(row * self.width, (row + 1) * self.width):
                    zeros += [f"%zero{k}.{at}=getelementptr {self.entry.scalar},ptr %row{k},i64 {at}",
                              f"store {self.entry.scalar} 0.0,ptr %zero{k}.{at},align {self.entry.bytes}"]  # fmt: skip
            flushes += self.entry.flush_columns(k, "%column", self.width, columns)
        text = BLOCKS
        for name, written in (
            ("COUNT", str(max(self.plan.residuals, 1))), ("SCALAR", self.entry.scalar), ("CENTER", str(columns - 1)),
            ("ZEROS\n", "".join(f"{line}\n" for line in zeros)), ("FLUSH", "\n".join(flushes)),
            ("LAST", str(columns - self.width)), ("WIDTH", str(self.width)),
        ):  # fmt: skip
            text = text.replace(name, written)
        return text.splitlines()

    @property
    def _outputs(self) -> tuple[Output, ...]:
        return self.plan.program.outputs


def _is_whole(output: Output) -> bool:
    """Whether an output is a matrix with a column for each of the seed's."""
    return output.swept and output.pattern is None
