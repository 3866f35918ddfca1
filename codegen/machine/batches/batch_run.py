"""Running a batch: slices of about 50 ms, on one thread or several, with progress and interruption between slices."""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from codegen.code_memory import MachineCode
from codegen.engine import Library, Once, compile_text
from codegen.errors import WorkspaceError
from codegen.lanes import Lanes
from codegen.machine.batches.batch_text import IN_PLACE, driver_text
from codegen.machine.calls.arguments import Array

Progress = Callable[[int, int], object]
Buffer: TypeAlias = tuple[Array, int]

SLICE = 0.05  # seconds between two looks at progress and Ctrl-C
FIRST_SLICE = 1e-3  # aim of the first slice, whose length is an estimate; later ones grow by what is measured
GROWTH = 16.0
# Bytes of results from which on whole lines are written one after the other, first to the nearest cache: a store that
# meets two lines costs more than the copy, in the caches behind it and in memory; where no store does, memory alone.
COPIED, COPIED_LINES = 1 << 15, 1 << 20
STREAMED = 1 << 25  # bytes; of larger arrays, nothing is left in the caches when they are read again
ALIGNMENT = 64
ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p, *[ctypes.c_int64] * 2
)
AT_ONCE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object)


class Code:
    """What runs a block of points: a kernel's machine code, its lanes, and an estimate of its nanoseconds per point."""

    library: MachineCode
    lanes: Lanes
    nanoseconds: float
    driver: Callable[..., int]
    at_once: Callable[[int, tuple[Array, ...]], int]

    def __init__(self, library: MachineCode, lanes: Lanes, nanoseconds: float) -> None:
        self.library, self.lanes, self.nanoseconds = library, lanes, nanoseconds
        self.address: int = library.addresses["kernel"]
        _, self.driver, self.at_once = _driver(lanes)
        self.number: int = lanes.width * lanes.size  # bytes of one number of a block
        self.unit: int = max(self.number * lanes.width, ALIGNMENT)  # whole squares of lanes are moved


@Once
def _driver(lanes: Lanes) -> tuple[Library, Callable[..., int], Callable[[int, tuple[Array, ...]], int]]:
    library = compile_text(driver_text(lanes), ("batch", "batch_at_once"), {}, 2)
    return library, ENTRY(library.addresses["batch"]), AT_ONCE(library.addresses["batch_at_once"])


class Task:
    """A batch that is ready to run: each call of `run` computes some of its points, on any thread.

    Every thread brings a buffer of its own; inputs and outputs are described by one table that all threads read.
    """

    code: Code
    count: int

    def __init__(self, code: Code, inputs: list[Array], outputs: list[Array], count: int) -> None:
        self.code, self.count = code, count
        self.points: tuple[Array, ...] = (
            *inputs,
            *outputs,
        )  # kept: a thread may outlive the call by a slice, after a second Ctrl-C
        self.shape: tuple[int, int] = (len(inputs), len(outputs))
        self.words: list[int] = []
        self.bytes: int = _up(8 * len(self.points), ALIGNMENT)
        for k, points in enumerate(self.points):
            self.describe(points, result=k >= len(inputs))
        self.table: bytes = struct.pack(f"{len(self.words)}q", *self.words)

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
        self.words += [int(points.nbytes > STREAMED), low, high]
        self.bytes += room + rows

    def buffer(self) -> Buffer:
        """Return the working memory of one thread, and its aligned address."""
        memory = np.empty(self.bytes + ALIGNMENT, dtype=np.int8)
        return memory, _up(memory.ctypes.data, ALIGNMENT)

    def run(self, buffer: Buffer, first: int, count: int) -> None:
        """Compute some points; WorkspaceError if the kernel finds no memory."""
        code = self.code
        if code.driver(code.address, self.table, *self.shape, buffer[1], first, count):
            raise WorkspaceError("a batch of points", why="no memory for the kernel's workspace")


def _element_step(points: Array, lanes: Lanes) -> int:
    """Bytes from a number of a point to the next; single numbers are moved point by point, not as squares."""
    if points.shape[1] == 1:
        return lanes.size if lanes.width == 1 else 0
    return points.strides[1]


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _in_rows(points: Array, lanes: Lanes, *, result: bool) -> bool:
    """Whether the rows of a block of a dense array go through the buffer."""
    if lanes.width == 1 or points.shape[1] == 1 or not points.flags.c_contiguous:
        return False
    whole_lines = points.ctypes.data % ALIGNMENT == points.strides[0] % ALIGNMENT == 0
    return points.nbytes > min(STREAMED, (COPIED_LINES if whole_lines else COPIED) if result else STREAMED)


class _Worker:
    """One thread's share of the points, and how far it is."""

    def __init__(self, task: Task, first: int, last: int, stop: threading.Event) -> None:
        self.task, self.first, self.at, self.last, self.stop = task, first, first, last, stop
        self.error: BaseException | None = None

    def slices(self) -> Iterator[None]:
        """Compute slice after slice; the results do not depend on where the slices end."""
        task, buffer = self.task, self.task.buffer()
        size = max(FIRST_SLICE * 1e9 / task.code.nanoseconds, 1.0)
        while self.at < self.last and not self.stop.is_set():
            count = min(_up(int(size), task.code.lanes.width), self.last - self.at)
            start = time.perf_counter()
            task.run(buffer, self.at, count)
            self.at += count
            seconds = time.perf_counter() - start
            size = max(1.0, size * min(GROWTH, SLICE / max(seconds, 1e-9)))
            yield

    def work(self) -> None:
        """Compute the whole share on a thread; an error is kept for the thread that asked, and stops the others."""
        try:
            for _ in self.slices():
                pass
        except BaseException as error:
            self.error = error
            self.stop.set()


def slices_of(task: Task) -> int:
    """Return how many slices a batch has at least."""
    return 1 + int(task.count * task.code.nanoseconds * 1e-9 / FIRST_SLICE)


def run_task(task: Task, threads: int = 1, progress: Progress | None = None) -> None:
    """Compute all points; the share of each thread is decided by the number of points alone.

    The calling thread works too, reports `progress(points done, points)`, and takes Ctrl-C. Whatever it raises stops
    the others at the end of their slices. A thread has at least one slice to do; a batch of one runs at once.
    """
    slices = slices_of(task)
    if progress is None and slices == 1:
        task.run(task.buffer(), 0, task.count)
        return
    width = task.code.lanes.width
    blocks = -(-task.count // width)
    threads = max(min(threads, blocks, slices), 1)
    borders = [min(width * (blocks * k // threads), task.count) for k in range(threads + 1)]
    stop = threading.Event()
    workers = [_Worker(task, first, last, stop) for first, last in pairwise(borders)]
    reported = 0

    def report() -> None:
        nonlocal reported
        done = sum(worker.at - worker.first for worker in workers)
        if progress is not None and done > reported:
            reported = done
            progress(done, task.count)

    with _running(workers[1:], stop) as others:
        for _ in workers[0].slices():
            report()
        for thread in others:
            while thread.is_alive() and not stop.is_set():
                thread.join(SLICE)
                report()
        if not stop.is_set():
            report()
    for worker in workers:
        if worker.error is not None:
            raise worker.error


@contextmanager
def _running(workers: list[_Worker], stop: threading.Event) -> Iterator[list[threading.Thread]]:
    """Threads at work; they are stopped and waited for whatever happens."""
    threads = [threading.Thread(target=worker.work, daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        yield threads
    except BaseException:
        stop.set()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
