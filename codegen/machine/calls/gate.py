"""The call gate: a vectorcall function in LLVM IR that takes arrays and floats, and the type that is called by it.

One gate serves every kernel of the process whose numbers are of one type: each instance of the native kernel type
carries a pointer to the gate and one to a table of int64 that describes its kernel. The gate checks type, dtype, shape
and flags of every argument, and the overlap of outputs with inputs; any surprise goes to the Python method
`_call_slow`, which handles or refuses it.

The native kernel type: a subclass of `Kernel` whose instances are called through the vectorcall protocol. The type is
made with `PyType_FromSpecWithBases`: two pointers are appended to each instance, the vectorcall function (the gate) and
the table that describes the kernel to it. A Python class cannot do this, and so pays for argument tuples on every call.
Where the interpreter is not the expected one, kernels stay plain Python objects.

The gate is written in the words of `codegen.functions.routines`. A surprise, for which `slow` is called, is what the
gate does not know or refuses: that is `_call_slow`'s to say.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
import sysconfig
from functools import cache
from typing import Any

import numpy as np

from codegen.engine import Library, Once, compile_text
from codegen.functions.routines import Routines
from codegen.ir.program import Input, Output
from codegen.lanes import FLOAT64, NumberType

# Words of 8 bytes: of any object its type, of an array its data, extents and dtype, of a float the number, of a tuple
# its length and items; RANK and FLAGS of an array are words of 4 bytes.
OFFSETS: dict[str, float | str] = {
    "TYPE": 1, "DATA": 2, "EXTENTS": 4, "DTYPE": 7, "RANK": 6, "FLAGS": 16, "NUMBER": 2, "LENGTH": 2, "ITEMS": 3,
}  # fmt: skip
GLOBALS = ("PyFloat_Type", "PyTuple_Type", "PyArray_Type", "PyDoubleScalar_Type", "descriptor", "name_out", "name_slow")

GATE = '''
def PyObject_GetAttr(object: pointer, name: pointer) -> pointer: ...
def PyObject_Vectorcall(function: pointer, arguments: pointers, count: int, keywords: pointer) -> pointer: ...
def Py_IncRef(object: pointer): ...
def Py_DecRef(object: pointer): ...
def PyFloat_FromDouble(number: double) -> pointer: ...
def PyErr_Clear(): ...
def PyTuple_New(size: int) -> pointer: ...
def PyTuple_SetItem(into: pointer, place: int, object: pointer) -> int32: ...
def PyEval_SaveThread() -> pointer: ...
def PyEval_RestoreThread(thread: pointer): ...
def PyArray_Empty(rank: int32, extents: ints, dtype: pointer, by_columns: int32) -> pointer: ...

def data(object: pointers, entry: ints, flags: int, room: reals) -> pointer:
    """Return where the numbers of an argument are, null for a surprise.

    A float is rounded to `room`; one that is too large for that is a surprise, as NumPy has a warning for it.
    """
    if object[TYPE] != PyArray_Type:
        is_number = object[TYPE] == PyFloat_Type or object[TYPE] == PyDoubleScalar_Type
        if not (is_number and entry[0] == 0 and flags == READ):
            return null
        number = doubles(object)[NUMBER]
        rounded = real(number)
        lost = number - double(rounded)
        if lost * lost == double(inf):
            return null
        room[0] = rounded
        return room
    words = ints32(object)
    is_ready = (words[FLAGS] & flags) == flags and words[RANK] == entry[0]
    if not (is_ready and object[DTYPE] == descriptor):
        return null
    extents = ints(object[EXTENTS])
    for k in range(entry[0]):
        if extents[k] != entry[2 + k]:
            return null
    return object[DATA]

def overlaps(start: pointer, size: int, others: ints, entries: ints, count: int) -> bool:
    """Return whether an array meets any of some others."""
    low = address(start)
    for k in range(count):
        if below(others[k], low + size) and below(low, others[k] + entries[k * ENTRY + 1]):
            return True
    return False

def run(table: pointers, inputs: pointers, outputs: pointers) -> int:
    """Run the kernel, without the interpreter's lock where it is to be released."""
    kernel = table[0]
    if ints(table)[3] == 0:
        return kernel(inputs, outputs)
    thread = PyEval_SaveThread()
    status = kernel(inputs, outputs)
    PyEval_RestoreThread(thread)
    return status

def release(objects: pointers, count: int):
    for k in range(count):
        Py_DecRef(objects[k])

def slow(self: pointer, arguments: pointers, count: int, keywords: pointer) -> pointer:
    method = PyObject_GetAttr(self, name_slow)
    if method == null:
        return null
    result = PyObject_Vectorcall(method, arguments, count, keywords)
    Py_DecRef(method)
    return result

def gate(self: pointers, arguments: pointers, count: int, keywords: pointers) -> pointer:
    table = ints(self[TABLE])
    given = table[1]
    if (count & 0x7FFFFFFFFFFFFFFF) != given:
        return slow(self, arguments, count, keywords)
    if keywords != null:
        if ints(keywords)[LENGTH] != 1:
            return slow(self, arguments, count, keywords)
        if keywords[ITEMS] != name_out:
            return slow(self, arguments, count, keywords)
    inputs = room(pointers, MOST)
    numbers = room(reals, MOST)
    for k in range(given):
        found = data(arguments[k], table[HEADER + k * ENTRY:], READ, numbers[k:])
        if found == null:
            return slow(self, arguments, count, keywords)
        inputs[k] = found
    if keywords == null:
        return made(self, arguments, count, keywords, inputs, table)
    return stored(self, arguments, count, keywords, inputs, table)

def stored(self: pointer, arguments: pointers, count: int, keywords: pointer, inputs: pointers, table: ints) -> pointer:
    """Compute into what is given as `out`, an array or a tuple of them."""
    outputs = room(pointers, MOST)
    given = table[1]
    results = table[HEADER + given * ENTRY:]
    out = arguments[given]
    items = arguments[given:]
    if table[2] != 1:
        if pointers(out)[TYPE] != PyTuple_Type:
            return slow(self, arguments, count, keywords)
        if ints(out)[LENGTH] != table[2]:
            return slow(self, arguments, count, keywords)
        items = pointers(out)[ITEMS:]
    for k in range(table[2]):
        entry = results[k * ENTRY:]
        found = data(items[k], entry, WRITE, null)
        if found == null:
            return slow(self, arguments, count, keywords)
        if overlaps(found, entry[1], inputs, table[HEADER:], given):
            return slow(self, arguments, count, keywords)
        if overlaps(found, entry[1], outputs, results, k):
            return slow(self, arguments, count, keywords)
        outputs[k] = found
    if run(table, inputs, outputs) != 0:
        return slow(self, arguments, count, keywords)
    Py_IncRef(out)
    return out

def made(self: pointer, arguments: pointers, count: int, keywords: pointer, inputs: pointers, table: ints) -> pointer:
    """Compute into new arrays, and numbers."""
    outputs = room(pointers, MOST)
    objects = room(pointers, MOST)
    numbers = room(reals, MOST)
    for k in range(table[2]):
        entry = table[HEADER + (table[1] + k) * ENTRY:]
        objects[k] = null
        outputs[k] = numbers[k:]
        if entry[0] != 0:
            Py_IncRef(descriptor)
            array = PyArray_Empty(entry[0], entry[2:], descriptor, 0)
            if array == null:
                release(objects, k)
                PyErr_Clear()
                return slow(self, arguments, count, keywords)
            objects[k] = array
            outputs[k] = pointers(array)[DATA]
    if run(table, inputs, outputs) != 0:
        release(objects, table[2])
        return slow(self, arguments, count, keywords)
    for k in range(table[2]):
        if objects[k] == null:
            number = PyFloat_FromDouble(double(numbers[k]))
            if number == null:
                release(objects, table[2])
                return null
            objects[k] = number
    if table[2] == 1:
        return objects[0]
    result = PyTuple_New(table[2])
    if result == null:
        release(objects, table[2])
        return null
    for k in range(table[2]):
        PyTuple_SetItem(result, k, objects[k])
    return result
'''


MOST_ARRAYS = 16  # inputs, and outputs, that the gate handles; more go through the slow path
MOST_DIMENSIONS = 8
ENTRY = 2 + MOST_DIMENSIONS  # int64 per array: dimensions, bytes, extents
HEADER = 4  # kernel address, number of inputs, of outputs, whether to release the GIL
READ, WRITE = 0x0101, 0x0501  # NumPy flags: C-contiguous, aligned (writeable)

PYTHON_FUNCTIONS = (
    "PyObject_GetAttr", "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyFloat_FromDouble", "PyTuple_New",
    "PyTuple_SetItem", "PyErr_Clear", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
NAME_OUT, NAME_SLOW = sys.intern("out"), sys.intern("_call_slow")  # kept alive: the gate compares identities
NUMPY_EMPTY = 184  # index of PyArray_Empty in NumPy's table of C functions


def supported() -> bool:
    """Whether this interpreter has the object layout that the gate relies on (CPython, 64 bit, with a GIL)."""
    plain = not any(sysconfig.get_config_var(name) for name in ("Py_GIL_DISABLED", "Py_DEBUG", "Py_TRACE_REFS"))
    return platform.python_implementation() == "CPython" and plain and struct.calcsize("P") == 8


def describe(
    address: int, inputs: tuple[Input, ...], outputs: tuple[Output, ...], release: bool, number: NumberType = FLOAT64
) -> Any:
    """Return the int64 table that describes a kernel to the gate, or None if it has too many arrays or dimensions."""
    arrays: list[Input | Output] = [*inputs, *outputs]
    if max(len(inputs), len(outputs)) > MOST_ARRAYS or any(len(array.shape) > MOST_DIMENSIONS for array in arrays):
        return None
    words = [address, len(inputs), len(outputs), int(release)]
    for array in arrays:
        unused = [0] * (MOST_DIMENSIONS - len(array.shape))
        words += [len(array.shape), number.dtype.itemsize * array.size, *array.shape, *unused]
    return (ctypes.c_int64 * len(words))(*words)


@Once
def gate_library(table_offset: int, number: NumberType) -> Library:
    """Compile the gate for a type of numbers; `table_offset` is where instances keep the pointer to their table."""
    known = OFFSETS | {name: f"@{name}" for name in GLOBALS} | {
        "ENTRY": ENTRY, "READ": READ, "WRITE": WRITE, "HEADER": HEADER, "MOST": MOST_ARRAYS,
        "TABLE": table_offset // POINTER,
    }  # fmt: skip
    routines = Routines({"": GATE}, lambda scalar: known)
    names = "\n".join(f"@{name} = external global i8" for name in GLOBALS)
    text = routines.text(number.lanes(), public=("ptr @gate(", "ptr @slow("))
    return compile_text(f"{names}\n{text}", ("gate", "slow"), _addresses(number), 2)


def _addresses(number: NumberType) -> dict[str, int]:
    api = ctypes.pythonapi
    found = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0 for name in PYTHON_FUNCTIONS}
    found |= {
        "PyFloat_Type": id(float),
        "PyTuple_Type": id(tuple),
        "PyArray_Type": id(np.ndarray),
        "PyDoubleScalar_Type": id(np.float64),
        "descriptor": id(number.dtype),
        "name_out": id(NAME_OUT),
        "name_slow": id(NAME_SLOW),
        "PyArray_Empty": _numpy_function(NUMPY_EMPTY),
    }
    return found


def _numpy_function(index: int) -> int:
    """Address of a function in NumPy's C-API table."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get_pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = get_pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return ctypes.c_void_p.from_address(table + 8 * index).value or 0


SLOT_CALL, SLOT_MEMBERS = 50, 72  # Py_tp_call, Py_tp_members (typeslots.h, stable ABI)
HAVE_VECTORCALL, HAVE_VERSION_TAG = 1 << 11, 1 << 18
MEMBER_SIZE, MEMBER_READ_ONLY = 19, 1  # T_PYSSIZET, READONLY (structmember.h)
POINTER = ctypes.sizeof(ctypes.c_void_p)


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def native_type(base: type) -> type | None:
    """Return the subclass of `base` with native calls, or None where the interpreter's layout is not the expected one.

    >>> class Base:
    ...     __slots__ = ()
    >>> made = native_type(Base)
    >>> made is None or made.__basicsize__ == Base.__basicsize__ + 16
    True
    """
    return _make_type(base) if supported() and layout_as_expected() else None


def attach(
    instance: object, base: type, table: ctypes.Array[ctypes.c_int64] | None, number: NumberType = FLOAT64
) -> None:
    """Give an instance of the native type its gate: the fast one with a table, else the one that calls `_call_slow`."""
    library = gate_library(base.__basicsize__ + POINTER, number)
    gate = library.addresses["slow" if table is None else "gate"]
    fields = (ctypes.c_void_p * 2).from_address(id(instance) + base.__basicsize__)
    fields[1] = None if table is None else ctypes.addressof(table)
    fields[0] = gate


def layout_as_expected() -> bool:
    """Whether arrays, floats and tuples have the fields that the gate reads, tried on real objects.

    >>> layout_as_expected() in (True, False)
    True
    """
    array = np.zeros((3, 2))

    def word(thing: object, offset: int) -> int:
        return ctypes.c_int64.from_address(id(thing) + offset).value

    pair = (array, 1.5)
    checks = (
        word(array, 8) == id(np.ndarray),
        word(array, 16) == array.ctypes.data,
        ctypes.c_int32.from_address(id(array) + 24).value == 2,
        list((ctypes.c_int64 * 2).from_address(word(array, 32))) == [3, 2],
        word(array, 56) == id(np.dtype(np.float64)),
        ctypes.c_int32.from_address(id(array) + 64).value & 0x0501 == 0x0501,
        ctypes.c_double.from_address(id(pair[1]) + 16).value == 1.5,
        ctypes.c_double.from_address(id(np.float64(2.5)) + 16).value != 0,
        word(pair, 16) == 2,
        word(pair, 24) == id(array),
    )
    return all(checks)


def _make_type(base: type) -> type:
    offset = base.__basicsize__
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", MEMBER_SIZE, offset, MEMBER_READ_ONLY, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
    slots = (_Slot * 3)(_Slot(SLOT_CALL, call), _Slot(SLOT_MEMBERS, ctypes.addressof(members)))
    name = f"{base.__module__}.{base.__qualname__}".encode()
    spec = _Spec(name, offset + 2 * POINTER, 0, HAVE_VERSION_TAG | HAVE_VECTORCALL, slots)
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec), ctypes.py_object)
    make = prototype(("PyType_FromSpecWithBases", ctypes.pythonapi))
    made: type = make(ctypes.byref(spec), (base,))
    return made


PROBE = """
define i32 @kernel(ptr %in,ptr %out) {
 %x=load ptr,ptr %in,align 8
 %s.at=getelementptr ptr,ptr %in,i64 1
 %s.pointer=load ptr,ptr %s.at,align 8
 %s=load double,ptr %s.pointer,align 8
 %x0=load double,ptr %x,align 8
 %x1.at=getelementptr double,ptr %x,i64 1
 %x1=load double,ptr %x1.at,align 8
 %y0=fadd double %x0,%s
 %y1=fadd double %x1,%s
 %total=fadd double %y0,%y1
 %y=load ptr,ptr %out,align 8
 store double %y0,ptr %y,align 8
 %y1.at=getelementptr double,ptr %y,i64 1
 store double %y1,ptr %y1.at,align 8
 %t.at=getelementptr ptr,ptr %out,i64 1
 %t=load ptr,ptr %t.at,align 8
 store double %total,ptr %t,align 8
 ret i32 0
}
"""
