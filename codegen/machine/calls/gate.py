"""The call gate: a vectorcall function in LLVM IR that takes arrays and floats.

One gate serves all kernels of one number type: each instance of the native kernel type has a pointer to the gate and
one to a table of int64 that describes its kernel. The gate checks type, dtype, shape and flags of every argument, and
the overlap of outputs with inputs. For anything else it calls the Python method `_call_slow`, which handles or refuses
it.

The native kernel type is a subclass of `Kernel` whose instances are called by the vectorcall protocol. It is made with
`PyType_FromSpecWithBases`, which appends two pointers to each instance: the vectorcall function (the gate) and the
table. A Python class cannot do this, and pays for argument tuples on every call. On other interpreters kernels stay
plain Python objects.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from functools import cache
from typing import Any

import numpy as np

from codegen.code_memory import MachineCode, python_function
from codegen.engine import Once, compile_text
from codegen.ir.program import Input, Output
from codegen.lanes import FLOAT64, NumberType
from codegen.machine.calls.gate_routines import EXPORTED, MOST_ARRAYS, MOST_DIMENSIONS, gate_text

PYTHON_FUNCTIONS = (
    "PyObject_GetAttr", "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyFloat_FromDouble", "PyTuple_New",
    "PyTuple_SetItem", "PyErr_Clear", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
NAME_OUT, NAME_SLOW = sys.intern("out"), sys.intern("_call_slow")  # kept alive: the gate compares identities
NUMPY_EMPTY = 184  # index of PyArray_Empty in NumPy's table of C functions


def supported() -> bool:
    """Whether this interpreter has the object layout that the gate relies on (CPython, 64 bit, with a GIL)."""
    other = "free-threading" in sys.version, hasattr(sys, "gettotalrefcount"), hasattr(sys, "getobjects")
    return platform.python_implementation() == "CPython" and not any(other) and struct.calcsize("P") == 8


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
def gate_of(base: type, number: NumberType = FLOAT64) -> MachineCode:
    """Return the gate of instances of the native type, and a kernel to try it on."""
    return compile_text(gate_text(number), EXPORTED, gate_symbols(base, number), 2)


def adopt_gate(base: type, library: MachineCode) -> None:
    """Take the gate that was saved with a kernel, so that a process that only calls it loads no compiler."""
    if "gate" in library.addresses and (base,) not in gate_of.made:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # kernels are called until the process has ended
        gate_of.made[base,] = library


def gate_symbols(base: type, number: NumberType = FLOAT64) -> dict[str, int]:
    """Return the addresses that the gate has in it, and the word in which instances keep the pointer to their table."""
    return interpreter_symbols(number) | {"table_offset": base.__basicsize__ // POINTER + 1}


def interpreter_symbols(number: NumberType = FLOAT64) -> dict[str, int]:
    """Return the addresses of functions and types of the interpreter and of NumPy."""
    api = ctypes.pythonapi
    addresses = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0 for name in PYTHON_FUNCTIONS}
    addresses |= {
        "PyFloat_Type": id(float),
        "PyTuple_Type": id(tuple),
        "PyArray_Type": id(np.ndarray),
        "PyDoubleScalar_Type": id(np.float64),
        "descriptor": id(number.dtype),
        "name_out": id(NAME_OUT),
        "name_slow": id(NAME_SLOW),
        "PyArray_Empty": _numpy_function(NUMPY_EMPTY),
    }
    return addresses


def _numpy_function(index: int) -> int:
    """Address of a function in NumPy's C-API table."""
    get_pointer = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
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
    return _make_type(base) if objects_known() else None


@cache
def objects_known() -> bool:
    """Whether objects of this interpreter may be read in memory."""
    return supported() and layout_as_expected()


def attach(
    instance: object, base: type, table: ctypes.Array[ctypes.c_int64] | None, number: NumberType = FLOAT64
) -> None:
    """Give an instance of the native type its gate: the fast one with a table, else the one that calls `_call_slow`."""
    gate = (gate_of(base) if number is FLOAT64 else gate_of(base, number)).addresses[
        "slow" if table is None else "gate"
    ]
    place = id(instance) + base.__basicsize__
    ctypes.c_void_p.from_address(place + POINTER).value = None if table is None else ctypes.addressof(table)
    ctypes.c_void_p.from_address(place).value = gate


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
        list((ctypes.c_int64 * 2).from_address(word(array, 40))) == [16, 8],
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
    kinds = ctypes.py_object, ctypes.POINTER(_Spec), ctypes.py_object
    kernel_type: type = python_function("PyType_FromSpecWithBases", *kinds)(ctypes.byref(spec), (base,))
    return kernel_type
