"""Straight-line code: every operation of a program once, in chunk functions; long code in modules."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from codegen.emission.emit import POINT, Emitted, Form, emit
from codegen.emission.schedule import Schedule, schedule
from codegen.functions.libraries import no_vector_symbol, vector_symbol, widths
from codegen.ir.program import Program
from codegen.lanes import SCALAR
from codegen.lowering.group import group_operations
from codegen.lowering.lower import Lowered
from codegen.stages import carried_out, observed


@dataclass(frozen=True)
class StraightPlan:
    """Operations and their order, ready to be written.

    For one point, equal operations go into groups (`codegen.lowering.group`); several points fill the lanes themselves.
    `vector_libm` allows the vector functions of the C library.
    """

    program: Program
    lowered: Lowered
    order: Schedule
    chunk: int | None = None
    vector_libm: bool = False
    strategy = "straight"

    @classmethod
    def of(
        cls, program: Program, lowered: Lowered, chunk: int | None = None, *, vector_libm: bool = False
    ) -> StraightPlan:
        """Schedule a program's operations, in chunks of a given size or of the default size."""
        return cls(program, lowered, schedule(lowered, chunk), chunk, vector_libm)

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR."""
        form = replace(form, vector_libm=self.vector_libm)
        if form.lanes != SCALAR:
            observed(self.order, "schedule")
            return emit(self.program, self.lowered, self.order, form)
        find = vector_symbol if self.vector_libm else no_vector_symbol
        grouped = carried_out("groups", lambda rows: group_operations(rows, widths(), find), self.lowered)
        order = observed(schedule(grouped, self.chunk), "schedule")
        return emit(self.program, grouped, order, form)

    def executed(self) -> Counter[str]:
        """Operations that one call carries out, by kind."""
        return self.lowered.count()

    @property
    def chunks(self) -> int:
        """Number of chunk functions."""
        return len(self.order.chunks)

    @property
    def workspace(self) -> int:
        """Number of values that pass from chunk to chunk through memory."""
        return self.order.workspace


LONGEST = 1_000_000  # characters of IR in one module: under a second of LLVM's time


def modules(emitted: Emitted) -> list[str]:
    """Return the IR of a kernel as one module or, if it is long, as several with about a million characters each.

    Chunk functions of several modules find each other by name, which only this kernel's linker sees.
    """
    if sum(map(len, emitted.chunks)) <= LONGEST:
        return [emitted.text]
    shared = emitted.declarations
    parts: list[list[str]] = [[]]
    size = 0
    for chunk in emitted.chunks:
        if size > LONGEST:
            parts.append([])
            size = 0
        parts[-1].append(chunk.replace("define internal", "define", 1))
        size += len(chunk)
    last = [*emitted.functions, *(_declaration(chunk) for chunk in emitted.chunks)]
    return ["\n".join([*part, shared]) + "\n" for part in [*parts, last]]


def _declaration(chunk: str) -> str:
    """Declaration of a chunk function, from the first line of its definition."""
    head = chunk[: chunk.index("{")]
    return head.replace("define internal", "declare", 1).replace(" noinline", "")
