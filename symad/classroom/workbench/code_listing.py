"""LLVM IR and assembly of a kernel side by side, with the effect of each line and links between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from codegen import Kernel
from codegen.records import dataclass
from symad.classroom.code_reading.llvm_lines import Machine, body_of, kind_of_ir
from symad.classroom.code_reading.located_code import Instruction, instructions_of, located_assembly
from symad.classroom.code_reading.machine_code import is_one_function, kind_of
from symad.display.document import Cell, Code, Columns, Document, Heading, Marked, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown

MOST_LINES = 600
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class CodeListing(Shown):
    """The first function of a kernel in both languages; `marks` names the values that each line of IR computes."""

    lines: tuple[str, ...]
    marks: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    straight: bool
    told: str

    @property
    def title(self) -> str:
        """The title of its page."""
        return "Machine code"

    def document(self) -> Document:
        """Return both listings; code with loops as it is, without what its lines stand for."""
        about = Paragraph(self.told)
        if not self.straight:
            text = "\n".join(self.lines[:MOST_LINES])
            assembly = "\n".join(each.text for each in self.instructions[:MOST_LINES])
            both = ((Heading("LLVM IR", 3), Code(text, "llvm")), (Heading("Assembly", 3), Code(assembly, "asm")))
            return (Heading(self.title, 1), about, Columns(both))
        left = (Heading("LLVM IR", 3), Table((), tuple(self._ir()), "rll"))
        right = (Heading("Assembly", 3), Table((), tuple(self._assembly()), "rll"))
        return (Heading(self.title, 1), about, Columns((left, right)))

    def _ir(self) -> list[tuple[Cell, ...]]:
        return [
            (Marked(str(k), "muted"), Marked(line, "code", nodes=f"i{k} {mark}".strip()), kind_of_ir(line))
            for k, (line, mark) in enumerate(zip(self.lines, self.marks, strict=True), 1)
        ]

    def _assembly(self) -> list[tuple[Cell, ...]]:
        rows: list[tuple[Cell, ...]] = []
        for each in self.instructions[:MOST_LINES]:
            mark = f"i{each.line} {self.marks[each.line - 1]}".strip() if 0 < each.line <= len(self.marks) else ""
            number = str(each.line) if each.line else ""
            rows.append((Marked(number, "muted"), Marked(each.text, "code", nodes=mark), kind_of(each.text)))
        return rows


def code_listing(kernel: Kernel, points: Sequence[Sequence[float]], recognise: Callable[[Numbers], str]) -> CodeListing:
    """Return the code of a kernel; `recognise` tells which values have some numbers at the points."""
    stats = kernel.stats
    if not is_one_function(kernel):
        told = f"This kernel has {stats.strategy}: its code is shown as it is, and its lines are not linked."
        text = kernel.llvm.split("\n")
        plain = tuple(Instruction(line) for line in kernel.assembly.split("\n"))
        return CodeListing(tuple(text), ("",) * len(text), plain, straight=False, told=told)
    lines = body_of(kernel.llvm)[:MOST_LINES]
    machine = Machine(_inputs(kernel, points))
    marks = []
    for line in lines:
        lanes = [lane for lane in machine.line(line) if lane is not None and np.ndim(lane)]
        words = " ".join(recognise(np.asarray(lane, dtype=float)) for lane in lanes)
        marks.append(" ".join(dict.fromkeys(words.split())))
    located = located_assembly(kernel)
    if [each.text for each in located] != instructions_of(kernel.assembly):  # then nothing is known of the kernel's own
        located = [Instruction(text) for text in instructions_of(kernel.assembly)]
    told = (
        f"{counted(len(lines), 'line')} of LLVM IR, {counted(len(located), 'instruction')}, {stats.code_bytes} bytes. "
        f"The numbers on the left are lines of the IR; an instruction has that of the line it was selected for."
    )
    return CodeListing(tuple(lines), tuple(marks), tuple(located), straight=True, told=told)


def _inputs(kernel: Kernel, points: Sequence[Sequence[float]]) -> list[list[Numbers]]:
    """Return the numbers of each argument's elements at all points."""
    table, start, parts = np.array(points, dtype=float), 0, []
    for each in kernel.program.inputs:
        size = int(np.prod(each.shape))
        parts.append([table[:, k] for k in range(start, start + size)])
        start += size
    return parts
