"""The native kernel type: a subclass of `Kernel` whose instances are called through the vectorcall protocol.

The type is made with `PyType_FromSpecWithBases`: two pointers are appended to each instance, the vectorcall function
(the gate) and the table that describes the kernel to it. A Python class cannot do this, and so pays for argument
tuples on every call. Where the interpreter is not the expected one, kernels stay plain Python objects.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from codegen.machine.calls.gate import gate_library, supported

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


def attach(instance: object, base: type, table: ctypes.Array[ctypes.c_int64] | None) -> None:
    """Give an instance of the native type its gate: the fast one with a table, else the one that calls `_call_slow`."""
    library = gate_library(base.__basicsize__ + POINTER)
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
