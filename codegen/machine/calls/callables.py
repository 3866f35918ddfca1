"""A kernel as a C function, in files, pickles and copies: addresses, adapters to other conventions, other languages.

The linker gives an adapter the kernel's address. A function keeps its kernel alive.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from codegen.code_memory import python_function
from codegen.engine import Library, compile_text
from codegen.errors import ArgumentError
from codegen.ir.program import Declared
from codegen.machine import forms
from codegen.machine.calls.arguments import as_input
from codegen.machine.calls.compiled import Compiled
from codegen.machine.calls.conventions import DECLARATION, adapter, adapter_text, label_of
from codegen.sealed import write_kernel
from codegen.stages import Compilation, compilation

if TYPE_CHECKING:
    from codegen.machine.exports.export import Exported, Material


def recompilation(compiled: Compiled, purpose: str) -> AbstractContextManager[Compilation]:
    """Open the stages of more code for a program, with the same optional passes as the first."""
    kept = None if compiled.bisection is None else compiled.bisection.copy()
    return compilation(f"{compiled.declared.name} {purpose}", forms.LISTING, kept)


def _bound(declared: Declared, first: int, data: Sequence[Any]) -> Any:
    """Return values of some inputs as one array."""
    bound = declared.arguments[first : first + len(data)]
    arrays = [as_input(value, array, first + k) for k, (value, array) in enumerate(zip(data, bound, strict=True))]
    return np.concatenate([array.ravel() for array in arrays])


class Callback(NamedTuple):
    """A C function in a capsule, with its user data as context, and the objects that it needs alive."""

    capsule: Any
    owners: tuple[Any, ...]


_ONE_ENTRY = threading.Lock()  # a second entry, made by another thread, would leave the first one's address dangling


class CFunction:
    """What kernels offer to whoever keeps them, to programs in C and to tools that call C."""

    __slots__ = ("_plain",)

    pack: Any
    unpack: Any
    _compiled: Compiled
    _plain: tuple[Library, Compiled] | None  # made when it is first asked for
    _flat: Any  # the kernel without containers, None where it is this one

    @property
    def c_address(self) -> int:
        """Address of `int kernel(const double *input, ..., double *output, ...)`, valid while the kernel lives.

        It takes one pointer for each array, inputs first, C-contiguous (float* for a kernel in float32); no output may
        overlap another array.
        """
        return self._plain_library()[0].addresses["plain"]

    @property
    def ctypes(self) -> Any:
        """The C function of `c_address` as ctypes function, which keeps the machine code alive.

        Its arguments are addresses; `array.ctypes` is one. Shapes and dtypes are not checked.

        >>> import sympy as sp
        >>> from codegen import compile_program, program_from_sympy
        >>> x, y = sp.symbols("x y")
        >>> function = compile_program(program_from_sympy([(x, y)], [x * y])).ctypes
        >>> point, result = np.array([2.0, 3.0]), np.empty(())
        >>> function(point.ctypes, result.ctypes), float(result)
        (0, 6.0)
        """
        library, compiled = self._plain_library()
        count = len(compiled.declared.arguments) + len(compiled.declared.outputs)
        function: Any = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * count)(library.addresses["plain"])
        function.owners = (library, compiled)
        return function

    def low_level_callable(self, signature: str | None = None, *data: Any) -> Any:
        """Return a `scipy.LowLevelCallable` (`pip install symad[special]`), which keeps the machine code alive.

        `signature` is one of those that SciPy documents for `quad`, `nquad`, `ndimage.generic_filter`,
        `generic_filter1d` and `geometric_transform`; without one it is that of `quad` and `nquad` with any number of
        arguments. The kernel's inputs take the numbers that SciPy passes, one array after the other; `data` are values
        for its last inputs, which are copied and travel as user data. `.function` is the ctypes function. ArgumentError
        for a signature that does not fit the kernel, with those that do.

        >>> import sympy as sp
        >>> from scipy.integrate import quad
        >>> from codegen import compile_program, program_from_sympy
        >>> x, a = sp.symbols("x a")
        >>> kernel = compile_program(program_from_sympy([x, a], [a * x**2]))
        >>> round(quad(kernel.low_level_callable("double (double, void *)", 6.0), 0, 1)[0], 12)
        2.0
        """
        try:
            from scipy import LowLevelCallable  # noqa: PLC0415 (optional extra)
        except ImportError as error:
            raise ArgumentError("a LowLevelCallable without SciPy", do="pip install 'symad[special]'") from error
        function = adapter(self._compiled, signature, len(data))
        if not data:
            return LowLevelCallable(function, signature=function.signature)
        kept = _bound(self._compiled.declared, function.first, data)
        pointer = ctypes.c_void_p(kept.ctypes.data)
        pointer.owner = kept  # type: ignore[attr-defined]  # the callable keeps the pointer
        return LowLevelCallable(function, pointer, signature=function.signature)

    def callback(self, signature: str, *data: Any) -> Callback:
        """Return a C function of a signature as a capsule without a name, for tools that take those.

        "XLA_FFI_Error * (XLA_FFI_CallFrame *)" is what `jax.ffi.register_ffi_target` takes.
        `data` are values for the last inputs. What is returned keeps the function alive, the capsule does not.

        >>> import sympy as sp
        >>> from codegen import compile_program, program_from_sympy
        >>> x, a = sp.symbols("x a")
        >>> kernel = compile_program(program_from_sympy([x, a], [a * x**2]))
        >>> type(kernel.callback("double (double, void *)", 6.0).capsule).__name__
        'PyCapsule'
        """
        function = adapter(self._compiled, signature, len(data))
        kept = _bound(self._compiled.declared, function.first, data) if data else None
        new = python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        capsule = new(ctypes.cast(function, ctypes.c_void_p), None, None)
        if kept is not None:
            set_context = python_function("PyCapsule_SetContext", ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
            set_context(capsule, kept.ctypes.data)
        return Callback(capsule, (function, kept))

    @property
    def _numba_type_(self) -> Any:
        """The type that numba asks an unknown object for: `kernel(x)` works in `numba.njit`."""
        from codegen.machine.calls.numba_types import numba_type  # noqa: PLC0415 - numba is here when it asks

        compiled = self._compiled
        plain = self.pack is None and self.unpack is None
        return numba_type(compiled.declared, compiled.options.number, plain)

    @property
    def material(self) -> Material:
        """The data of an export: the program, its options, and a function that evaluates it on arrays."""
        evaluate: Any = self if self._flat is None else self._flat
        return forms.Material(self._compiled.program, self._compiled.options, evaluate)

    def export(
        self,
        directory: str | os.PathLike[str],
        name: str | None = None,
        *,
        cpu: str = "host",
        library: bool | None = None,
        source: bool | None = None,
        points: Sequence[Sequence[Any]] | None = None,
    ) -> Exported:
        """Write the kernel into a directory for programs in C and other languages: all files, or none on any error.

        The files are an object file (position-independent), a shared library (if a C compiler driver is found in CC or
        on PATH; `library=True` insists, `library=False` leaves it out), a header that describes every array, the
        places of sparse entries, C99 source (`source=False` leaves it out), and a test program with the exact bits of
        some results, at `points` (one tuple of arrays for each) or at chosen ones. All of them give the bits of this
        kernel. `cpu` is "host", "generic" or a name that LLVM knows.

        The C function is `int name(const double *input, ..., double *output, ...)`; `name` is that of the program
        unless given. ArgumentError for a name that C does not allow or a directory that cannot be written,
        LoweringError for a kernel that calls functions of SciPy.
        """
        with recompilation(self._compiled, "export"):
            return forms.export(self.material, directory, name, cpu=cpu, library=library, source=source, points=points)

    def save(self, path: str | os.PathLike[str], *, code: bool = True) -> None:
        """Write the kernel into a file, completely or not at all; `symad.load` or `codegen.load_kernel` reads it.

        It holds the program and its options as plain data, so that it can be loaded on any machine. With `code` there
        is machine code behind them, under a mark made with this user's key (`~/.local/share/symad/key`, or in
        XDG_DATA_HOME; made when it is first needed): processes of the same user run it on such a machine, without SymPy
        and LLVM.
        ArgumentError for a file that cannot be written, and containers other than tuples, lists, dicts and None.
        """
        write_kernel(path, self.stored() if code else self.portable())

    def stored(self, adapters: Sequence[tuple[str, int]] = ()) -> bytes:
        """Return the bytes that `save` writes; adapters with machine code: signatures and numbers of bound inputs."""
        if self._compiled.source.file is not None:
            return self._compiled.source.file
        containers = forms.containers_of(self.pack, self.unpack)
        texts = {label_of(*adapter): adapter_text(self._compiled.declared, *adapter) for adapter in adapters}
        return forms.with_code(self.portable(), self._compiled, containers, texts)

    def portable(self) -> bytes:
        """Return the part of it that is good for every machine."""
        return forms.encode(self._compiled.program, self._compiled.options, forms.containers_of(self.pack, self.unpack))

    def __reduce__(self) -> tuple[Any, ...]:
        data = forms.encode(self._compiled.program, self._compiled.options)
        return self._compiled.source.revive, (data, self.pack, self.unpack)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def _plain_library(self) -> tuple[Library, Compiled]:
        """The entry in plain convention, and the code that it calls, as of its first use."""
        with _ONE_ENTRY:
            if self._plain is None:
                compiled = self._compiled
                text = DECLARATION + forms.entry(compiled.declared, "plain")
                library = compile_text(text, ("plain",), {"kernel": compiled.library.addresses["kernel"]})
                self._plain = library, compiled
            return self._plain
