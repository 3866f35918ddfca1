"""The plan of a rolled program: what its loops do, and the IR in which they do it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from codegen.emission.emit import POINT, Emitted, Form
from codegen.emission.lanes import Lanes
from codegen.engine import has_fma, vector_bits
from codegen.lowering.lower import lower
from codegen.options import Options
from codegen.regions.emission import emit_rolled
from codegen.regions.region import RolledProgram, regions_of


@dataclass(frozen=True)
class RolledPlan:
    """A rolled program, ready to be written."""

    program: RolledProgram
    options: Options
    strategy = "rolled"
    chunks = 1

    @classmethod
    def of(cls, program: RolledProgram, options: Options) -> RolledPlan:
        """Plan the loops of a program."""
        return cls(program, options)

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR, for one point."""
        fast = self.options.accuracy == "fast"
        lanes = Lanes(self.options.lanes or vector_bits() // 64)
        return emit_rolled(self.program, lanes, fma=self.options.fma and has_fma(), fast=fast)

    def executed(self) -> Counter[str]:
        """Operations that one call carries out, by kind."""
        total: Counter[str] = Counter()
        for region, counts in regions_of(self.program.steps):
            times = region.count
            for count in counts:
                times *= count
            total.update({kind: times * number for kind, number in lower(region.body).count().items()})
        return total

    @property
    def workspace(self) -> int:
        """Number of values that regions leave for each other in memory."""
        return sum(buffer.size for buffer in self.program.buffers if buffer.kind == "workspace")
