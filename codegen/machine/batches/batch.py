"""Run one kernel at many points, several side by side in vector registers where that is faster.

The numbers of a point never depend on where it stands, on the number of lanes or on the number of threads: every lane
does what the kernel for one point does, operation by operation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import inf, prod
from typing import Any, Literal, get_args

import numpy as np

from codegen.code_memory import MachineCode
from codegen.emission.emit import Form
from codegen.emission.schedule import CHUNK
from codegen.errors import ArgumentError
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.lanes import FLOAT64, Lanes, NumberType
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.machine.batches.array_call import array_call
from codegen.machine.batches.batch_blocks import block_arrays, in_blocks
from codegen.machine.batches.batch_lanes import (
    choose_lanes,
    lanes_of_loops,
    nanoseconds_alone,
    nanoseconds_moving,
    takes_blocks,
)  # fmt: skip
from codegen.machine.batches.batch_run import Code, Progress, Task, run_task
from codegen.machine.batches.batch_text import WORDS
from codegen.machine.calls.arguments import Array, as_numbers, results_of
from codegen.machine.kernel_text import planned
from codegen.machine.storage.program_cache import ObjectCode, ProgramCache
from codegen.options import LEVELS, check_whole
from codegen.pricing.price_table import SECONDS
from codegen.stages import stage


def signature(inputs: Sequence[Input], outputs: Sequence[Output]) -> str:
    """Return how a batch broadcasts, in NumPy's notation.

    >>> signature([Input("x", (3,)), Input("s", ())], [Output((3, 3), ())])
    '(3),()->(3,3)'
    """

    def shapes(arrays: Sequence[Input | Output]) -> str:
        return ",".join(f"({','.join(map(str, array.shape))})" for array in arrays)

    return f"{shapes(inputs)}->{shapes(outputs)}"


def leading_axes(arrays: Sequence[Any], declared: Sequence[Input]) -> tuple[int, ...]:
    """Return the common shape of the axes in front of the declared ones.

    ArgumentError for an array that does not end in its declared shape, or leading axes that do not broadcast.

    >>> leading_axes([np.zeros((4, 1, 2)), np.zeros(5)], [Input("x", (2,)), Input("s", ())])
    (4, 5)
    """
    leading: list[tuple[int, ...]] = []
    for k, (array, form) in enumerate(zip(arrays, declared, strict=True)):
        axes = array.ndim - len(form.shape)
        if axes < 0 or array.shape[axes:] != form.shape:
            raise ArgumentError(
                f"shape {array.shape}",
                where=f"argument {k} ({form.name})",
                why=f"its last axes are not {form.shape}, which the kernel was compiled for",
            )
        leading.append(array.shape[:axes])
    if leading and all(axes in ((), leading[0]) for axes in leading):
        return leading[0]
    try:
        return np.broadcast_shapes(*leading)
    except ValueError as error:
        shapes = ", ".join(map(str, leading))
        raise ArgumentError(f"leading axes {shapes}", why="they do not broadcast against each other") from error


def input_points(value: Array, declared: Input, leading: tuple[int, ...]) -> Array:
    """Return an input with one axis of points and one of machine numbers, without a copy where steps are regular.

    >>> input_points(np.zeros((4, 6))[::2, ::3], Input("x", (2,)), (2,)).strides
    (96, 24)
    """
    aligned = value if value.flags.aligned else value.copy()
    own = aligned.shape[: aligned.ndim - len(declared.shape)]
    rows = aligned.reshape(*own, declared.size)
    rows = _machine_numbers(rows if _parts_together(rows) else np.ascontiguousarray(rows))
    spread = rows if own == leading else np.broadcast_to(rows, (*leading, rows.shape[-1]))
    return spread if spread.ndim == 2 else spread.reshape(prod(leading), rows.shape[-1])


def points_of(value: Array, declared: Output, leading: tuple[int, ...]) -> Array | None:
    """Return a view of a result with one axis of points and one of machine numbers, None where steps are irregular.

    >>> result = np.zeros((3, 2, 2))
    >>> view = points_of(result, Output((2, 2), ()), (3,))
    >>> view.shape, view.base is result, points_of(np.zeros((3, 4, 4))[:, :2, :2], Output((2, 2), ()), (3,))
    ((3, 4), True, None)
    """
    flat = value.reshape(prod(leading), declared.size)
    regular = value.flags.aligned and np.may_share_memory(flat, value) and _parts_together(flat)
    return _machine_numbers(flat) if regular or not value.size else None


def batch_arrays(
    program: Program | RolledProgram, number: NumberType, args: Sequence[Any], out: Any
) -> tuple[list[Array], list[Array], tuple[int, ...]]:
    """Return arguments as arrays, arrays for the results, and the axes of points; ArgumentError where they do not fit.

    >>> from codegen.lanes import FLOAT64
    >>> program = Program([], [], {}, (Input("x", (3,)),), (Output((), ()),))
    >>> arrays, results, leading = batch_arrays(program, FLOAT64, [np.ones((5, 3))], None)
    >>> arrays[0].shape, results[0].shape, leading
    ((5, 3), (5,), (5,))
    """
    inputs, outputs = program.arguments, program.outputs
    if len(args) != len(inputs):
        raise ArgumentError(f"{len(args)} arguments", why=f"the kernel takes {len(inputs)}")
    arrays = [as_numbers(value, array, k, number) for k, (value, array) in enumerate(zip(args, inputs, strict=True))]
    leading = leading_axes(arrays, inputs)
    shapes = [leading + output.shape for output in outputs]
    return arrays, results_of(out, shapes, number, f"{prod(leading)} points of {program.name}"), leading


def in_points(
    program: Program | RolledProgram,
    arrays: list[Array],
    results: list[Array],
    leading: tuple[int, ...],
    *,
    fresh: bool,
) -> tuple[list[Array], list[Array], list[tuple[Array, Array]]]:
    """Return inputs and outputs with one axis of points and one of machine numbers.

    The third list has results without such a view, or with a possible overlap, and the arrays computed in their place.
    """
    inputs = [input_points(array, form, leading) for array, form in zip(arrays, program.arguments, strict=True)]
    outputs, beside = [], []
    for k, (array, form) in enumerate(zip(results, program.outputs, strict=True)):
        points = None if not fresh and overlaps(array, [*arrays, *results[:k]]) else points_of(array, form, leading)
        if points is None:
            points = points_of(np.empty(array.shape, array.dtype), form, leading)
            assert points is not None
            beside.append((array, points))
        outputs.append(points)
    return inputs, outputs, beside


def put_back(beside: Sequence[tuple[Array, Array]]) -> None:
    """Copy results that were computed elsewhere into their arrays."""
    for array, points in beside:
        array[...] = points.view(array.dtype).reshape(array.shape)


def overlaps(value: Array, others: Sequence[Array]) -> bool:
    """Whether an array may share memory with others."""
    return any(np.may_share_memory(value, other) for other in others)


def _parts_together(flat: Array) -> bool:
    """Whether the machine numbers of a point are evenly spaced: the parts of complex numbers are neighbours."""
    return flat.dtype.kind != "c" or flat.shape[-1] == 1 or flat.strides[-1] == flat.itemsize


def _machine_numbers(flat: Array) -> Array:
    return flat.view(np.float64) if flat.dtype.kind == "c" else flat


Arrangement = Literal["points", "blocks"]  # one point after the other, or points side by side
ARRANGEMENTS: tuple[str, ...] = get_args(Arrangement)


ArrayCall = Callable[..., Any] | None
Places = tuple[list[Array], list[Array], list[tuple[Array, Array]]]  # of inputs, of outputs, and see `in_points`
PATIENCE = 0.1  # of the seconds to compile is spent on points one by one before: a small batch is never kept waiting


class Batch:
    """A kernel at many points; the code for several side by side is compiled after enough points.

    Until then, points run one by one; with accuracy "fast", where that would change digits, it is compiled at once.
    """

    def __init__(
        self,
        source: ProgramCache,
        operations: Mapping[str, int],
        listing: Callable[[str], AbstractContextManager[object]],
    ) -> None:
        self.program_cache = source
        self.program, self.options = program, options = source.program, source.options
        self.nanoseconds: float = nanoseconds_alone(program, operations)
        self._lanes: Lanes | None = None
        if not isinstance(program, RolledProgram):
            self._lanes = choose_lanes(program, options, operations)
        self._again, self._lock = listing, threading.Lock()
        self._code: Code | None = None
        self._on_arrays: ArrayCall = None  # made when a batch has run
        at_once = options.lanes is not None or options.accuracy == "fast"
        seconds = SECONDS["kernel"] + SECONDS["emitted"] * sum(operations.values())
        self._patience = np.array([self.nanoseconds, 0.0 if at_once else 1e9 * PATIENCE * seconds])

    def __call__(
        self,
        point: MachineCode,
        args: Sequence[Any],
        out: Any,
        threads: int,
        progress: Progress | None,
        form: Arrangement = "points",
    ) -> list[Any]:
        """Return the results, one array per output; `point` is the machine code for one point."""
        written = () if out is None else out if type(out) in (tuple, list) else (out,)
        if self._on_arrays is not None and progress is None and form == "points" and type(threads) is int:
            given = (*args, *written)
            values = self._on_arrays(*given) if threads == 1 else self._timed(given, threads)
            if values is not NotImplemented:
                return list(values or written)
        if form not in ARRANGEMENTS:
            raise ArgumentError(f"layout={form!r}", do=f"use one of {', '.join(ARRANGEMENTS)}")
        if type(threads) is not int or threads < 1:
            check_whole("threads", threads)
        places, count, results = self._places(args, out, form)
        if count:
            inputs, outputs, beside = places
            code = self.code(point, inf if form == "blocks" else count)
            run_task(Task(code, inputs, outputs, count), int(threads), progress)
            put_back(beside)
            if self._on_arrays is None:
                self._on_arrays = self.array_call()
        return results

    def _places(self, args: Sequence[Any], out: Any, form: Arrangement) -> tuple[Places, int, list[Array]]:
        """Return the places of all points, how many there are, and the results."""
        number, fresh = self.options.number, out is None
        if form == "blocks":
            width = self.lanes.width
            arrays, results, blocks = block_arrays(self.program, number, width, args, out)
            return in_blocks(self.program, width, arrays, results, blocks, fresh=fresh), blocks * width, results
        arrays, results, leading = batch_arrays(self.program, number, args, out)
        return in_points(self.program, arrays, results, leading, fresh=fresh), prod(leading), results

    @property
    def lanes(self) -> Lanes:
        """How many points are computed side by side; of loops it is found out when it is asked for."""
        if isinstance(self.program, RolledProgram) and self._lanes is None:
            self._lanes = lanes_of_loops(RolledPlan.of(self.program, self.options))
        assert self._lanes is not None
        return self._lanes

    def _is_patient(self, count: float) -> bool:
        """Take the time of some points off the time until several are computed side by side; whether any is left."""
        nanoseconds, left = map(float, self._patience)
        self._patience[1] = left - count * nanoseconds
        return left >= count * nanoseconds

    def _timed(self, given: Sequence[Any], threads: int) -> Any:
        """Return the results of an array call, and note its time; NotImplemented where several threads are faster."""
        sizes = [
            np.size(value) // (array.size or 1) for value, array in zip(given, self.program.arguments, strict=False)
        ]
        code, count = self._code, max(sizes, default=0)
        if threads < 1 or code is None or self._on_arrays is None or code.timing.threads(count, threads) > 1:
            return NotImplemented
        start = time.perf_counter()
        values = self._on_arrays(*given)
        if values is not NotImplemented and count:
            code.timing.note(count, time.perf_counter() - start)
        return values

    def array_call(self, *, front: bool = False) -> ArrayCall:
        """Return the array call of the machine code that ran last; None where there is none, or of other numbers.

        With `front` the axes of the only result are in front of those of the points; the arguments are numbers then.
        """
        code, program, number = self._code, self.program, self.options.number
        is_plain = (
            number is FLOAT64 and len(program.outputs) == 1 and not any(given.shape for given in program.arguments)
        )
        if code is None or number.parts > 1 or (front and not is_plain):
            return None
        patience = np.zeros(2) if code.lanes.width > 1 else self._patience
        return array_call(code, program, number, self.nanoseconds, patience, front=front)

    def code(self, point: MachineCode, count: float = inf) -> Code:
        """Return the code for a number of points: machine code for one point, or for several side by side."""
        with self._lock:
            code = self._code
            if code is not None and code.lanes.width > 1:
                return code
            patient = self._is_patient(count)
            if not patient and self.lanes.width == 1:
                self._patience[:] = 0.0  # no other code comes
            if not patient and self.lanes.width > 1:
                moving = nanoseconds_moving(self.program, self.options.number)
                nanoseconds = self.nanoseconds / self.lanes.width + moving
                code = Code(self._compiled(), self.lanes, nanoseconds, of_blocks=self._takes_blocks)
            elif code is None or code.library is not point:
                code = Code(point, self.options.number.lanes(), self.nanoseconds)
            if code is not self._code:
                self._code, self._on_arrays = code, None
            return code

    @property
    def _takes_blocks(self) -> bool:
        return takes_blocks(self.program, self.lanes, self.options.number)

    def _compiled(self) -> MachineCode:
        tier = "fast" if self.options.tier == "fast" else "default"
        form = f"{tier}, {self.lanes.type}{', of blocks' * self._takes_blocks}"

        def code() -> ObjectCode:
            options = replace(self.options, chunk=self.options.chunk or CHUNK)
            with self._again("batch"):
                emitted = planned(self.program, options).emit(Form(lanes=self.lanes, steps=WORDS * self._takes_blocks))
                stage("llvm", lambda: emitted.text)
            return ObjectCode.of(emitted, LEVELS[tier])

        return self.program_cache.library(form, code)
