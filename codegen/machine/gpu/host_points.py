"""Many points on a GPU in parts: NumPy arrays, whose copies and computations overlap, and sums over points.

Of sums only the number of points decides the order. Neighbouring threads add up neighbouring numbers, each thread those
of every n-th point: first some ten thousand sums, then 64, then one of each number. The results of all points are never
stored at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.engine import device_assembly
from codegen.lanes import Lanes
from codegen.machine.calls.arguments import Array
from codegen.machine.gpu.device_arrays import Place
from codegen.machine.gpu.device_entry import DECLARED, ENTRY, FIND, filled
from codegen.machine.gpu.driver import Device, Memory, Module, Pinned, Stream, copy_in, copy_out, wait
from codegen.records import dataclass

PART_BYTES = 1 << 25  # of arguments and results of one part
WAYS = 2  # parts that are under way at once
SUMMED_BYTES = 1 << 28  # of results in memory at once
STAGES = (1 << 16, 1 << 6, 1)  # sums of each stage, those of all numbers in the first, of each number in the others


def run_in_parts(module: Module, inputs: Sequence[Array], outputs: Sequence[Array], action: str) -> None:
    """Compute all points; arrays have one axis of points and one of machine numbers, and outputs are written."""
    (count, _), scalar = (*outputs, *inputs)[0].shape, (*outputs, *inputs)[0].dtype
    moving = [array for array in inputs if array.strides[0]]
    per_point = scalar.itemsize * sum(array.shape[1] for array in (*moving, *outputs))
    size = max(min(PART_BYTES // max(per_point, 1), count), 1)
    with module.device.current():
        arrays = [Given(module, array) for array in inputs]
        ways = [HostPart(module, arrays, outputs, size, scalar) for _ in range(min(WAYS, -(-count // size)))]
        for number, first in enumerate(range(0, count, size)):
            way = ways[number % len(ways)]
            way.finish()
            way.start(first, min(size, count - first), action)
        for way in ways:
            way.finish()


class Given:
    """An input: points that are copied part by part, or one that all points share, which is copied once."""

    def __init__(self, module: Module, points: Array) -> None:
        self.points, self.numbers = points, points.shape[1]
        self.shared: Memory | None = None
        if not points.strides[0]:
            row = np.ascontiguousarray(points[:1])
            self.shared = Memory(module.device, row.nbytes, "an argument")
            copy_in(self.shared.address, row.ctypes.data, row.nbytes, 0)
            wait(0)


class HostPart:
    """Room for the points of one part here and on the GPU, and a stream in which its work follows one another."""

    def __init__(
        self, module: Module, inputs: Sequence[Given], outputs: Sequence[Array], size: int, scalar: np.dtype[Any]
    ) -> None:
        self.module, self.inputs, self.outputs, self.scalar = module, inputs, outputs, scalar
        moving = [argument.numbers for argument in inputs if argument.shared is None]
        bytes_of = [scalar.itemsize * size * numbers for numbers in (*moving, *(array.shape[1] for array in outputs))]
        self.pinned = [Pinned(module.device, room) for room in bytes_of]
        self.memory = [Memory(module.device, room, "a part of the points") for room in bytes_of]
        self.stream = Stream(module.device)
        self.first, self.count = 0, 0

    def start(self, first: int, count: int, action: str) -> None:
        """Copy the points there, compute them and copy the results back; nothing is waited for."""
        self.first, self.count = first, count
        stream, places, rooms = self.stream.address, [], iter(zip(self.pinned, self.memory, strict=True))
        for argument in self.inputs:
            if argument.shared is not None:
                places.append((argument.shared.address, 0))
                continue
            pinned, memory = next(rooms)
            self._view(pinned, argument.numbers)[...] = argument.points[first : first + count]
            copy_in(memory.address, pinned.address, self._bytes(argument.numbers), stream)
            places.append((memory.address, argument.numbers))
        back = list(rooms)
        numbers = [array.shape[1] for array in self.outputs]
        places += [(memory.address, wide) for (_, memory), wide in zip(back, numbers, strict=True)]
        self.module.launch(count, places, stream, action)
        for (pinned, memory), wide in zip(back, numbers, strict=True):
            copy_out(pinned.address, memory.address, self._bytes(wide), stream)

    def finish(self) -> None:
        """Wait for the results, and put them where they belong."""
        if not self.count:
            return
        wait(self.stream.address)
        for pinned, array in zip(self.pinned[len(self.pinned) - len(self.outputs) :], self.outputs, strict=True):
            array[self.first : self.first + self.count] = self._view(pinned, array.shape[1])
        self.count = 0

    def _bytes(self, numbers: int) -> int:
        return self.scalar.itemsize * self.count * numbers

    def _view(self, pinned: Pinned, numbers: int) -> Array:
        memory = (ctypes.c_char * self._bytes(numbers)).from_address(pinned.address)
        return np.ndarray((self.count, numbers), self.scalar, memoryview(memory))


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


def adding_module(owner: Device, scalar: Lanes) -> Module:
    """Load the function that adds up numbers of points: one thread for each sum."""
    text = "\n".join([*DECLARED, ADD])
    text = filled(text, FIND=FIND, PARAMETERS=PARAMETERS, SCALAR=scalar.type, BYTES=scalar.size)
    return Module(owner, device_assembly(text, owner.architecture), ENTRY)


@dataclass(frozen=True)
class PointSums:
    """Sums of a kernel's results over points: the kernel, the module that adds up, and the numbers of each result."""

    kernel: Module
    adding: Module
    widths: Sequence[int]
    scalar: Lanes

    def __call__(self, inputs: Sequence[Place], targets: Sequence[Memory], count: int, stream: int, use: str) -> None:
        """Add up the results of all points into `targets`; the context must be current."""
        size, owner = self.scalar.size, self.kernel.device
        part = max(1, min(count, SUMMED_BYTES // (size * max(sum(self.widths), 1))))
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
