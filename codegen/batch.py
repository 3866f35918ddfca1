"""Batches: one kernel at many points, several side by side in vector registers where that is faster.

The numbers of a point never depend on where it stands, on the number of lanes or on the number of threads: every lane
does what the kernel for one point does, operation by operation.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codegen.arguments import Array, as_numbers, check_output, split_out
from codegen.batch_points import input_points, leading_axes, output_points
from codegen.batch_run import Code, Progress, Task, run_task
from codegen.emit import Form, emit
from codegen.engine import compile_text, vector_bits
from codegen.errors import ArgumentError
from codegen.lanes import SCALAR, Lanes
from codegen.options import Options
from codegen.prepare import prepare
from codegen.program import Output, Program
from codegen.schedule import CHUNK, schedule

LARGEST = 100_000  # operations; beyond this a second compilation costs more than most batches take
NANOSECONDS = {"call": 20.0, "div": 1.6, "sqrt": 2.4}  # others 0.25


class Batch:
    """A kernel at many points; the code for several points side by side is made when it is first needed."""

    __slots__ = ("_code", "_lock", "_operations", "_point", "options", "program")

    def __init__(self, program: Program, options: Options, address: int, operations: Mapping[str, int]) -> None:
        self.program, self.options = program, options
        self._point, self._operations = address, operations
        self._lock = threading.Lock()
        self._code: Code | None = None

    def __call__(self, args: Sequence[Any], out: Any, threads: int, progress: Progress | None) -> list[Any]:
        """Return the results, one array per output."""
        inputs, outputs = self.program.arguments, self.program.outputs
        if len(args) != len(inputs):
            raise ArgumentError(f"{len(args)} arguments", why=f"the kernel takes {len(inputs)}")
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
            raise ArgumentError(f"threads={threads!r}", do="give a number of threads, 1 or more")
        arrays = [as_numbers(value, array, k) for k, (value, array) in enumerate(zip(args, inputs, strict=True))]
        leading = leading_axes(arrays, inputs)
        shapes = [leading + output.shape for output in outputs]
        results = [np.empty(shape) for shape in shapes] if out is None else _given(out, shapes)
        self._run(arrays, results, leading, int(threads), progress)
        return results

    def code(self) -> Code:
        """Return what runs the points, compiled at the first call."""
        with self._lock:
            if self._code is None:
                self._code = self._make(choose_lanes(self.program, self.options, self._operations))
            return self._code

    def _make(self, lanes: Lanes) -> Code:
        nanoseconds = sum(NANOSECONDS.get(kind, 0.25) * count for kind, count in self._operations.items())
        if lanes == SCALAR:
            return Code(self._point, lanes, nanoseconds)
        prepared = prepare(self.program, self.options)
        plan = schedule(prepared.fused, self.options.chunk or CHUNK)
        emitted = emit(prepared.program, prepared.fused, plan, Form(lanes=lanes))
        library = compile_text(emitted.text, ("kernel",), emitted.addresses, self.options.level)
        return Code(library.addresses["kernel"], lanes, nanoseconds / lanes.width, library)

    def _run(
        self, arrays: list[Array], results: list[Array], leading: tuple[int, ...], threads: int,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        program = self.program
        count = int(np.prod(leading))
        if not count:
            return
        inputs = [input_points(array, given, leading) for array, given in zip(arrays, program.arguments, strict=True)]
        outputs = []
        for k, (array, given) in enumerate(zip(results, program.outputs, strict=True)):
            outputs.append(output_points(array, given, leading, [*arrays, *results[:k]]))
        run_task(Task(self.code(), inputs, outputs, count), threads, progress)
        for array, points in zip(results, outputs, strict=True):
            if not np.may_share_memory(array, points.flat):
                array[...] = points.flat.reshape(array.shape)


def choose_lanes(program: Program, options: Options, operations: Mapping[str, int]) -> Lanes:
    """Return how many points the code for a batch computes side by side; 1 where moving the numbers costs more."""
    widest = options.lanes or vector_bits() // 64
    if program.seeded or (options.lanes is None and sum(operations.values()) > LARGEST):
        return SCALAR
    return Lanes(widest)


def _given(out: Any, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    arrays = split_out(out, len(shapes))
    return [
        check_output(value, Output(shape, ()), "out" if len(shapes) == 1 else f"out[{k}]")
        for k, (value, shape) in enumerate(zip(arrays, shapes, strict=True))
    ]
