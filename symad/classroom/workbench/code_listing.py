"""LLVM IR and assembly of a kernel side by side, with the effect of each line and links between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from codegen import Kernel
from codegen.records import dataclass
from symad.classroom.code_reading.llvm_lines import Machine, body_of, kind_of_ir
from symad.classroom.code_reading.located_code import Instruction, instructions_of, located_assembly
from symad.classroom.code_reading.machine_code import is_one_function, kind_of
from symad.display.document import Block, Cell, Code, Columns, Document, Heading, Marked, Paragraph, Table
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
    statement: str

    @property
    def title(self) -> str:
        return "Machine code"

    def document(self) -> Document:
        """Return both listings. Code with loops is shown without the effects of its lines."""
        left: Block = Table((), tuple(self._ir()), "rll")
        right: Block = Table((), tuple(self._assembly()), "rll")
        if not self.straight:
            left = Code("\n".join(self.lines[:MOST_LINES]), "llvm")
            right = Code("\n".join(instruction.text for instruction in self.instructions[:MOST_LINES]), "asm")
        both = ((Heading("LLVM IR", 3), left), (Heading("Assembly", 3), right))
        return (Heading(self.title, 1), Paragraph(self.statement), Columns(both))

    def _ir(self) -> list[tuple[Cell, ...]]:
        return [
            (Marked(str(k), "muted"), Marked(line, "code", nodes=f"i{k} {mark}".strip()), kind_of_ir(line))
            for k, (line, mark) in enumerate(zip(self.lines, self.marks, strict=True), 1)
        ]

    def _assembly(self) -> list[tuple[Cell, ...]]:
        rows: list[tuple[Cell, ...]] = []
        for instruction in self.instructions[:MOST_LINES]:
            text, line = instruction.text, instruction.line
            mark = f"i{line} {self.marks[line - 1]}".strip() if 0 < line <= len(self.marks) else ""
            rows.append((Marked(str(line or ""), "muted"), Marked(text, "code", nodes=mark), kind_of(text)))
        return rows


def code_listing(kernel: Kernel, points: Sequence[Sequence[float]], recognise: Callable[[Numbers], str]) -> CodeListing:
    """Return the code of a kernel. `recognise` returns the marks of the values with given numbers."""
    stats = kernel.stats
    if not is_one_function(kernel):
        statement = f"This kernel has {stats.strategy}: its code is shown as it is, and its lines are not linked."
        text = kernel.llvm.split("\n")
        plain = tuple(Instruction(line) for line in kernel.assembly.split("\n"))
        return CodeListing(tuple(text), ("",) * len(text), plain, straight=False, statement=statement)
    lines = body_of(kernel.llvm)[:MOST_LINES]
    columns = iter(np.array(points, dtype=float).T)  # of each argument's elements
    machine = Machine([list(islice(columns, math.prod(argument.shape))) for argument in kernel.program.inputs])
    marks = []
    for line in lines:
        lanes = [lane for lane in machine.line(line) if lane is not None and np.ndim(lane)]
        words = " ".join(recognise(np.asarray(lane, dtype=float)) for lane in lanes)
        marks.append(" ".join(dict.fromkeys(words.split())))
    located, texts = located_assembly(kernel), instructions_of(kernel.assembly)
    if [instruction.text for instruction in located] != texts:  # the kernel's own instructions have no known lines
        located = list(map(Instruction, texts))
    statement = (
        f"{counted(len(lines), 'line')} of LLVM IR, {counted(len(located), 'instruction')}, {stats.code_bytes} bytes. "
        f"The numbers on the left are lines of the IR; an instruction has that of the line it was selected for."
    )
    return CodeListing(tuple(lines), tuple(marks), tuple(located), straight=True, statement=statement)
