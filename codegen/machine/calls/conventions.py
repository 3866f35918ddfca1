"""C signatures of SciPy, Ipopt and XLA, and adapters from them to kernels.

The linker gives an adapter the kernel's address. A function keeps its kernel alive.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from codegen.code_memory import MachineCode
from codegen.engine import Library, compile_text
from codegen.errors import ArgumentError
from codegen.ir.program import Declared
from codegen.lanes import FLOAT64
from codegen.machine import forms
from codegen.machine.calls.compiled import Compiled
from codegen.machine.calls.xla_calls import HANDLER, handler_text

DECLARATION = "declare i32 @kernel(ptr,ptr)\n"
CTYPES: dict[str, Any] = {
    "double": ctypes.c_double, "int": ctypes.c_int, "npy_intp": ctypes.c_ssize_t, "void *": ctypes.c_void_p,
    "bool": ctypes.c_bool, "double *": ctypes.POINTER(ctypes.c_double), "npy_intp *": ctypes.POINTER(ctypes.c_ssize_t),
}  # fmt: skip
IR = {
    "double": "double",
    "int": "i32",
    "bool": "zeroext i1",
    "npy_intp": f"i{8 * ctypes.sizeof(ctypes.c_ssize_t)}",
}  # others are pointers
FAILED = {"double": "ret double 0x7FF8000000000000", "int": "ret i32 0", "bool": "ret i1 false"}
DONE = {"double": "ret double %value", "int": "ret i32 1", "bool": "ret i1 true"}
LAGRANGIAN = "bool (int, double *, double, int, double *, int, double *, void *)"
GENERAL = "double (int, double *)"  # of scipy.integrate: any number of arguments


class Convention(NamedTuple):
    """A C signature: the arguments with inputs and outputs (None: the result), and those that are lengths.

    `weights` are the arguments of further inputs, behind those of the user data; the outputs are multiplied by the
    argument `factor`.
    """

    signature: str
    use: str
    inputs: int
    outputs: int | None
    input_length: int | None = None
    output_length: int | None = None
    weights: tuple[int, ...] = ()
    factor: int | None = None

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
        """Return why the sizes of a kernel's arrays do not fit, "" if they do; `bound` inputs are user data."""
        if bound and not self.user_data:
            return "it has no user data (void *)"
        first = self.first(len(inputs), bound)
        if first < 0:
            return f"the kernel has {len(inputs)} inputs"
        if self.weights and (first == 0 or inputs[-1] != 1):
            return "it has multipliers and a factor behind the other inputs"
        if self.types[self.inputs] == "double" and list(inputs[:first]) != [1]:
            return "it has one number as input"
        if self.output_length is None and list(outputs) != [1]:
            return "it has one number as result"
        return ""

    def first(self, inputs: int, bound: int) -> int:
        """Return the number of the first input that is user data."""
        return inputs - len(self.weights) - bound


CONVENTIONS = [
    Convention("double (double)", "quad", 0, None),
    Convention("double (double, void *)", "quad", 0, None),
    Convention(GENERAL, "quad, nquad", 1, None, 0),
    Convention("double (int, double *, void *)", "quad, nquad", 1, None, 0),
    Convention("int (double *, npy_intp, double *, void *)", "ndimage.generic_filter", 0, 2, 1),
    Convention("int (double *, npy_intp, double *, npy_intp, void *)", "ndimage.generic_filter1d", 0, 2, 1, 3),
    Convention("int (npy_intp *, double *, int, int, void *)", "ndimage.geometric_transform", 0, 1, 2, 3),
    Convention("bool (int, double *, double *, void *)", "Ipopt's eval_f", 1, 2, 0),
    Convention("bool (int, double *, double *, void *)", "Ipopt's eval_grad_f", 1, 2, 0, 0),
    Convention("bool (int, double *, int, double *, void *)", "Ipopt's eval_g", 1, 3, 0, 2),
    Convention("bool (int, double *, int, int, double *, void *)", "Ipopt's eval_jac_g", 1, 4, 0, 3),
    Convention(LAGRANGIAN, "Ipopt's eval_h", 1, 6, 0, 5, (4, 2)),
    Convention(LAGRANGIAN, "Ipopt's eval_h without constraints", 1, 6, 0, 5, (), 2),
]


def adapter(compiled: Compiled, signature: str | None, bound: int = 0) -> Any:
    """Return the ctypes function of a signature; `bound` inputs are read from its user data.

    ArgumentError for a signature that is unknown or does not fit the kernel's arrays, with those that do.
    """
    program, number = compiled.declared, compiled.options.number
    if number is not FLOAT64:
        raise ArgumentError(f"a {number.name} kernel as LowLevelCallable", why="SciPy passes float64")
    if signature == HANDLER:
        return _handler(compiled, bound)
    convention = _convention(program, signature, bound)
    known = compiled.library.addresses
    owners: list[Any] = [compiled]
    address = known.get(label_of(convention.signature, bound), 0)
    if not address:
        library = _library(compiled, DECLARATION + _text(program, convention, bound))
        address = library.addresses["adapter"]
        owners.append(library)
    types = [CTYPES[name] for name in (convention.result, *convention.types)]
    function: Any = ctypes.CFUNCTYPE(*types)(address)
    function.owners, function.signature = owners, convention.signature
    function.first = convention.first(len(program.arguments), bound)
    return function


_LIBRARIES: WeakKeyDictionary[MachineCode, dict[str, Library]] = WeakKeyDictionary()  # solvers ask at every solve


def _library(compiled: Compiled, text: str) -> Library:
    """Return the machine code of an adapter, compiled once for a kernel's machine code."""
    known = _LIBRARIES.setdefault(compiled.library, {})
    if text not in known:
        known[text] = compile_text(text, ("adapter",), {"kernel": compiled.library.addresses["kernel"]})
    return known[text]


def _handler(compiled: Compiled, bound: int) -> Any:
    """Return the ctypes function of a handler for XLA."""
    if bound:
        raise ArgumentError(f"signature {HANDLER!r} with values for inputs", why="it has no user data (void *)")
    library = _library(compiled, DECLARATION + handler_text(compiled.declared, "adapter"))
    function: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(library.addresses["adapter"])
    function.owners, function.signature, function.first = [compiled, library], HANDLER, 0
    return function


def adapter_text(program: Declared, signature: str, bound: int) -> str:
    """Return the IR of an adapter; ArgumentError for a signature that does not fit."""
    return DECLARATION + _text(program, _convention(program, signature, bound), bound)


def label_of(signature: str, bound: int) -> str:
    """Return the name of an adapter beside a kernel that was saved with it."""
    return f"{signature}, {bound} bound"


def _sizes(program: Declared) -> tuple[list[int], list[int]]:
    return [array.size for array in program.arguments], [output.size for output in program.outputs]


def _convention(program: Declared, signature: str | None, bound: int) -> Convention:
    inputs, outputs = _sizes(program)
    if signature is None:
        signature = GENERAL if not bound else f"{GENERAL[:-1]}, void *)"
    if not isinstance(signature, str):
        raise ArgumentError(f"signature {signature!r}", why="it is a text in C, as of SciPy's documentation")
    canonical = signature if any(signature == entry.signature for entry in CONVENTIONS) else _canonical(signature)
    known = [convention for convention in CONVENTIONS if convention.signature == canonical]
    wrong = {convention: convention.fits(inputs, outputs, bound) for convention in known}
    fitting = next((convention for convention, why in wrong.items() if not why), None)
    if fitting is not None:
        return fitting
    why = next(iter(wrong.values()), "no convention of SciPy's or Ipopt's")
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


def _canonical(signature: str) -> str:
    """Return a signature with the spaces and type names of the table."""
    spaced = re.sub(r"\s*\*", " *", re.sub(r"\s*,\s*", ", ", re.sub(r"\s*\(\s*", " (", signature.strip())))
    return re.sub(r"\b(intptr_t|Py_ssize_t|long long|long)\b", "npy_intp", spaced)


def _text(program: Declared, convention: Convention, bound: int) -> str:
    """IR of an adapter: lengths are checked, pointers made, the kernel called; a failure gives NaN or SciPy's 0."""
    inputs, outputs = _sizes(program)
    split = convention.first(len(inputs), bound)
    types = [IR.get(kind, "ptr") for kind in convention.types]
    result = IR[convention.result]
    lines = [f"define {result} @adapter({','.join(f'{kind} %a{k}' for k, kind in enumerate(types))}) nounwind {{"]
    lines += ["%result=alloca double,align 8", "%good=or i1 true,true"]
    test = "%good"
    lengths = (convention.input_length, sum(inputs[:split])), (convention.output_length, sum(outputs))
    for k, (argument, size) in enumerate(lengths):
        if argument is not None:
            lines += [f"%l{k}=icmp eq {types[argument]} %a{argument},{size}"]
            lines += [f"%t{k}=and i1 {test},%l{k}"]
            test = f"%t{k}"
    lines += [f"br i1 {test},label %run,label %failed", "run:"]
    lines += _numbers(convention, sum(inputs[:split]))
    pointers = _parts(lines, "p", "%numbers", inputs[:split])
    pointers += _parts(lines, "u", f"%a{len(types) - 1}", inputs[split : split + bound])
    pointers += _weights(lines, convention)
    target = "%result" if convention.outputs is None else f"%a{convention.outputs}"
    lines += forms.call(pointers, _parts(lines, "o", target, outputs))
    lines += ["%well=icmp eq i32 %status,0", "br i1 %well,label %done,label %failed", "done:"]
    if convention.factor is not None:
        lines += _multiplied(target, f"%a{convention.factor}", sum(outputs))
    if convention.result == "double":
        lines.append("%value=load double,ptr %result,align 8")
    return "\n".join([*lines, DONE[convention.result], "failed:", FAILED[convention.result], "}", ""])


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


def _weights(lines: list[str], convention: Convention) -> list[str]:
    """Return pointers to the inputs behind the user data, and add the lines that store single numbers."""
    for argument in convention.weights:
        if convention.types[argument] == "double":
            lines += [f"%n{argument}=alloca double,align 8", f"store double %a{argument},ptr %n{argument},align 8"]
    return [f"%{'n' if convention.types[k] == 'double' else 'a'}{k}" for k in convention.weights]


def _multiplied(target: str, factor: str, count: int) -> list[str]:
    """IR lines that multiply numbers, in a loop."""
    if not count:
        return []
    return [
        "br label %next", "next:", "%k=phi i64 [0,%done],[%after,%next]",
        f"%place=getelementptr double,ptr {target},i64 %k", "%number=load double,ptr %place,align 8",
        f"%product=fmul double %number,{factor}", "store double %product,ptr %place,align 8", "%after=add i64 %k,1",
        f"%more=icmp ult i64 %after,{count}", "br i1 %more,label %next,label %end", "end:",
    ]  # fmt: skip


def _parts(lines: list[str], letter: str, start: str, sizes: Sequence[int]) -> list[str]:
    """Return pointers to consecutive arrays, and add the lines that compute them."""
    names = []
    for k, offset in enumerate(accumulate(sizes[:-1], initial=0) if sizes else ()):
        lines.append(f"%{letter}{k}=getelementptr double,ptr {start},i64 {offset}")
        names.append(f"%{letter}{k}")
    return names
