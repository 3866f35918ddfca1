"""What the slots of a loop's body read, and where its results go, in a few words for a box."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram, buffer_names
from codegen.ir.tables import Affine, Table
from symad.drawing.labels import count_label, symbol_label
from symad.drawing.svg import shortened

SHOWN = 2  # places before the dots
LONGEST = 34  # letters
BECOMES = {"store": "stored in", "add": "summed in", "last": "last to"}


class Places:
    """The places of a program's buffers, by the names that its text has for them (`codegen.rolled_text`)."""

    def __init__(self, program: RolledProgram) -> None:
        self.program, self.names = program, buffer_names(program)

    def buffer(self, number: int) -> Buffer:
        """A buffer by its number."""
        return self.program.buffers[number]

    def one(self, number: int, place: int) -> str:
        """Return the name of one place, or the number there."""
        buffer, name = self.buffer(number), self.names[number]
        if buffer.values is not None:
            return f"{buffer.values[place]:.5g}".replace("-", "−")
        if buffer.size == 1:
            return symbol_label(name)
        return symbol_label(f"{name}_{place}") if buffer.kind == "input" else f"{name}[{place}]"

    def read(self, number: int, table: Table) -> tuple[str, str]:
        """Return the first places and the last that a slot reads, and by which rule.

        The rule says what changes from repetition to repetition, and from round to round of the nests around.
        """
        found = table.places()
        rule = _step(table)
        moved = [f"+{shift}" if shift > 0 else f"−{-shift}" for shift in table.shifts if shift]
        rules = ", ".join(filter(None, [rule, f"{' and '.join(moved)} a round" if moved else ""]))
        if found.min() == found.max():
            return self.one(number, int(found[0])), rules
        kept = found[:SHOWN].tolist()
        last = int(found[-1])
        dots = ["…"] if len(found) > SHOWN + 1 else []
        if self.buffer(number).values is not None:
            return shortened(
                ", ".join([*(self.one(number, k) for k in kept), *dots, self.one(number, last)]), LONGEST
            ), ""
        places = ", ".join([*map(str, kept), *dots, *([str(last)] if len(found) > SHOWN else [])])
        return shortened(f"{self.names[number]}[{places}]", LONGEST), rules

    def gather(self, gather: Gather) -> tuple[str, str]:
        """Return what a gather reads, and by which rule."""
        return self.read(gather.buffer, gather.table)

    def carry(self, carry: Carry) -> tuple[str, str]:
        """Return how far back a carry looks, and what it has at first."""
        first = ", ".join(self.gather(initial)[0] for initial in carry.initial[:SHOWN])
        back = "carried" if carry.lag == 1 else f"from {carry.lag} before"
        return back, shortened(f"at first {first}", LONGEST) + (", …" if carry.lag > SHOWN else "")

    def result(self, use: Result) -> str:
        """Return what becomes of a result."""
        return f"{BECOMES[use.kind]} {self.names[use.buffer]}"

    def size(self, number: int) -> str:
        """Return how many numbers a buffer has."""
        size = self.buffer(number).size
        return f"{count_label(size)} number{'s'[: size != 1]}"


def results_of(region: Region, places: Places, output: int) -> Sequence[str]:
    """Return what becomes of an output of a body; nothing where it is only carried on."""
    found = [places.result(use) for use in region.results if use.output == output]
    return [*found, *(["ends the loop"] if region.stop == output else [])]


def _step(table: Table) -> str:
    if not isinstance(table, Affine):
        return f"a table of {count_label(table.count)}" if table.bounds[0] != table.bounds[1] else ""
    step = abs(table.step)
    if table.count <= SHOWN + 1 or not step:
        return ""
    rule = "in order" if step == 1 and table.step > 0 else "" if step == 1 else f"every {ordinal(step)}"
    return ", ".join(filter(None, [rule, "backwards" if table.step < 0 else ""]))


def ordinal(number: int) -> str:
    """Return 2nd, 3rd, 4th of 2, 3, 4.

    >>> [ordinal(k) for k in (2, 3, 11, 21, 112)]
    ['2nd', '3rd', '11th', '21st', '112th']
    """
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
