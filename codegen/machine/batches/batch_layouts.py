"""Remember the layout of a short batch, so that the next one starts at once.

The rest is the addresses: machine code reads them, and checks that they are aligned and apart.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.errors import WorkspaceError
from codegen.lanes import NumberType
from codegen.machine.batches.batch_run import Room, Task, most_threads, parallel
from codegen.machine.batches.batch_text import HEAD
from codegen.machine.calls.arguments import Array
from codegen.machine.calls.gate import objects_known

KEPT = 1 << 18  # bytes of working memory that are kept from one batch to the next, for each thread
MOST = 16  # layouts of a kernel


def key_of(layout: str, threads: int, args: Sequence[Any], out: Any, number: NumberType) -> tuple[Any, ...] | None:
    """Return a key shared by batches of one layout; None where numbers have to be converted first.

    >>> from codegen.lanes import FLOAT64
    >>> key_of("points", 1, [np.ones((3, 2))], None, FLOAT64), key_of("points", 1, [[1.0]], None, FLOAT64)
    (('points', 1, True, (3, 2), (16, 8)), None)
    """
    key: list[Any] = [layout, threads, out is None]
    for array in args if out is None else (*args, *as_sequence(out)):
        if type(array) is not np.ndarray or array.dtype is not number.dtype:
            return None
        key += (array.shape, array.strides)
    return tuple(key)


def as_sequence(out: Any) -> Sequence[Any]:
    """Return the arrays that results are written into."""
    return out if type(out) in (tuple, list) else (out,)


class BatchLayout:
    """Where numbers lie, but for the addresses of the arrays, in a batch that runs at once."""

    __slots__ = ("_free", "_number", "_points", "_room", "_shape", "_shapes", "_table", "_threads", "code")

    def __init__(self, task: Task, room: Room, results: Sequence[Array], number: NumberType, *, fresh: bool) -> None:
        self.code, self._room, self._number = task.code, room, number
        self._shape, self._points = task.shape, (0, task.count)
        self._shapes = [array.shape for array in results] if fresh else None
        words = [
            task.code.address,
            *task.shape,
            room.buffer,
            task.count,
            int(fresh),
            number.dtype.alignment,
            room.shared,
        ]
        self._table = ctypes.create_string_buffer(struct.pack(f"{len(words + task.words)}q", *words, *task.words))
        self._free, self._threads = [ctypes.addressof(self._table)], 1

    @property
    def count(self) -> int:
        """How many points there are."""
        return self._points[1]

    def run(self, args: Sequence[Array], out: Any) -> list[Array] | None:
        """Return the results; None where these arrays have to be copied, or another thread is at work."""
        try:
            table = self._free.pop()
        except IndexError:
            return None
        try:
            shapes, dtype = self._shapes, self._number.dtype
            results = list(as_sequence(out)) if shapes is None else [np.empty(shape, dtype) for shape in shapes]
            failed = self._run(table, (*args, *results))
        except MemoryError:
            return None
        finally:
            self._free.append(table)
        if failed == 1:
            raise WorkspaceError("a batch of points", why="no memory for the kernel's workspace")
        return None if failed else results

    def _run(self, table: int, arrays: tuple[Array, ...]) -> int:
        """Run all points, on as many threads as are worth it; where that is not known yet, time them."""
        code, count = self.code, self._points[1]
        threads = code.timing.threads(count, self._room.threads)
        if threads > 1:
            if threads != self._threads:
                code.share(self._room, table + 8 * HEAD, self._shape, self._points, threads)
                self._threads = threads
            return code.driver.at_once(table, arrays, parallel(threads))
        if not code.timing.needs(count):
            return code.driver.at_once(table, arrays, 0)
        start = time.perf_counter()
        failed = code.driver.at_once(table, arrays, 0)
        if not failed:
            code.timing.note(count, time.perf_counter() - start)
        return failed


def layout_of(
    task: Task, threads: int, arrays: Sequence[Array], number: NumberType, *, fresh: bool
) -> BatchLayout | None:
    """Return the layout of a batch on up to `threads` threads; None where numbers were copied or memory is not kept."""
    where = zip(task.points, arrays, strict=True)
    if not objects_known() or any(copied.ctypes.data != array.ctypes.data for copied, array in where):
        return None
    room = task.room(most_threads(task, threads))
    if room.memory.nbytes > KEPT * room.threads:
        return None
    return BatchLayout(task, room, arrays[task.shape[0] :], number, fresh=fresh)
