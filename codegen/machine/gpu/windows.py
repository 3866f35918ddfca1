"""Straight lines on a GPU: compute a window of results, write it to the tile, copy the tile by the warp.

A window is a stretch of an output's positions. Operations stand in the order in which windows need them, so most values
are there shortly before they are copied; a value that a later window has again waits in a register, or where the
assembler of the GPU puts it.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.emission.emit import LEAF_NAMES, OPERATIONS, ChunkWriter, Form, Names
from codegen.emission.schedule import Schedule, depth_first
from codegen.functions.symbols import Symbol
from codegen.ir.program import Program
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered
from codegen.machine.gpu.device_entry import KernelEntry
from codegen.machine.gpu.driver import WARP

WIDE = WARP  # positions of a window: a warp copies the numbers of one point at a time, side by side
ROW = "%row0"


def window_entry(program: Program, form: Form) -> KernelEntry:
    """Return the entry: a thread has a row as long as a window, or none where all outputs are single numbers."""
    longest = max((output.size for output in program.outputs), default=0)
    rows = (min(longest, WIDE),) if longest > 1 else ()
    return KernelEntry(len(program.inputs), len(program.outputs), form.lanes.type, form.lanes.size, rows)


def windowed(program: Program, lowered: Lowered, form: Form, entry: KernelEntry) -> tuple[str, dict[str, Symbol]]:
    """Return the function `body`, with the tables of arrays, nothing, and what `Entry.found` has, and its symbols."""
    order = sorted(lowered.stores)
    rows = depth_first(replace(lowered, stores=order))
    at = {row: number for number, row in enumerate(rows)}
    writer = ChunkWriter(program, lowered.rows, Schedule([rows], {}, 0), {}, form)
    parameters = ",".join(["ptr %0", "ptr %1", "ptr %2", *(" ".join(pair) for pair in entry.found)])
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
    """Write operations."""
    for number, index in enumerate(rows):
        row = writer.rows[index]
        if row[0] not in LEAF_NAMES:
            names[index] = OPERATIONS[row[0]](writer, names, row)
        if not number % EVERY:
            check("writing code")
