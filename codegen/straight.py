"""Straight-line code: every operation of a program once, in chunk functions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from codegen.emit import POINT, Emitted, Form, emit
from codegen.lower import Lowered
from codegen.program import Program
from codegen.schedule import Schedule, schedule


@dataclass(frozen=True)
class StraightPlan:
    """Operations and their order, ready to be written."""

    program: Program
    lowered: Lowered
    order: Schedule
    strategy = "straight"

    @classmethod
    def of(cls, program: Program, lowered: Lowered, chunk: int | None = None) -> StraightPlan:
        """Schedule a program's operations, in chunks of a given size or of the default size."""
        return cls(program, lowered, schedule(lowered, chunk))

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR."""
        return emit(self.program, self.lowered, self.order, form)

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
