"""A kernel: a compiled program that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.code_memory import MachineCode, MappedCode
from codegen.engine import assembly
from codegen.errors import ArgumentError, WorkspaceError
from codegen.ir.program import Declared, Input, Output, Program
from codegen.ir.sparsity import SparsityPattern
from codegen.lanes import FLOAT64
from codegen.machine import forms
from codegen.machine.calls.arguments import (
    Array,
    CallSignature,
    argument_roots,
    as_input,
    given_back,
    in_positions,
    pointers,
    results_of,
    values_of,
    with_names,
    writable,
)
from codegen.machine.calls.background import Promise, later
from codegen.machine.calls.callables import CFunction, recompilation
from codegen.machine.calls.compiled import LLVM, Built, Compiled, Pack, Stats, Unpack, heading, kernel_page
from codegen.machine.calls.gate import attach, describe, gate_of, native_type
from codegen.options import LEVELS, Options, Tier

if TYPE_CHECKING:
    from codegen.ir.region import RolledProgram
    from codegen.machine.batches.batch import Arrangement, Batch
    from codegen.machine.batches.batch_run import Progress
    from codegen.machine.batches.gufunc import Gufunc
    from codegen.machine.gpu.gpu_kernel import GpuKernel

ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Kernel(CFunction):
    """A compiled program: `kernel(x)` returns fresh arrays, `kernel(x, out=buffer)` writes into `buffer`.

    Arguments are one array (or float) per program input, float64, of the declared shape; other array-likes are
    converted. One output is returned as it is (a float for shape `()`), several as a tuple. `pack(args, kwargs)` and
    `unpack(arrays)` translate structured arguments and results; with them all calls take the Python path. Kernels
    hold no state and may be called from many threads.

    >>> import sympy as sp
    >>> from codegen import compile_program, program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> kernel = compile_program(program_from_sympy([(x, y)], [x * y]))
    >>> kernel(np.array([2.0, 3.0])), kernel([2, 3])
    (6.0, 6.0)
    """

    __slots__ = (
        "__weakref__",
        "_batch",
        "_compiled",
        "_entry",
        "_flat",
        "_improvement",
        "_retired",
        "_table",
        "pack",
        "unpack",
    )

    __signature__ = CallSignature()
    _compiled: Compiled
    pack: Pack | None
    unpack: Unpack | None

    def __init__(self, compiled: Compiled, pack: Pack | None = None, unpack: Unpack | None = None) -> None:
        self._compiled = compiled
        self._plain = None
        self._retired: MachineCode | None = None
        self._improvement: Promise | None = None
        self._entry = ENTRY(self.address)
        self.pack, self.unpack = pack, unpack
        declared = compiled.declared
        structured = pack is not None or unpack is not None
        number = compiled.options.number
        self._table = None
        if not structured and number.parts == 1:
            self._table = describe(self.address, declared.arguments, declared.outputs, compiled.release, number)
        self._batch: Batch | None = None  # made when it is first asked for
        self._flat: Kernel | None = make_kernel(compiled) if structured else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate; the native subclass replaces this method by the gate, which falls back to the same."""
        return self._call_slow(*args, **kwargs)

    def _call_slow(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Evaluate with any arguments that can be converted; ArgumentError for those that cannot."""
        if self._flat is not None:
            return self._call_structured(self._flat, args, kwargs, out)
        if kwargs:
            args = in_positions(args, kwargs, self.argument_names)
        arrays = None if out is None else values_of(out, self.declared.outputs)
        if arrays is not None:
            self(*args, out=arrays)
            return out
        declared = self.declared.arguments
        if len(args) != len(declared):
            names = ", ".join(array.name for array in declared)
            value = f"{len(args)} argument{'s' * (len(args) != 1)}"
            raise ArgumentError(value, why=f"the kernel takes {len(declared)}: {names}")
        number = self.options.number
        inputs = [
            as_input(value, array, k, number) for k, (value, array) in enumerate(zip(args, declared, strict=True))
        ]
        shapes = [output.shape for output in self.declared.outputs]
        results = results_of(out, shapes, number, f"kernel {self.declared.name}")
        if out is not None:
            self._into(inputs, results)
            return out
        self._run(inputs, results)
        return given_back([result if result.ndim else result.item() for result in results], None)

    def _call_structured(self, flat: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """Pack the arguments, call the same kernel without containers, and unpack the results."""
        packed = self._packed(args, kwargs)
        results = flat(*packed) if out is None else flat(*packed, out=out)
        if self.unpack is None:
            return results
        return self.unpack([results] if len(self.declared.outputs) == 1 else list(results))

    def _packed(self, args: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
        if self.pack is None:
            return in_positions(args, named, self.argument_names) if named else args
        if named and getattr(self.pack, "by_position", False):
            args, named = in_positions(args, named, argument_roots(self.argument_names)), {}
        return self.pack(args, named)

    def into(self, out: Any, *args: Any) -> Any:
        """Evaluate into `out` (one array, or a tuple of them) and return it.

        For a sparse result it is an array for the packed data, or a `scipy.sparse` matrix of the kernel's pattern.
        ArgumentError for a wrong shape, dtype or pattern, or an array that cannot be written.
        """
        return self(*args, out=out)

    def scipy(self, *args: Any) -> Any:
        """Evaluate, with a `scipy.sparse` array for each sparse result (`pip install symad[special]`).

        `into` writes into the values of such an array.
        """
        return self.with_matrices(lambda data, pattern: pattern.scipy(data), *args)

    def with_matrices(self, made_of: Callable[[Array, SparsityPattern], Any], *args: Any) -> Any:
        """Evaluate, with `made_of(data, pattern)` for each sparse result."""
        results = (self._flat or self)(*self._packed(args, {}))
        outputs = self.declared.outputs
        arrays = [
            array if output.pattern is None else made_of(array, output.pattern)
            for array, output in zip([results] if len(outputs) == 1 else results, outputs, strict=True)
        ]
        return given_back(arrays, self.unpack)

    @with_names
    def batch(
        self,
        *args: Any,
        out: Any = None,
        threads: int = 1,
        progress: Progress | None = None,
        layout: Arrangement = "points",
        **named: Any,
    ) -> Any:
        """Evaluate at many points: arguments with leading axes, which broadcast as those of a gufunc do.

        The axes behind them are the declared ones (see `signature`); an argument without leading axes is shared by all
        points. Arguments may be given by their names. Results have the leading axes in front, fresh or written into
        `out`. The points are computed several side by side, on up to `threads` threads, with the GIL released; neither
        changes a bit of the results, except that `accuracy="fast"` may take another variant of a vector function than
        for one point.
        `progress(points done, points)` is called about 20 times a second; what it raises, or Ctrl-C, stops the work.
        With `layout="blocks"`, arrays have an axis of blocks in front and one of `lanes` points behind (docs/batch.md).
        ArgumentError for shapes that do not fit.

        >>> import sympy as sp
        >>> from codegen import lambdify
        >>> x, y = sp.symbols("x y")
        >>> lambdify([x, y], x * y).kernel.batch([[1.0], [2.0]], [10.0, 20.0, 30.0])
        array([[10., 20., 30.],
               [20., 40., 60.]])
        """
        packed = self._packed(args, named)
        batch = self._batch or self._batched()
        results: list[Any] = batch(self._compiled.library, packed, out, threads, progress, layout)
        if out is not None and self.unpack is None:
            return out
        return given_back([result if result.ndim else result.item() for result in results], self.unpack)

    def gufunc(self, threads: int = 1) -> Gufunc:
        """Return the kernel as a function of arrays with leading axes, for dask, xarray and other processes (`Gufunc`).

        ArgumentError for a kernel that takes or returns containers.
        """
        return forms.Gufunc(self, threads)

    def gpu(self, arch: str | None = None, device: int = 0) -> GpuKernel:
        """Return the kernel for many points on an NVIDIA GPU, with the bits of `batch` (`GpuKernel`).

        `arch` is what it is written for, "sm_60" to "sm_120"; without it the GPU's own, or "sm_70" where there is none.
        """
        return forms.GpuKernel.of(self, arch, device)

    def array_call(self) -> Callable[..., Any] | None:
        """Return the builtin function for arrays of points, in front of whose axes it puts those of the result.

        It returns NotImplemented for what `batch` has to look at. None before the first batch, or where there is none.
        """
        return self._batched().array_call(front=True)

    def _batched(self) -> Batch:
        if self._batch is None:
            compiled = self._compiled
            source = compiled.source.program_cache
            assert source is not None
            self._batch = forms.Batch(source, compiled.stats.machine_operations, partial(recompilation, compiled))
        return self._batch

    def _into(self, inputs: list[Array], arrays: list[Array]) -> None:
        """Compute into arrays that may be strided, or overlap."""
        direct = [writable(array, [*inputs, *arrays[:k]]) for k, array in enumerate(arrays)]
        self._run(inputs, direct)
        for array, result in zip(arrays, direct, strict=True):
            if array is not result:
                array[...] = result

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if self._entry(pointers(inputs), pointers(outputs)):
            raise WorkspaceError(f"kernel {self.declared.name}", why="no memory for its workspace")

    @property
    def program(self) -> Program | RolledProgram:
        """The program that was compiled."""
        return self._compiled.program

    @property
    def declared(self) -> Declared:
        """Its name, arguments and results, all that a caller needs of the program."""
        return self._compiled.declared

    def improve_later(self, compile_again: Callable[[], MachineCode]) -> None:
        """Compile again in the background, and then use that machine code; calls go on meanwhile.

        If that fails, a warning says so, the first code stays, and `wait` raises.
        """
        name = self.declared.name

        def better_code() -> Callable[[Kernel], None]:
            try:
                library = compile_again()
            except Exception as error:
                forms.fall_back(name, "its better machine code cannot be made", error)
                raise
            return lambda kernel: kernel._swap(library)

        self._improvement = later(self, better_code)

    def _swap(self, library: MachineCode) -> None:
        """Take other machine code; the old one lives on, because other threads may be running it."""
        self._retired = self._compiled.library
        stats = replace(self._compiled.stats, generator=LLVM)
        self._compiled = self._compiled._replace(library=library, tier="default", stats=stats)
        self._entry = ENTRY(self.address)
        if self._table is not None:
            self._table[0] = self.address
        if self._flat is not None:
            self._flat._swap(library)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for machine code that is compiled in the background; whether it is in use now.

        False at once in a fork of the process that compiles it.

        >>> import sympy as sp
        >>> from codegen import compile_program, program_from_sympy
        >>> x = sp.Symbol("x")
        >>> kernel = compile_program(program_from_sympy([x], [x * x]), tier="auto")
        >>> kernel(3.0), kernel.wait(), kernel.tier, kernel(3.0)
        (9.0, True, 'default', 9.0)
        """
        if self._improvement is not None:
            try:
                self._improvement.result(seconds)
            except TimeoutError:
                return False
        return self._improvement is None or self._retired is not None

    @property
    def tier(self) -> Tier:
        """The tier of the current machine code: the chosen one; of "auto" first "fast", then "default"."""
        return self._compiled.tier

    @property
    def options(self) -> Options:
        """The options that it was compiled with."""
        return self._compiled.options

    @property
    def signature(self) -> str:
        """Shapes of arguments and results as NumPy writes those of a gufunc: how `batch` broadcasts."""
        return forms.signature(self.declared.arguments, self.declared.outputs)

    @property
    def lanes(self) -> int:
        """How many points `batch` computes side by side."""
        return self._batched().lanes.width

    @property
    def sparsity(self) -> Any:
        """The pattern of a sparse result, whose packed data the kernel returns; None where the result is dense.

        For several results a tuple, with one pattern or None for each, or None if all are dense. A pattern unpacks:
        `rows, columns = kernel.sparsity`.
        """
        patterns = tuple(output.pattern for output in self.declared.outputs)
        return patterns if len(patterns) > 1 and any(patterns) else next(iter(patterns), None)

    @property
    def argument_names(self) -> list[str]:
        """The names of the arrays that it takes, those in containers by their paths."""
        return [array.name for array in self.declared.arguments]

    @property
    def __name__(self) -> str:
        """The name of the program, which tools that take functions ask for."""
        return self.declared.name

    @property
    def llvm(self) -> str:
        """LLVM IR text of the kernel (written anew)."""
        with recompilation(self._compiled, "llvm"):
            return forms.write(self.program, self.options).text

    @property
    def assembly(self) -> str:
        """Assembly of the kernel on this machine, by the current tier (generated anew, or of the code that runs)."""
        code, source = self._compiled.library, self._compiled.source
        if source.file is not None and source.revive is not None:
            kernel: Kernel = source.revive(self.portable(), None, None)
            return kernel.assembly
        return forms.listing(code.placed) if isinstance(code, MappedCode) else assembly(self.llvm, LEVELS[self.tier])

    @property
    def stats(self) -> Stats:
        """Sizes, operation counts and compile times."""
        return self._compiled.stats

    @property
    def address(self) -> int:
        """Address of `int kernel(double **inputs, double **outputs)`, valid while the kernel lives."""
        return self._compiled.library.addresses["kernel"]

    def __repr__(self) -> str:
        number = self.options.number
        dtype = "" if number is FLOAT64 else f" in {number.name}"
        return f"<Kernel {heading(self.declared, self.options)}: {self.stats.total} operations{dtype}>"

    def _repr_html_(self) -> str:
        return kernel_page(self.declared, self.options, self.signature, self.stats)


def make_kernel(compiled: Compiled, pack: Pack | None = None, unpack: Unpack | None = None) -> Kernel:
    """Return a kernel with native calls where the interpreter allows them, a plain Python object otherwise."""
    kernel_type = native_type(Kernel)
    if kernel_type is None or not _native_calls_work(kernel_type):
        return Kernel(compiled, pack, unpack)
    return _attached(kernel_type, compiled, pack, unpack)


def _attached(kernel_type: type, compiled: Compiled, pack: Pack | None = None, unpack: Unpack | None = None) -> Kernel:
    kernel: Kernel = kernel_type(compiled, pack, unpack)
    number = compiled.options.number
    attach(kernel, Kernel, kernel._table, number if number.parts == 1 else FLOAT64)
    return kernel


@cache
def _native_calls_work(kernel_type: type) -> bool:
    """Try the gate once on a kernel that adds a number to an array, in every form of call."""
    program = Program([], [], {}, (Input("x", (2,)), Input("s", ())), (Output((2,), ()), Output((), ())))
    source, gate = Built(program), gate_of(Kernel)
    library: Any = SimpleNamespace(addresses={"kernel": gate.addresses["trial"]})
    results: list[Any] = []
    for release in (False, True):
        kernel = _attached(kernel_type, Compiled(program, library, Options(), Stats(0, 0.0, 0, {}, 0), release, source))
        x, out = np.array([1.0, 2.0]), (np.zeros(2), np.zeros(()))
        for call in (kernel, kernel._call_slow):
            results += [call(x, 0.5), call(x, 0.5, out=out)]
            results.append(call([1, 2], 0.5))
    return all(array.tolist() == [1.5, 2.5] and float(total) == 4.0 for array, total in results)
