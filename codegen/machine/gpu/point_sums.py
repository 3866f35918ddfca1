"""Sum over the points of a batch on a GPU, in an order that only their number decides.

Neighbouring threads add up neighbouring numbers, each thread those of every n-th point: first some ten thousand sums,
then 64, then one of each number. The results of all points are never stored at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.engine import device_assembly
from codegen.lanes import Lanes
from codegen.machine.gpu.device_arrays import Place
from codegen.machine.gpu.device_entry import DECLARED, ENTRY, FIND
from codegen.machine.gpu.driver import Device, Memory, Module

PART_BYTES = 1 << 28  # of results in memory at once
STAGES = (1 << 16, 1 << 6, 1)  # sums of each stage, those of all numbers in the first, of each number in the others

ADD = """define ptx_kernel void @batch(PARAMETERS) {
FIND
%inside=icmp ult i64 %point,%threads
br i1 %inside,label %begin,label %end
begin:
%all=mul i64 %points,%width
%start=getelementptr SCALAR,ptr %i0,i64 %point
%value=load SCALAR,ptr %start,align BYTES
br label %next
next:
%at=phi i64 [%point,%begin],[%then,%more]
%sum=phi SCALAR [%value,%begin],[%added,%more]
%then=add i64 %at,%threads
%some=icmp ult i64 %then,%all
br i1 %some,label %more,label %done
more:
%place=getelementptr SCALAR,ptr %i0,i64 %then
%other=load SCALAR,ptr %place,align BYTES
%added=fadd SCALAR %sum,%other
br label %next
done:
%target=getelementptr SCALAR,ptr %o0,i64 %point
store SCALAR %sum,ptr %target,align BYTES
br label %end
end:
ret void
}
"""
PARAMETERS = "i64 %threads,ptr noalias readonly align 8 %i0,i64 %width,ptr noalias align 8 %o0,i64 %points"


def adding_text(scalar: Lanes) -> str:
    """Return the IR of a function that adds up numbers of points: one thread for each sum."""
    text = "\n".join([*DECLARED, ADD]).replace("FIND", FIND).replace("PARAMETERS", PARAMETERS)
    return text.replace("SCALAR", scalar.type).replace("BYTES", str(scalar.size))


def adding_module(owner: Device, scalar: Lanes) -> Module:
    """Load the function that adds up."""
    return Module(owner, device_assembly(adding_text(scalar), owner.architecture), ENTRY)


class PointSums:
    """Sums of a kernel's results over points: the kernel, the module that adds up, and the numbers of each result."""

    kernel: Module
    adding: Module
    widths: Sequence[int]
    scalar: Lanes

    def __init__(self, kernel: Module, adding: Module, widths: Sequence[int], scalar: Lanes) -> None:
        self.kernel, self.adding, self.widths, self.scalar = kernel, adding, widths, scalar

    def __call__(self, inputs: Sequence[Place], targets: Sequence[Memory], count: int, stream: int, use: str) -> None:
        """Add up the results of all points into `targets`; the context must be current."""
        size, owner = self.scalar.size, self.kernel.device
        part = max(1, min(count, PART_BYTES // (size * max(sum(self.widths), 1))))
        parts = -(-count // part)
        results = [Memory(owner, size * width * part, use) for width in self.widths]
        totals = [Memory(owner, size * width * parts, use) for width in self.widths]
        rooms = [[Memory(owner, size * max(width, STAGES[0]), use) for _ in STAGES[:-1]] for width in self.widths]
        for number, first in enumerate(range(0, count, part)):
            points = min(part, count - first)
            places = [(place.address + first * place.step, place.step // size) for place in inputs]
            places += [(memory.address, width) for memory, width in zip(results, self.widths, strict=True)]
            self.kernel.launch(points, places, stream, use)
            for width, result, total, room in zip(self.widths, results, totals, rooms, strict=True):
                self._add(result.address, points, width, room, total.address + size * width * number, stream)
        for width, total, room, target in zip(self.widths, totals, rooms, targets, strict=True):
            self._add(total.address, parts, width, room, target.address, stream)

    def _add(self, source: int, points: int, width: int, rooms: Sequence[Memory], target: int, stream: int) -> None:
        if not width:
            return
        counts = [max(1, min(points, STAGES[0] // width)), min(points, STAGES[1]), STAGES[2]]
        for sums, room in zip(counts, [*(memory.address for memory in rooms), target], strict=True):
            self.adding.launch(sums * width, [(source, width), (room, points)], stream, "adding up")
            source, points = room, min(sums, points)
