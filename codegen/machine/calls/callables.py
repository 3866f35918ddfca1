"""A kernel as a C function: its addresses, adapters to the conventions of other tools, files for other languages.

An adapter gets the kernel's address from the linker. Whatever holds the function holds the kernel.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from codegen.engine import Library, compile_text
from codegen.errors import ArgumentError
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.lanes import FLOAT64
from codegen.machine.calls.arguments import as_input
from codegen.machine.calls.compiled import Compiled
from codegen.machine.exports.c_interface import call, entry
from codegen.machine.exports.export import Exported, Material, export

CTYPES: dict[str, Any] = {
    "double": ctypes.c_double, "int": ctypes.c_int, "npy_intp": ctypes.c_ssize_t, "void *": ctypes.c_void_p,
    "double *": ctypes.POINTER(ctypes.c_double), "npy_intp *": ctypes.POINTER(ctypes.c_ssize_t),
}  # fmt: skip
IR = {"double": "double", "int": "i32", "npy_intp": f"i{8 * ctypes.sizeof(ctypes.c_ssize_t)}"}  # others are pointers
FAILED = {"double": "ret double 0x7FF8000000000000", "int": "ret i32 0"}
DECLARATION = "declare i32 @kernel(ptr,ptr)\n"
GENERAL = "double (int, double *)"  # of scipy.integrate: any number of arguments


@dataclass(frozen=True)
class Convention:
    """A C signature: which argument has the inputs, which gets the outputs (None: the result), which are lengths."""

    signature: str
    use: str
    inputs: int
    outputs: int | None
    input_length: int | None = None
    output_length: int | None = None

    @property
    def result(self) -> str:
        """Type of the result."""
        return self.signature.split(" (")[0]

    @property
    def types(self) -> list[str]:
        """Types of the arguments."""
        return self.signature.partition(" (")[2].rstrip(")").split(", ")

    @property
    def user_data(self) -> bool:
        """Whether the last argument is a pointer to user data."""
        return self.types[-1] == "void *"

    def fits(self, inputs: Sequence[int], outputs: Sequence[int], bound: int) -> str:
        """Return what is wrong with the sizes of a kernel's arrays, or ''; the last `bound` inputs are user data."""
        if bound and not self.user_data:
            return "it has no user data (void *)"
        if bound > len(inputs):
            return f"the kernel has {len(inputs)} inputs"
        if self.types[self.inputs] == "double" and list(inputs[: len(inputs) - bound]) != [1]:
            return "it has one number as input"
        if self.output_length is None and list(outputs) != [1]:
            return "it has one number as result"
        return ""


CONVENTIONS = [
    Convention("double (double)", "quad", 0, None),
    Convention("double (double, void *)", "quad", 0, None),
    Convention(GENERAL, "quad, nquad", 1, None, 0),
    Convention("double (int, double *, void *)", "quad, nquad", 1, None, 0),
    Convention("int (double *, npy_intp, double *, void *)", "ndimage.generic_filter", 0, 2, 1),
    Convention("int (double *, npy_intp, double *, npy_intp, void *)", "ndimage.generic_filter1d", 0, 2, 1, 3),
    Convention("int (npy_intp *, double *, int, int, void *)", "ndimage.geometric_transform", 0, 1, 2, 3),
]


def plain_library(compiled: Compiled) -> Library:
    """Compile `int plain(const double *, ..., double *, ...)`, an entry to machine code."""
    addresses = {"kernel": compiled.library.addresses["kernel"]}
    return compile_text(DECLARATION + entry(compiled.program, "plain"), ("plain",), addresses)


def plain_function(library: Library, compiled: Compiled) -> Any:
    """Return the ctypes function of a plain entry, whose arguments are addresses; it keeps the machine code alive."""
    program = compiled.program
    count = len(program.arguments) + len(program.outputs)
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * count)(library.addresses["plain"])
    function.owners = (library, compiled)
    return function


def low_level_callable(compiled: Compiled, signature: str | None, data: Sequence[Any]) -> Any:
    """Return a `scipy.LowLevelCallable` of machine code; see `Kernel.low_level_callable`."""
    program = compiled.program
    try:
        from scipy import LowLevelCallable  # noqa: PLC0415 (optional extra)
    except ImportError as error:
        raise ArgumentError("a LowLevelCallable without SciPy", do="pip install 'symad[special]'") from error
    function = adapter(compiled, signature, len(data))
    if not data:
        return LowLevelCallable(function, signature=function.signature)
    bound = program.arguments[len(program.arguments) - len(data) :]
    first = len(program.arguments) - len(data)
    arrays = [as_input(value, array, first + k) for k, (value, array) in enumerate(zip(data, bound, strict=True))]
    kept = np.concatenate([array.ravel() for array in arrays])
    pointer = ctypes.c_void_p(kept.ctypes.data)
    pointer.owner = kept  # type: ignore[attr-defined]  # the callable keeps the pointer
    return LowLevelCallable(function, pointer, signature=function.signature)


def adapter(compiled: Compiled, signature: str | None, bound: int = 0) -> Any:
    """Return the ctypes function of a signature; the last `bound` inputs are read from its user data.

    ArgumentError for a signature that is unknown or does not fit the kernel's arrays, with those that do.
    """
    program, number = compiled.program, compiled.options.number
    if number is not FLOAT64:
        raise ArgumentError(f"a {number.name} kernel as LowLevelCallable", why="SciPy passes float64")
    convention = _convention(program, signature, bound)
    text = DECLARATION + _text(program, convention, bound)
    library = compile_text(text, ("adapter",), {"kernel": compiled.library.addresses["kernel"]})
    types = [CTYPES[name] for name in (convention.result, *convention.types)]
    function: Any = ctypes.CFUNCTYPE(*types)(library.addresses["adapter"])
    function.owners, function.signature = (library, compiled), convention.signature
    return function


def _sizes(program: Program | RolledProgram) -> tuple[list[int], list[int]]:
    return [array.size for array in program.arguments], [output.size for output in program.outputs]


def _convention(program: Program | RolledProgram, signature: str | None, bound: int) -> Convention:
    inputs, outputs = _sizes(program)
    if signature is None:
        signature = GENERAL if not bound else f"{GENERAL[:-1]}, void *)"
    if not isinstance(signature, str):
        raise ArgumentError(f"signature {signature!r}", why="it is a text in C, as of SciPy's documentation")
    canonical = re.sub(r"\s*\*", " *", re.sub(r"\s*,\s*", ", ", re.sub(r"\s*\(\s*", " (", signature.strip())))
    canonical = re.sub(r"\b(intptr_t|Py_ssize_t|long long|long)\b", "npy_intp", canonical)
    found = next((convention for convention in CONVENTIONS if convention.signature == canonical), None)
    why = "no convention of SciPy's" if found is None else found.fits(inputs, outputs, bound)
    if found is not None and not why:
        return found
    suited = [
        f"{convention.signature!r}{f' with {k} arrays as user data' if k else ''} ({convention.use})"
        for convention in CONVENTIONS
        for k in range(len(inputs) if convention.user_data else 1)
        if not convention.fits(inputs, outputs, k)
    ]
    arrays = ", ".join(f"{array.name}{list(array.shape) or ''}" for array in program.arguments)
    results = ", ".join(str(list(output.shape) or "float") for output in program.outputs)
    raise ArgumentError(
        f"signature {signature!r} for the kernel {program.name}({arrays}) -> {results}",
        why=why,
        do=f"these fit: {'; '.join(suited)}",
    )


def _text(program: Program | RolledProgram, convention: Convention, bound: int) -> str:
    """IR of an adapter: lengths are checked, pointers made, the kernel called; a failure gives NaN or SciPy's 0."""
    inputs, outputs = _sizes(program)
    split = len(inputs) - bound
    types = [IR.get(kind, "ptr") for kind in convention.types]
    result = IR[convention.result]
    lines = [f"define {result} @adapter({','.join(f'{kind} %a{k}' for k, kind in enumerate(types))}) nounwind {{"]
    lines += ["%result=alloca double,align 8", "%good=or i1 true,true"]
    test = "%good"
    for argument, size in ((convention.input_length, sum(inputs[:split])), (convention.output_length, sum(outputs))):
        if argument is not None:
            lines += [f"%l{argument}=icmp eq {types[argument]} %a{argument},{size}"]
            lines += [f"%t{argument}=and i1 {test},%l{argument}"]
            test = f"%t{argument}"
    lines += [f"br i1 {test},label %run,label %failed", "run:"]
    lines += _numbers(convention, sum(inputs[:split]))
    pointers = _parts(lines, "p", "%numbers", inputs[:split]) + _parts(
        lines, "u", f"%a{len(types) - 1}", inputs[split:]
    )
    target = "%result" if convention.outputs is None else f"%a{convention.outputs}"
    lines += call(pointers, _parts(lines, "o", target, outputs))
    lines += ["%well=icmp eq i32 %status,0", "br i1 %well,label %done,label %failed", "done:"]
    good = ["ret i32 1"] if result == "i32" else ["%value=load double,ptr %result,align 8", "ret double %value"]
    return "\n".join([*lines, *good, "failed:", FAILED[convention.result], "}", ""])


def _numbers(convention: Convention, count: int) -> list[str]:
    """IR lines that make `%numbers`, the pointer to the input numbers, from the argument that has them."""
    argument, kind = f"%a{convention.inputs}", convention.types[convention.inputs]
    if kind == "double *":
        return [f"%numbers=getelementptr i8,ptr {argument},i64 0"]
    lines = [f"%numbers=alloca [{max(count, 1)} x double],align 8"]
    if kind == "double":
        return [*lines, f"store double {argument},ptr %numbers,align 8"]
    whole = IR["npy_intp"]
    for k in range(count):
        lines += [
            f"%w{k}=getelementptr {whole},ptr {argument},i64 {k}",
            f"%i{k}=load {whole},ptr %w{k},align 4",
            f"%d{k}=sitofp {whole} %i{k} to double",
            f"%n{k}=getelementptr double,ptr %numbers,i64 {k}",
            f"store double %d{k},ptr %n{k},align 8",
        ]
    return lines


def _parts(lines: list[str], letter: str, start: str, sizes: Sequence[int]) -> list[str]:
    """Return pointers to arrays that lie one behind the other, and add the lines that compute them."""
    names = []
    for k, offset in enumerate(accumulate(sizes[:-1], initial=0) if sizes else ()):
        lines.append(f"%{letter}{k}=getelementptr double,ptr {start},i64 {offset}")
        names.append(f"%{letter}{k}")
    return names


_ONE_ENTRY = threading.Lock()  # a second entry, made by another thread, would leave the first one's address dangling


class CFunction:
    """What kernels offer to programs in C and to tools that call C."""

    __slots__ = ("_plain",)

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
        return plain_function(*self._plain_library())

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
        return low_level_callable(self._compiled, signature, data)

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
        evaluate: Any = self if self._flat is None else self._flat
        material = Material(self._compiled.program, self._compiled.options, evaluate)
        with self._compiled.again("export"):
            return export(material, directory, name, cpu=cpu, library=library, source=source, points=points)

    def _plain_library(self) -> tuple[Library, Compiled]:
        """The entry in plain convention, and the code that it calls: that of the time when it was first asked for."""
        with _ONE_ENTRY:
            if self._plain is None:
                compiled = self._compiled
                self._plain = (plain_library(compiled), compiled)
            return self._plain
