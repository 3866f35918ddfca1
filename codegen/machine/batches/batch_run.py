"""Run a batch at once, or in slices of about 50 ms with progress and interrupts between them.

A batch on threads is cut into units, which the calling thread and those of `codegen.functions.workers` take one by one.
Earlier times of the same code decide how many threads there are.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np

from codegen.code_memory import MachineCode
from codegen.engine import Library, Once, compile_text
from codegen.errors import WorkspaceError
from codegen.functions.workers import available, parallel_address
from codegen.lanes import Lanes
from codegen.machine.batches.batch_text import IN_PLACE, OWN, driver_text
from codegen.machine.calls.arguments import Array

Progress = Callable[[int, int], object]

SLICE = 0.05  # seconds between two looks at progress and Ctrl-C
FIRST_SLICE = 1e-3  # aim of the first slice, whose length is an estimate; later ones grow with measured times
GROWTH = 16.0
BRIEF = 0.01  # seconds of a batch that runs at once, where the time of its points is known
# Bytes of results from which on whole lines are written one after the other, first to the nearest cache: a store that
# meets two lines costs more than the copy, in the caches behind it and in memory; where no store does, memory alone.
COPIED, COPIED_LINES = 1 << 15, 1 << 20
FETCHED = 1 << 13  # bytes of the results of a block: if they are no more, their lines are fetched and written at once
STREAMED = 1 << 25  # bytes; of larger arrays, nothing is left in the caches when they are read again
ALIGNMENT = 64
# Nanoseconds that a thread spends to wake another one: 13 us where machines are virtual, and the other then begins 12
# us later. With n threads for more than n^2 of them, the time of all is less than that of fewer.
WAKING = 10_000.0
SURE = 1e6  # nanoseconds of a batch that threads share even if its points were timed once only, in cold caches
FEWEST = 8  # units of a thread: at the end each waits for the last one
LONGEST = 2e5  # nanoseconds of a unit
LOOKS = 3
ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p, *[ctypes.c_int64] * 2
)
ON_THREADS = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)


class Timing:
    """Nanoseconds of a point on one thread: an estimate at first, then the least measured time.

    Batches on several threads may write at the same time: one measurement is lost.

    >>> timing = Timing(50.0)
    >>> timing.note(1000, 20e-6)
    >>> round(timing.nanoseconds), timing.threads(1000, 4), timing.threads(10**6, 4)
    (20, 1, 4)
    """

    __slots__ = ("_largest", "_looks", "nanoseconds")

    def __init__(self, nanoseconds: float) -> None:
        self.nanoseconds = nanoseconds
        self._largest = self._looks = 0

    @property
    def known(self) -> bool:
        """Whether points were timed."""
        return self._largest > 0

    def needs(self, count: int) -> bool:
        """Whether a batch of `count` points is to be timed: short batches predict long ones badly."""
        return self._looks < LOOKS or count > 2 * self._largest

    def note(self, count: int, seconds: float) -> None:
        """Record the time of `count` points."""
        if count > 2 * self._largest:
            self._looks = 0
        measured = 1e9 * seconds / count
        self.nanoseconds = min(self.nanoseconds, measured) if self.known else measured
        self._largest, self._looks = max(self._largest, count), self._looks + 1

    def threads(self, count: int, most: int) -> int:
        """Return how many threads share `count` points: one, until their time is known."""
        work = count * self.nanoseconds
        if most == 1 or not self.known or (work < SURE and self.needs(count)):
            return 1
        return max(1, min(most, isqrt(int(work / WAKING))))

    def unit(self, count: int, threads: int, width: int) -> int:
        """Return how many of `count` points make a unit: whole blocks.

        >>> Timing(10.0).unit(4096, 2, 8)
        256
        """
        blocks = -(-count // width)
        units = max(FEWEST * threads, int(count * self.nanoseconds / LONGEST))
        return width * -(-blocks // units)


class Driver(NamedTuple):
    """The functions that run points with some lanes."""

    library: Library
    points: Callable[..., int]
    on_threads: Callable[[int, int], int]


class Code:
    """What runs a block of points: a kernel's machine code, its lanes, and the time of a point, estimated at first."""

    library: MachineCode
    lanes: Lanes

    def __init__(self, library: MachineCode, lanes: Lanes, nanoseconds: float, *, of_blocks: bool = False) -> None:
        self.library, self.lanes, self.timing = library, lanes, Timing(nanoseconds)
        self.address: int = library.addresses["kernel"]
        self.driver: Driver = _driver(lanes, of_blocks)
        self.number: int = lanes.width * lanes.size  # bytes of one number of a block
        self.unit: int = max(self.number * lanes.width, ALIGNMENT)  # whole squares of lanes are moved


@Once
def _driver(lanes: Lanes, of_blocks: bool) -> Driver:
    library = compile_text(driver_text(lanes, of_blocks), ("batch", "batch_on_threads"), {}, 2)
    points, on_threads = library.addresses.values()
    return Driver(library, ENTRY(points), ON_THREADS(on_threads))


class Room:
    """Working memory of a batch on up to `threads` threads: shared words, and then a buffer for each."""

    def __init__(self, size: int, threads: int) -> None:
        self.size, self.threads = _up(size, ALIGNMENT), threads
        shared = _up(8 * (OWN + 2 * threads), ALIGNMENT)
        self.memory: Array = np.empty(shared + threads * self.size + ALIGNMENT, dtype=np.int8)
        self.shared: int = _up(self.memory.ctypes.data, ALIGNMENT)
        self.buffer: int = self.shared + shared


class Task:
    """A batch that is ready to run: each call of `run` computes some of its points.

    Every thread has a buffer of its own; inputs and outputs are described by one table that all threads read.
    """

    code: Code
    count: int

    def __init__(self, code: Code, inputs: list[Array], outputs: list[Array], count: int) -> None:
        self.code, self.count = code, count
        self.points: tuple[Array, ...] = (*inputs, *outputs)
        self.shape: tuple[int, int] = (len(inputs), len(outputs))
        self.words: list[int] = []
        self.bytes: int = _up(8 * len(self.points), ALIGNMENT)
        for k, points in enumerate(self.points):
            self.describe(points, result=k >= len(inputs))
        self.table = ctypes.create_string_buffer(struct.pack(f"{len(self.words)}q", *self.words))

    def describe(self, points: Array, *, result: bool) -> None:
        """Add an array to the table, and the memory that its blocks need to the buffer."""
        code, address, numbers = self.code, points.ctypes.data, points.shape[1]
        low, high = (end - address for end in np.lib.array_utils.byte_bounds(points))
        if points.ndim == 3:
            self.words += [address, points.strides[0] // code.lanes.width, IN_PLACE, numbers, 0, 0, 0, low, high]
            return
        room = _up(numbers * code.number, code.unit)
        rows, step = _in_rows(points, code.lanes, result=result) * room, _element_step(points, code.lanes)
        self.words += [address, points.strides[0], step, numbers, self.bytes, rows and self.bytes + rows]
        row = points.strides[0]
        fetched = row if result and not rows and _is_fetched(points, code.lanes) else 0
        self.words += [int(points.nbytes > STREAMED) if rows else fetched, low, high]
        self.bytes += room + rows

    def run(self, room: Room, first: int, count: int, threads: int = 1) -> None:
        """Compute some points; WorkspaceError if the kernel finds no memory."""
        code = self.code
        if threads == 1:
            failed = code.driver.points(code.address, self.table, *self.shape, room.buffer, first, count)
        else:
            unit = code.timing.unit(count, threads, code.lanes.width)
            where = code.address, ctypes.addressof(self.table), *self.shape, room.buffer, room.size, first, count
            words = struct.pack("12q", *where, unit, -(-count // unit), threads, 0)
            ctypes.memmove(room.shared, words, len(words))
            failed = code.driver.on_threads(parallel_address(), room.shared)
        if failed:
            raise WorkspaceError("a batch of points", why="no memory for the kernel's workspace")


def _element_step(points: Array, lanes: Lanes) -> int:
    """Bytes between numbers of a point; single numbers are moved point by point, not as squares."""
    if points.shape[1] == 1:
        return lanes.size if lanes.width == 1 else 0
    return points.strides[1]


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _is_fetched(points: Array, lanes: Lanes) -> bool:
    """Whether the lines of a block of results are fetched before they are computed."""
    return lanes.width > 1 and points.flags.c_contiguous and points.strides[0] * lanes.width <= FETCHED < points.nbytes


def _in_rows(points: Array, lanes: Lanes, *, result: bool) -> bool:
    """Whether the rows of a block of a dense array go through the buffer."""
    if lanes.width == 1 or points.shape[1] == 1 or not points.flags.c_contiguous:
        return False
    if result and points.nbytes <= STREAMED and _is_fetched(points, lanes):
        return False
    whole_lines = points.ctypes.data % ALIGNMENT == points.strides[0] % ALIGNMENT == 0
    return points.nbytes > min(STREAMED, (COPIED_LINES if whole_lines else COPIED) if result else STREAMED)


def run_task(task: Task, threads: int = 1, progress: Progress | None = None) -> None:
    """Compute all points on up to `threads` threads; no result depends on their number, nor on the slices.

    Between slices, the calling thread reports `progress(points done, points)` and takes Ctrl-C.
    """
    timing, width, count = task.code.timing, task.code.lanes.width, task.count
    room, at = Room(task.bytes, min(threads, -(-count // width)) if available() else 1), 0
    size = float(count)
    if progress is not None or count * timing.nanoseconds >= 1e9 * (BRIEF if timing.known else FIRST_SLICE):
        size = 1e9 * (SLICE if timing.known else FIRST_SLICE) / timing.nanoseconds
    while at < count:
        now = min(_up(max(int(size), 1), width), count - at)
        shared = timing.threads(now, room.threads)
        start = time.perf_counter()
        task.run(room, at, now, shared)
        seconds = time.perf_counter() - start
        if shared == 1:
            timing.note(now, seconds)
        at += now
        size = max(1.0, size * min(GROWTH, SLICE / max(seconds, 1e-9)))
        if progress is not None:
            progress(at, count)
