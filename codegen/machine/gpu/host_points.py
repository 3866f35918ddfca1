"""Run NumPy arrays on a GPU in parts: copy, compute and copy back overlap."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import Array
from codegen.machine.gpu.driver import Memory, Module, Pinned, Stream, copy_in, copy_out, wait

PART_BYTES = 1 << 25  # of arguments and results of one part
WAYS = 2  # parts that are under way at once


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

    shared: Memory | None
    points: Array
    numbers: Any

    def __init__(self, module: Module, points: Array) -> None:
        self.points, self.numbers, self.shared = points, points.shape[1], None
        if not points.strides[0]:
            row = np.ascontiguousarray(points[:1])
            self.shared = Memory(module.device, row.nbytes, "an argument")
            copy_in(self.shared.address, row.ctypes.data, row.nbytes, 0)
            wait(0)


class HostPart:
    """Room for the points of one part here and on the GPU, and a stream in which its work follows one another."""

    count: int
    module: Module
    given: Sequence[Given]
    outputs: Sequence[Array]
    scalar: np.dtype[Any]
    first: int

    def __init__(
        self, module: Module, inputs: Sequence[Given], outputs: Sequence[Array], size: int, scalar: np.dtype[Any]
    ) -> None:
        self.module, self.inputs, self.outputs, self.scalar = module, inputs, outputs, scalar
        moving = [argument.numbers for argument in inputs if argument.shared is None]
        bytes_of = [scalar.itemsize * size * numbers for numbers in (*moving, *(array.shape[1] for array in outputs))]
        self.pinned: list[Pinned] = [Pinned(module.device, room) for room in bytes_of]
        self.memory: list[Memory] = [Memory(module.device, room, "a part of the points") for room in bytes_of]
        self.stream: Stream = Stream(module.device)
        self.first, self.count = 0, 0

    def start(self, first: int, count: int, action: str) -> None:
        """Copy the points there, compute them and copy the results back; nothing is waited for."""
        self.first, self.count = first, count
        stream, places, rooms = self.stream.handle, [], iter(zip(self.pinned, self.memory, strict=True))
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
        wait(self.stream.handle)
        for pinned, array in zip(self.pinned[len(self.pinned) - len(self.outputs) :], self.outputs, strict=True):
            array[self.first : self.first + self.count] = self._view(pinned, array.shape[1])
        self.count = 0

    def _bytes(self, numbers: int) -> int:
        return self.scalar.itemsize * self.count * numbers

    def _view(self, pinned: Pinned, numbers: int) -> Array:
        memory = (ctypes.c_char * self._bytes(numbers)).from_address(pinned.address)
        return np.ndarray((self.count, numbers), self.scalar, memoryview(memory))
