"""Layouts: what a short batch finds out about arrays of certain shapes and steps, for the next one to begin at once.

What is left to find out is where they are: machine code does that, and sees whether they are aligned and apart.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.errors import WorkspaceError
from codegen.lanes import NumberType
from codegen.machine.batches.batch_run import Task
from codegen.machine.calls.arguments import Array
from codegen.machine.calls.gate import objects_known

KEPT = 1 << 18  # bytes of working memory that are kept from one batch to the next
MOST = 16  # layouts of a kernel


def key_of(layout: str, args: Sequence[Any], out: Any, number: NumberType) -> tuple[Any, ...] | None:
    """Return what batches of one layout have in common; None where numbers have to be converted first.

    >>> from codegen.lanes import FLOAT64
    >>> key_of("points", [np.ones((3, 2))], None, FLOAT64), key_of("points", [[1.0]], None, FLOAT64)
    (('points', True, (3, 2), (16, 8)), None)
    """
    key: list[Any] = [layout, out is None]
    for array in args if out is None else (*args, *given(out)):
        if type(array) is not np.ndarray or array.dtype is not number.dtype:
            return None
        key += (array.shape, array.strides)
    return tuple(key)


def given(out: Any) -> Sequence[Any]:
    """Return the arrays that results are written into."""
    return out if type(out) in (tuple, list) else (out,)


class Layout:
    """Where numbers lie, but for the addresses of the arrays, in a batch that runs at once, on one thread."""

    __slots__ = ("_free", "_kept", "_number", "_shapes", "code")

    def __init__(self, task: Task, results: Sequence[Array], number: NumberType, *, fresh: bool) -> None:
        self.code, self._number = task.code, number
        self._shapes = [array.shape for array in results] if fresh else None
        buffer, address = task.buffer()
        words = [task.code.address, *task.shape, address, task.count, int(fresh), number.dtype.alignment, *task.words]
        table = ctypes.create_string_buffer(struct.pack(f"{len(words)}q", *words))
        self._kept = (buffer, table)
        self._free = [ctypes.addressof(table)]

    def run(self, args: Sequence[Array], out: Any) -> list[Array] | None:
        """Return the results; None where these arrays have to be copied, or another thread is at work."""
        try:
            table = self._free.pop()
        except IndexError:
            return None
        try:
            shapes, dtype = self._shapes, self._number.dtype
            results = list(given(out)) if shapes is None else [np.empty(shape, dtype) for shape in shapes]
            failed = self.code.at_once(table, (*args, *results))
        except MemoryError:
            return None
        finally:
            self._free.append(table)
        if failed == 1:
            raise WorkspaceError("a batch of points", why="no memory for the kernel's workspace")
        return None if failed else results


def layout_of(task: Task, arrays: Sequence[Array], number: NumberType, *, fresh: bool) -> Layout | None:
    """Return the layout of a batch; None where numbers were copied, or its memory is too much to be kept."""
    where = zip(task.points, arrays, strict=True)
    if task.bytes > KEPT or not objects_known() or any(made.ctypes.data != array.ctypes.data for made, array in where):
        return None
    return Layout(task, arrays[task.shape[0] :], number, fresh=fresh)
