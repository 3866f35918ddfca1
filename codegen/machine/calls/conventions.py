"""C signatures of SciPy, Ipopt and XLA, and adapters from them to kernels.

The linker gives an adapter the kernel's address. A function keeps its kernel alive.

Handlers of XLA's foreign function interface have the layout of version 0 of `xla/ffi/api/c_api.h`, which JAX ships: a
call frame has arrays of pointers to buffers, and a buffer its type, its numbers and its extents. A frame with the
extension "metadata" asks for the version; XLA refuses handlers of another major version than 0.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from codegen.code_memory import MachineCode, MappedCode, PlacedCode
from codegen.encoding.adapters import Adapter, Place, adapter_code
from codegen.engine import compile_text
from codegen.errors import ArgumentError
from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.ir.program import Declared, Input, Output
from codegen.lanes import FLOAT64, SCALAR
from codegen.machine.calls.compiled import Compiled, heading
from codegen.options import Options
from codegen.processor import features, is_x86_64_linux

DECLARATION = "declare i32 @kernel(ptr,ptr)\n"
KERNEL = "def kernel(inputs: pointers, outputs: pointers) -> int32: ..."
CTYPES: dict[str, Any] = {
    "double": ctypes.c_double, "int": ctypes.c_int, "npy_intp": ctypes.c_ssize_t, "void *": ctypes.c_void_p,
    "bool": ctypes.c_bool, "double *": ctypes.POINTER(ctypes.c_double), "npy_intp *": ctypes.POINTER(ctypes.c_ssize_t),
}  # fmt: skip
KINDS = {
    "double": "double",
    "int": "int32",
    "npy_intp": "int",
    "double *": "doubles",
    "npy_intp *": "ints",
}  # of routines
FAILED = {"double": "nan", "int": "0", "bool": "0"}  # a bool is an int in its register
LAGRANGIAN = "bool (int, double *, double, int, double *, int, double *, void *)"
GENERAL = "double (int, double *)"  # of scipy.integrate: any number of arguments


HANDLER = "XLA_FFI_Error * (XLA_FFI_CallFrame *)"
# Words of 8 bytes, but for those of 4 bytes that are marked so.
XLA_NUMBERS: Numbers = {
    "EXTENSION": 1, "API": 2, "ARGUMENTS": 5, "RESULTS": 10,  # of XLA_FFI_CallFrame
    "KIND": 2, "MADE": 3,  # of XLA_FFI_Metadata_Extension (KIND: 4 bytes)
    "MAJOR": 6, "MINOR": 7, "TRAITS": 8,  # of XLA_FFI_Metadata (4 bytes)
    "API_MINOR": 9, "CREATE": 6,  # of XLA_FFI_Api (API_MINOR: 4 bytes)
    "SIZE": 2, "POINTERS": 4,  # of XLA_FFI_Args and XLA_FFI_Rets
    "DTYPE": 4, "DATA": 3, "RANK": 4, "EXTENTS": 5,  # of XLA_FFI_Buffer (DTYPE: 4 bytes)
    "FLOAT64": 12,  # XLA_FFI_DataType_F64
    "METADATA": 1,  # XLA_FFI_Extension_Metadata
    "INVALID": 3, "EXHAUSTED": 8,  # XLA_FFI_Error_Code
}  # fmt: skip
XLA = """
def error(frame: pointers, message: pointer, code: int) -> pointer:
    arguments = room(ints, 4)
    arguments[0] = 32
    arguments[1] = 0
    pointers(arguments)[2] = message
    arguments[3] = code
    create = pointers(frame[API])[CREATE]
    return create(arguments)

def is_array(buffer: pointers, rank: int) -> bool:
    return ints32(buffer)[DTYPE] == FLOAT64 and ints(buffer)[RANK] == rank

def adapter(frame: pointers) -> pointer:
    extension = pointers(frame[EXTENSION])
    if extension != null:
        if ints32(extension)[KIND] == METADATA:
            made = ints32(extension[MADE])
            made[MAJOR] = 0
            made[MINOR] = ints32(frame[API])[API_MINOR]
            made[TRAITS] = 0
            return null
"""


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
    label = label_of(convention.signature, bound)
    address = known.get(label, 0)
    if not address:
        library = _library(compiled, label, lambda: _compiled(program, convention, bound))
        address = library.addresses["adapter"]
        owners.append(library)
    types = [CTYPES[name] for name in (convention.result, *convention.types)]
    function: Any = ctypes.CFUNCTYPE(*types)(address)
    function.owners, function.signature = owners, convention.signature
    function.first = convention.first(len(program.arguments), bound)
    return function


_LIBRARIES: WeakKeyDictionary[MachineCode, dict[str, MachineCode]] = WeakKeyDictionary()  # asked for at every solve


def _library(compiled: Compiled, label: str, make: Callable[[], str | PlacedCode]) -> MachineCode:
    """Return the machine code of an adapter, compiled or encoded once for a kernel's machine code."""
    known = _LIBRARIES.setdefault(compiled.library, {})
    if label not in known:
        code, functions = make(), {"kernel": compiled.library.addresses["kernel"]}
        if isinstance(code, str):
            known[label] = compile_text(code, ("adapter",), functions)
        else:
            known[label] = MappedCode(code, functions)
    return known[label]


def _compiled(program: Declared, convention: Convention, bound: int) -> str | PlacedCode:
    """Return an adapter as machine code where the encoder can write it, else as IR."""
    described = _adapter(program, convention, bound)
    encoded = adapter_code(described) if is_x86_64_linux() and "avx" in features() else None
    return encoded or _text(described)


def _adapter(program: Declared, convention: Convention, bound: int) -> Adapter:
    """Return what an adapter checks, gives to the kernel and multiplies."""
    inputs, outputs = _sizes(program)
    split, types = convention.first(len(inputs), bound), convention.types
    taken, total = sum(inputs[:split]), sum(outputs)
    lengths = (convention.input_length, taken), (convention.output_length, total)
    places = [
        *_places(convention.inputs, inputs[:split]),
        *_places(len(types) - 1, inputs[split : split + bound]),
        *map(Place, convention.weights),
    ]
    results = _places(len(types) if convention.outputs is None else convention.outputs, outputs)
    checked = [(argument, length) for argument, length in lengths if argument is not None]
    return Adapter(convention.result, types, checked, places, results, taken, total, convention.factor)


def _places(argument: int, sizes: Sequence[int]) -> list[Place]:
    return [Place(argument, offset) for offset in accumulate(sizes[:-1], initial=0)] if sizes else []


def _handler(compiled: Compiled, bound: int) -> Any:
    """Return the ctypes function of a handler for XLA."""
    if bound:
        raise ArgumentError(f"signature {HANDLER!r} with values for inputs", why="it has no user data (void *)")
    library = _library(compiled, HANDLER, lambda: handler_text(compiled.declared))
    function: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(library.addresses["adapter"])
    function.owners, function.signature, function.first = [compiled, library], HANDLER, 0
    return function


def adapter_text(program: Declared, signature: str, bound: int) -> str:
    """Return the IR of an adapter; ArgumentError for a signature that does not fit."""
    return _text(_adapter(program, _convention(program, signature, bound), bound))


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
    subject = f"signature {signature!r} for the kernel {heading(program, Options())}"
    raise ArgumentError(subject, why=why, do=f"these fit: {'; '.join(suited)}")


def _canonical(signature: str) -> str:
    """Return a signature with the spaces and type names of the table."""
    spaced = re.sub(r"\s*\*", " *", re.sub(r"\s*,\s*", ", ", re.sub(r"\s*\(\s*", " (", signature.strip())))
    return re.sub(r"\b(intptr_t|Py_ssize_t|long long|long)\b", "npy_intp", spaced)


def _text(adapter: Adapter) -> str:
    """IR of an adapter: lengths are checked, pointers made, the kernel called; a failure gives NaN or SciPy's 0."""
    parameters = ", ".join(f"a{k}: {KINDS.get(kind, 'pointer')}" for k, kind in enumerate(adapter.types))
    result, fail = "double" if adapter.result == "double" else "int32", f"return {FAILED[adapter.result]}"
    lines = [f"def adapter({parameters}) -> {result}:"]
    for k, length in adapter.lengths:
        lines += [f" if a{k} != {length}:", f"  {fail}"]
    for k in sorted({place.argument for place in (*adapter.inputs, *adapter.outputs)}):
        lines += _numbers(k, [*adapter.types, "result"][k], adapter.taken)
    for table, places in (("inputs", adapter.inputs), ("outputs", adapter.outputs)):
        lines.append(f" {table} = room(pointers, {max(len(places), 1)})")
        lines += [f" {table}[{k}] = n{place.argument}[{place.numbers}:]" for k, place in enumerate(places)]
    lines += [" if kernel(inputs, outputs) != 0:", f"  {fail}"]
    if adapter.factor is not None:
        lines += [f" for k in range({adapter.given}):", f"  n{adapter.outputs[0].argument}[k] *= a{adapter.factor}"]
    done = f"n{len(adapter.types)}[0]" if result == "double" else "1"
    source = "\n".join([KERNEL, *lines, f" return {done}"])
    head = f"{'double' if result == 'double' else 'i32'} @adapter("
    return Routines({"": source}, lambda scalar: {}).text(SCALAR, public=[head])


def _numbers(k: int, kind: str, count: int) -> list[str]:
    """Lines that make the array of numbers `n` of an argument, or of the result."""
    match kind:
        case "double *":
            return [f" n{k} = a{k}"]
        case "void *":
            return [f" n{k} = doubles(a{k})"]
        case "double":
            return [f" n{k} = room(doubles, 1)", f" n{k}[0] = a{k}"]
        case "npy_intp *":
            room = f" n{k} = room(doubles, {max(count, 1)})"
            return [room, f" for k in range({count}):", f"  n{k}[k] = double(a{k}[k])"]
        case _:
            return [f" n{k} = room(doubles, 1)"]


def handler_text(program: Declared) -> str:
    """Return the IR of a handler, `adapter`, that calls `kernel` with the buffers of a call frame.

    Buffers of other numbers, types or shapes than the program's, and a kernel without memory, are XLA's errors.
    """
    refused = f"{program.name} takes {_told(program.arguments)} and gives {_told(program.outputs)}, all of them float64"
    failed = f"{program.name}: there is no memory for what its kernel keeps"
    lines = [*_buffers("ARGUMENTS", program.arguments), *_buffers("RESULTS", program.outputs)]
    lines += ["if kernel(arguments, results) != 0:", " return error(frame, failed, EXHAUSTED)", "return null"]
    source = "\n".join([KERNEL, XLA.rstrip(), *(f"    {line}" for line in lines)])
    numbers = XLA_NUMBERS | {"refused": "@adapter.refused", "failed": "@adapter.failed"}
    text = Routines({"": source}, lambda scalar: numbers).text(SCALAR, public=["ptr @adapter("])
    return "\n".join([_constant("adapter.refused", refused), _constant("adapter.failed", failed), text])


def _told(arrays: Sequence[Input | Output]) -> str:
    return ", ".join(str(tuple(array.shape)) for array in arrays) or "nothing"


def _buffers(place: str, arrays: Sequence[Input | Output]) -> list[str]:
    """Return lines that compare buffers with the declared ones, and make a table of pointers to their numbers."""
    table, refuse = place.lower(), " return error(frame, refused, INVALID)"
    lines = [f"{table} = room(pointers, {max(len(arrays), 1)})"]
    lines += [
        f"if ints(frame)[{place} + SIZE] != {len(arrays)}:",
        refuse,
        f"buffers = pointers(frame[{place} + POINTERS])",
    ]
    for k, array in enumerate(arrays):
        lines += [f"buffer = pointers(buffers[{k}])", f"if not is_array(buffer, {len(array.shape)}):", refuse]
        for axis, extent in enumerate(array.shape):
            lines += [f"if ints(buffer[EXTENTS])[{axis}] != {extent}:", refuse]
        lines.append(f"{table}[{k}] = buffer[DATA]")
    return lines


def _constant(name: str, message: str) -> str:
    data = message.encode() + b"\0"
    letters = "".join(f"\\{byte:02x}" for byte in data)
    return f'@{name}=private constant [{len(data)} x i8] c"{letters}"'
