"""A rolled program carried out number by number, with every rule about buffers checked; slow, and nothing but loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from codegen.evaluation.interpret import evaluate
from codegen.ir.region import Gather, Region, RolledProgram, Step
from codegen.ir.tables import Table

Arrays = list[np.ndarray]


def run(program: RolledProgram, arrays: Sequence[np.ndarray], *, scratch: bool = False) -> Arrays:
    """Return the output arrays; AssertionError where a place is written or read against the rules.

    With `scratch`, a place may be stored again, as in the workspace of one round of a nest, and sums begin at a zero,
    or with a copy of what was summed up elsewhere (docs/design/rolled-programs.md).
    """
    machine = _Machine(program, arrays, scratch)
    for region, rounds in regions_in_time(program.steps):
        machine.region(region, rounds)
    found = machine.buffers[program.first_output :]
    return [values.reshape(array.shape) for values, array in zip(found, program.outputs, strict=True)]


def regions_in_time(steps: Sequence[Step], rounds: tuple[int, ...] = ()) -> Iterator[tuple[Region, tuple[int, ...]]]:
    """Every region each time it runs, with the rounds of the nests around."""
    for step in steps:
        if isinstance(step, Region):
            yield step, rounds
        else:
            for k in range(step.count):
                yield from regions_in_time(step.steps, (*rounds, k))


def places_in(table: Table, rounds: Sequence[int]) -> np.ndarray:
    """The places of a table in a round of the nests around."""
    return table.places() + sum(shift * k for shift, k in zip(table.shifts, rounds, strict=False))


class _Machine:
    def __init__(self, program: RolledProgram, arrays: Sequence[np.ndarray], scratch: bool) -> None:
        self.scratch = scratch
        self.buffers = [np.zeros(buffer.size) for buffer in program.buffers]
        self.kinds = [[""] * buffer.size for buffer in program.buffers]  # of what was written to a place
        self.read = [np.zeros(buffer.size, dtype=bool) for buffer in program.buffers]
        for number, (array, given) in enumerate(zip(program.inputs, arrays, strict=True)):
            assert np.shape(given) == array.shape, array
            self.buffers[number] = np.asarray(given, dtype=float).ravel()
        for number, buffer in enumerate(program.buffers):
            if buffer.values is not None:
                self.buffers[number] = buffer.values

    def load(self, use: Gather, rounds: Sequence[int], k: int = 0) -> float:
        place = places_in(use.table, rounds)[k]
        self.read[use.buffer][place] = True
        return float(self.buffers[use.buffer][place])

    def region(self, region: Region, rounds: Sequence[int]) -> None:
        tables = [places_in(use.table, rounds) for use in region.gathers]
        for use, places in zip(region.gathers, tables, strict=True):
            self.read[use.buffer][places] = True
        targets = [places_in(use.table, rounds) for use in region.results]
        queues = [[self.load(use, rounds) for use in carry.initial] for carry in region.carries]
        rows = [output.rows[0] for output in region.body.outputs]
        for k in range(region.count):
            slots = [float(self.buffers[use.buffer][at[k]]) for use, at in zip(region.gathers, tables, strict=True)]
            slots += [queue[0] for queue in queues]
            values = evaluate(region.body, rows, dict(enumerate(slots)))
            for use, at in zip(region.results, targets, strict=True):
                if use.kind != "last":
                    copied = use.kind == "store" and rows[use.output] < len(region.body.inputs)
                    self.leave(use.buffer, int(at[k]), "copy" if copied else use.kind, values[use.output])
            for queue, carry in zip(queues, region.carries, strict=True):
                queue[:] = [*queue[1:], values[carry.output]]
            if region.stop is not None and values[region.stop]:
                break
        for use, at in zip(region.results, targets, strict=True):
            if use.kind == "last":
                self.leave(use.buffer, int(at[0]), "store", values[use.output])

    def leave(self, buffer: int, place: int, kind: str, value: float) -> None:
        before = self.kinds[buffer][place]
        if self.scratch and kind in ("store", "copy"):
            self.read[buffer][place] = False
        else:
            assert not self.read[buffer][place], f"place {place} of buffer {buffer} was read before it was written"
            at_zero = before == "store" and self.buffers[buffer][place] == 0
            begun = before == "add" or (self.scratch and (at_zero or before == "copy"))
            assert kind == "add" if begun else not before, f"place {place} of {buffer}: {before}, {kind}"
        self.kinds[buffer][place] = kind
        self.buffers[buffer][place] = value if kind in ("store", "copy") else self.buffers[buffer][place] + value
