"""A kernel at many points on a GPU, for GPU arrays in place or NumPy arrays in parts."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from codegen.engine import device_assembly
from codegen.errors import ArgumentError
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.machine.batches.batch import batch_arrays, in_points, leading_axes, put_back
from codegen.machine.calls.arguments import Array, as_numbers, given_back, split_out
from codegen.machine.calls.compiled import Pack, Unpack, heading
from codegen.machine.gpu.device_arrays import EMPTY, DeviceArray, Place, View, is_on_device, view_of
from codegen.machine.gpu.device_entry import ENTRY
from codegen.machine.gpu.device_text import device_text
from codegen.machine.gpu.driver import (
    LOCAL_BYTES,
    REGISTERS,
    Device,
    Memory,
    Module,
    copy_in,
    device,
    has_driver,
    wait,
    wait_for,
)
from codegen.machine.gpu.host_points import PointSums, adding_module, run_in_parts
from codegen.machine.storage.portable import decode, encode
from codegen.options import Options
from codegen.records import dataclass
from codegen.sealed import write_kernel
from codegen.visible import visible

COMMON = "sm_70"  # where no GPU is there to ask: its code runs on all that came since 2017


@dataclass(eq=False, repr=False)
class GpuKernel:
    """A kernel at many points on a GPU, with the bits of `Kernel.batch`: `kernel.gpu()` makes it.

    Arguments have the points in leading axes, which broadcast, as those of `Kernel.batch`. If any is an array of the
    GPU (`__cuda_array_interface__`: CuPy, PyTorch, JAX, Numba, or a result of another kernel), all work stays there, in
    the order of `stream`, and results are `DeviceArray`s, or the arrays given as `out`; a call returns before they are
    done. NumPy arrays are copied there and back in parts, while the next ones are computed, and results are NumPy's.

    It may be called from many threads. DeviceError where there is no GPU or no driver, or too little memory on it;
    ArgumentError for shapes, dtypes and steps that do not fit.

    >>> import sympy as sp
    >>> from codegen import compile_program, program_from_sympy
    >>> x = sp.Symbol("x")
    >>> kernel = compile_program(program_from_sympy([x], [x * x])).gpu(arch="sm_80")
    >>> kernel.architecture, "mul.rn.f64" in kernel.ptx
    ('sm_80', True)
    """

    program: Program | RolledProgram
    options: Options
    pack: Pack | None
    unpack: Unpack | None
    architecture: str
    ptx: str
    shared: int
    device: int = 0

    def __post_init__(self) -> None:
        self._names = [f"argument {k} ({array.name})" for k, array in enumerate(self.program.arguments)]
        self._names += [f"out[{k}]" for k in range(len(self.program.outputs))]
        self._modules: dict[int, Module] = {}  # by the number of the device
        self._adding: dict[int, Module] = {}  # modules that add up points, by device
        self._lock = threading.Lock()

    @classmethod
    def of(cls, kernel: Any, arch: str | None, number: int) -> GpuKernel:
        """Write a kernel of this machine for an architecture, or for the GPU that is there."""
        architecture = arch or (device(number).architecture if has_driver() else COMMON)
        written = device_text(kernel.program, kernel.options, architecture)
        ptx, shared = device_assembly(written.text, architecture), written.shared
        return cls(kernel.program, kernel.options, kernel.pack, kernel.unpack, architecture, ptx, shared, number)

    def __call__(self, *args: Any, out: Any = None, stream: Any = None) -> Any:
        """Evaluate at all points; see the class.

        `stream` is a number, or an object of CuPy, PyTorch or Numba; without it, the stream that all others wait for.
        """
        packed = args if self.pack is None else self.pack(args, {})
        outputs = () if out is None else split_out(out, len(self.program.outputs))
        if any(map(is_on_device, (*packed, *outputs))):
            results: list[Any] = self._resident(packed, outputs, stream_number(stream))
        else:
            results = self._from_host(packed, out)
        if out is not None and self.unpack is None:
            return out
        return given_back(results, self.unpack)

    def _from_host(self, packed: Sequence[Any], out: Any) -> list[Any]:
        arrays, results, leading = batch_arrays(self.program, self.options.number, packed, out)
        if prod(leading):
            inputs, outputs, beside = in_points(self.program, arrays, results, leading, fresh=out is None)
            run_in_parts(self.module(self.device), inputs, outputs, self._what(prod(leading)))
            put_back(beside)
        return [result if result.ndim else result.item() for result in results]

    def _resident(self, packed: Sequence[Any], buffers: Sequence[Any], stream: int) -> list[Any]:
        """Compute where the arrays are."""
        declared, known = self.program.arguments, self._views(packed)
        targets = [_target(value, name) for value, name in zip(buffers, self._names[len(declared) :], strict=False)]
        owner = self._owner([view for view in (*known, *targets) if view is not None])
        with owner.current():
            inputs = self._inputs(packed, known, owner, stream)
            leading = leading_axes(inputs, declared)
            results: list[Any] = list(buffers) or self._fresh(leading, owner, stream)
            outputs = targets or [view_of(array, "a result") for array in results]
            self._start(inputs, outputs, leading, owner, stream)
        return results

    def sum(self, *args: Any, stream: Any = None) -> Any:
        """Evaluate at all points and add up the results over them, on the GPU: a batch's gradient, J^T J of residuals.

        Results are `DeviceArray`s if any argument is an array of the GPU, else NumPy's. The order of additions depends
        on the number of points alone, so that the bits are the same on every GPU; they are not those of `numpy.sum`.
        ArgumentError where there are no points.
        """
        packed, queue = args if self.pack is None else self.pack(args, {}), stream_number(stream)
        known = self._views(packed)
        owner = self._owner([view for view in known if view is not None])
        with owner.current():
            inputs = self._inputs(packed, known, owner, queue)
            leading = leading_axes(inputs, self.program.arguments)
            if not prod(leading):
                raise ArgumentError("no points", why="there is nothing to add up")
            results = self._fresh((), owner, queue)
            self._add(self._located(inputs, leading, queue), results, prod(leading), owner, queue)
        return given_back(results if any(known) else [np.asarray(result) for result in results], self.unpack)

    def _add(self, places: list[Place], results: Sequence[DeviceArray], count: int, owner: Device, stream: int) -> None:
        """Start the work of `sum`."""
        number = self.options.number
        widths = [output.size * number.parts for output in self.program.outputs]
        kernel = self.module(owner.number)
        with self._lock:
            adding = self._adding.get(owner.number) or adding_module(owner, number.lanes())
            self._adding[owner.number] = adding
        sums = PointSums(kernel, adding, widths, number.lanes())
        memories = [result.memory for result in results]
        sums(places, memories, count, stream, self._what(count))

    def _views(self, packed: Sequence[Any]) -> list[View | None]:
        """The arguments that are arrays of a GPU, None for others; ArgumentError for too few or too many."""
        taken = len(self.program.arguments)
        if len(packed) != taken:
            raise ArgumentError(f"{len(packed)} arguments", why=f"the kernel takes {taken}")
        pairs = zip(packed, self._names, strict=False)
        return [view_of(value, name) if is_on_device(value) else None for value, name in pairs]

    def _inputs(self, packed: Sequence[Any], known: Sequence[View | None], owner: Device, stream: int) -> list[View]:
        number = self.options.number
        return [
            view or uploaded(as_numbers(value, array, k, number), owner, stream)
            for k, (view, value, array) in enumerate(zip(known, packed, self.program.arguments, strict=True))
        ]

    def _owner(self, views: Sequence[View]) -> Device:
        devices = {view.device for view in views} - {EMPTY}
        if len(devices) > 1:
            raise ArgumentError(f"arrays on GPUs {sorted(devices)}", why="a kernel runs on one", do="copy them to one")
        return device(devices.pop() if devices else self.device)

    def _fresh(self, leading: tuple[int, ...], owner: Device, stream: int) -> list[Any]:
        dtype, purpose = self.options.number.dtype, f"results of {self._what(prod(leading))}"
        shapes = [leading + output.shape for output in self.program.outputs]
        memories = [Memory(owner, dtype.itemsize * prod(shape), purpose) for shape in shapes]
        return [DeviceArray(memory, shape, dtype, stream) for memory, shape in zip(memories, shapes, strict=True)]

    def _start(
        self, inputs: Sequence[View], outputs: Sequence[View], leading: tuple[int, ...], owner: Device, stream: int
    ) -> None:
        """Start the work on all points."""
        count, size = prod(leading), self.options.number.lanes().size
        self._check_outputs(inputs, outputs, leading)
        places = self._located((*inputs, *outputs), leading, stream)
        if count:
            launched = [(place.address, place.step // size) for place in places]
            self.module(owner.number).launch(count, launched, stream, self.program.name)

    def _located(self, views: Sequence[View], leading: tuple[int, ...], stream: int) -> list[Place]:
        """Where the points of arguments, and perhaps results, are."""
        arrays: list[Input | Output] = [*self.program.arguments, *self.program.outputs]
        rows = zip(views, arrays, self._names, strict=False)
        return [self._place(view, array.shape, name, leading, stream) for view, array, name in rows]

    def _place(self, view: View, own: tuple[int, ...], name: str, leading: tuple[int, ...], stream: int) -> Place:
        """Where an array's points are, once its stream is done; ArgumentError for other dtypes and steps."""
        number = self.options.number
        if view.dtype != number.dtype.str:
            raise ArgumentError(f"dtype {view.dtype}", where=name, why=f"the kernel computes in {number.name}")
        place = view.points(own, leading) if prod(leading) else Place(0, 0)
        if place is None:
            raise ArgumentError(
                f"an array of shape {view.shape} with steps {view.strides}", where=name, do="make it contiguous",
                why="on a GPU the numbers of a point lie side by side, and points have one step",
            )  # fmt: skip
        if view.stream not in (None, stream):
            wait_for(stream, view.stream or 0)
        return place

    def _check_outputs(self, inputs: Sequence[View], outputs: Sequence[View], leading: tuple[int, ...]) -> None:
        """ArgumentError for arrays that results cannot be written into."""
        for k, (view, output) in enumerate(zip(outputs, self.program.outputs, strict=True)):
            if view.shape != leading + output.shape:
                why = f"the result is of shape {leading + output.shape}"
                raise ArgumentError(f"shape {view.shape}", where=f"out[{k}]", why=why)
            if view.read_only:
                raise ArgumentError("a read-only array", where=f"out[{k}]", why="the result is written into it")
            start, end = view.bounds
            for other in (*inputs, *outputs[:k]):
                first, last = other.bounds
                if start < last and first < end:
                    why = "it shares memory with an argument or another result"
                    raise ArgumentError(f"out[{k}]", why=why, do="give another array")

    def _what(self, count: int) -> str:
        return f"{count} points of {self.program.name}"

    def module(self, number: int) -> Module:
        """Return the machine code for a device, made by its driver at the first call there."""
        with self._lock:
            if number not in self._modules:
                self._modules[number] = Module(device(number), self.ptx, ENTRY, self.shared)
            return self._modules[number]

    @property
    def resources(self) -> dict[str, int]:
        """Registers and bytes of local memory of a thread, as the driver has made it; DeviceError without a GPU."""
        module = self.module(self.device)
        return {"registers": module.attribute(REGISTERS), "local bytes": module.attribute(LOCAL_BYTES)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the PTX into a file, completely or not at all; its first line lists the parameters of the function."""
        arrays = ", ".join(f"{name} step" for name in self._names)
        write_kernel(path, f"// {self!r}\n// {ENTRY}(count, {arrays})\n{self.ptx}".encode())

    def __reduce__(self) -> tuple[Any, ...]:
        data = encode(self.program, self.options)
        return revive, (data, self.pack, self.unpack, self.architecture, self.ptx, self.shared, self.device)

    def __repr__(self) -> str:
        called = heading(self.program, self.options).partition(" -> ")[0]
        return f"<GpuKernel {called} of {self.options.dtype} for {visible(self.architecture)}>"


def revive(data: bytes, *others: Any) -> GpuKernel:
    """Return a kernel from its pickle."""
    portable = decode(data, "a pickled kernel")
    return GpuKernel(portable.program, portable.options, *others)


def stream_number(stream: Any) -> int:
    """Return the handle of a stream: a number, or a stream of CuPy, PyTorch or Numba.

    >>> stream_number(None), stream_number(7)
    (0, 7)
    """
    if stream is None:
        return 0
    for name in ("ptr", "cuda_stream", "handle"):
        stream = getattr(stream, name, stream)
    number = getattr(stream, "value", stream)
    if not isinstance(number, int):
        raise ArgumentError(f"stream={stream!r}", do="give the number of a stream, or a stream of CuPy or PyTorch")
    return number


def _target(value: Any, name: str) -> View:
    """An array of the GPU for a result; ArgumentError for any other."""
    if not is_on_device(value):
        why = "the work stays on the GPU, where an argument or another result is"
        raise ArgumentError(type(value).__name__, where=name, why=why, do="give an array of the GPU")
    return view_of(value, name)


def uploaded(array: Array, owner: Device, stream: int) -> View:
    """Return a copy of a NumPy array in the memory of a device."""
    array = np.ascontiguousarray(array)
    memory = Memory(owner, array.nbytes, "an argument")
    copy_in(memory.address, array.ctypes.data, array.nbytes, stream)
    wait(stream)
    return view_of(DeviceArray(memory, array.shape, array.dtype, stream), "an argument")
