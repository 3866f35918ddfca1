"""The call gate: a vectorcall function in LLVM IR that takes NumPy arrays and Python floats straight to the kernel.

One gate serves every kernel of the process: each instance of the native kernel type carries a pointer to the gate and
one to a table of int64 that describes its kernel. The gate checks type, dtype, shape and flags of every argument, and
the overlap of outputs with inputs; any surprise goes to the Python method `_call_slow`, which handles or refuses it.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
import sysconfig
from typing import Any

import numpy as np

from codegen.engine import Library, Once, compile_text
from codegen.ir.program import Input, Output
from codegen.machine.calls.gate_text import DATA, GATE, OBJECTS, OVERLAPS, RUN

MOST_ARRAYS = 16  # inputs, and outputs, that the gate handles; more go through the slow path
MOST_DIMENSIONS = 8
ENTRY = 2 + MOST_DIMENSIONS  # int64 per array: dimensions, bytes, extents
HEADER = 4  # kernel address, number of inputs, of outputs, whether to release the GIL
READ, WRITE = 0x0101, 0x0501  # NumPy flags: C-contiguous, aligned (writeable)

PYTHON_FUNCTIONS = (
    "PyObject_GetAttr", "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyFloat_FromDouble", "PyTuple_New",
    "PyTuple_SetItem", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
NAME_OUT, NAME_SLOW = sys.intern("out"), sys.intern("_call_slow")  # kept alive: the gate compares identities
NUMPY_EMPTY = 184  # index of PyArray_Empty in NumPy's table of C functions


def supported() -> bool:
    """Whether this interpreter has the object layout that the gate relies on (CPython, 64 bit, with a GIL)."""
    plain = not any(sysconfig.get_config_var(name) for name in ("Py_GIL_DISABLED", "Py_DEBUG", "Py_TRACE_REFS"))
    return platform.python_implementation() == "CPython" and plain and struct.calcsize("P") == 8


def describe(address: int, inputs: tuple[Input, ...], outputs: tuple[Output, ...], release: bool) -> Any:
    """Return the int64 table that describes a kernel to the gate, or None if it has too many arrays or dimensions."""
    arrays: list[Input | Output] = [*inputs, *outputs]
    if max(len(inputs), len(outputs)) > MOST_ARRAYS or any(len(array.shape) > MOST_DIMENSIONS for array in arrays):
        return None
    words = [address, len(inputs), len(outputs), int(release)]
    for array in arrays:
        words += [len(array.shape), 8 * array.size, *array.shape, *[0] * (MOST_DIMENSIONS - len(array.shape))]
    return (ctypes.c_int64 * len(words))(*words)


@Once
def gate_library(table_offset: int) -> Library:
    """Compile the gate once per process; `table_offset` is where instances keep the pointer to their table."""
    text = OBJECTS + DATA + OVERLAPS + RUN + GATE
    for name, value in (("ENTRY", ENTRY), ("READ", READ), ("WRITE", WRITE), ("TABLE", table_offset),
                        ("HEADER", HEADER), ("MOST", MOST_ARRAYS)):  # fmt: skip
        text = text.replace(name, str(value))
    return compile_text(text, ("gate", "slow"), _addresses(), 2)


def _addresses() -> dict[str, int]:
    api = ctypes.pythonapi
    found = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0 for name in PYTHON_FUNCTIONS}
    found |= {
        "PyFloat_Type": id(float),
        "PyTuple_Type": id(tuple),
        "PyArray_Type": id(np.ndarray),
        "PyDoubleScalar_Type": id(np.float64),
        "float64_descriptor": id(np.dtype(np.float64)),
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
