"""Call a kernel of numbers on arrays of one shape without Python code in between.

`Batch` takes microseconds to find out where the points of a batch are. An array call is a builtin function of the
interpreter that does so in machine code, for arguments that are floats, or arrays of float64 of one shape that are
contiguous or have one axis. For anything else it returns NotImplemented, and the caller takes `Batch`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.engine import Library, Once, compile_text
from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.lanes import FLOAT64
from codegen.machine.batches.batch_run import ALIGNMENT, Code
from codegen.machine.batches.batch_text import WORDS
from codegen.machine.calls.gate import interpreter_symbols, objects_known
from codegen.machine.calls.gate_routines import ALIGNED, OFFSETS, READ

LONGEST = 1e7  # nanoseconds of a call; longer ones have progress and Ctrl-C, which `Batch` gives
LOCKED = 1e4  # nanoseconds that a call keeps the interpreter's lock
MOST_NUMBERS = 64  # arguments and results; each takes some hundred bytes of the stack
FASTCALL = 0x80  # METH_FASTCALL (methodobject.h)

# Words of a kernel's table: its address, that of the driver's function `batch`, the numbers of arguments and of results
# (0: a number), most points of a call, and of a call that keeps the lock, the step between elements of an array, the
# bytes of a number of a block, and of all, and the address of two floats: nanoseconds of a point, and those left until
# other machine code is to be made.
TABLE = ("KERNEL", "DRIVER", "ARGUMENTS", "RESULTS", "MOST", "LOCKED", "STEP", "BLOCK", "ROOM", "PATIENCE")

ARRAY_CALL = '''
def PyArray_Empty(rank: int32, extents: ints, dtype: pointer, by_columns: int32) -> pointer: ...
def Py_IncRef(object: pointer): ...
def Py_DecRef(object: pointer): ...
def PyEval_SaveThread() -> pointer: ...
def PyEval_RestoreThread(thread: pointer): ...

def other() -> pointer:
    Py_IncRef(Py_NotImplemented)
    return Py_NotImplemented

def points_of(array: pointers) -> int:
    """Return how many numbers an array has that is contiguous or has one axis; 0 for any other object."""
    if array[TYPE] != PyArray_Type:
        return 0
    words = ints32(array)
    flags = ALIGNED if words[RANK] == 1 else READ
    if words[RANK] == 0 or (words[FLAGS] & flags) != flags or array[DTYPE] != descriptor:
        return 0
    extents = ints(array[EXTENTS])
    points = 1
    for k in range(words[RANK]):
        points = points * extents[k]
    return points

def differ(array: pointers, first: pointers) -> bool:
    """Return whether two arrays have different shapes."""
    rank = ints32(array)[RANK]
    if rank != ints32(first)[RANK]:
        return True
    extents = ints(array[EXTENTS])
    others = ints(first[EXTENTS])
    for k in range(rank):
        if extents[k] != others[k]:
            return True
    return False

def step_of(array: pointers) -> int:
    """Return the bytes from number to number."""
    if ints32(array)[RANK] == 1:
        return ints(array[STRIDES])[0]
    return NUMBERS

def run(table: ints, words: ints, points: int) -> int32:
    """Run all points; the buffer begins with the pointers that the kernel gets."""
    arrays = table[ARGUMENTS] + 1
    first = (8 * arrays + ALIGNMENT - 1) & ~(ALIGNMENT - 1)
    memory = room(bytes, first + table[ROOM] + ALIGNMENT)
    begin = memory[(ALIGNMENT - (address(memory) & (ALIGNMENT - 1))):]
    for k in range(arrays):
        entry = words[k * WORDS:]
        entry[2] = table[STEP]
        entry[3] = 1
        entry[4] = first + k * table[BLOCK]
        clear(entry[5:], WORDS - 5)
    if table[RESULTS] > 1:
        result = words[table[ARGUMENTS] * WORDS:]
        result[2] = NUMBERS * points
        result[3] = table[RESULTS]
    batch = pointers(table)[DRIVER]
    if points <= table[LOCKED]:
        return batch(pointers(table)[KERNEL], words, table[ARGUMENTS], 1, pointers(begin), 0, points)
    thread = PyEval_SaveThread()
    status = batch(pointers(table)[KERNEL], words, table[ARGUMENTS], 1, pointers(begin), 0, points)
    PyEval_RestoreThread(thread)
    return status

def array_call(self: pointers, arguments: pointers, count: int) -> pointer:
    table = ints(self[DATA])
    if count != table[ARGUMENTS]:
        return other()
    words = room(ints, WORDS * (count + 1))
    numbers = room(doubles, count)
    shaped = pointers(self)
    points = 0
    for k in range(count):
        object = pointers(arguments[k])
        entry = words[k * WORDS:]
        if object[TYPE] == PyFloat_Type:
            numbers[k] = doubles(object)[NUMBER]
            entry[0] = address(numbers[k:])
            entry[1] = 0
        else:
            size = points_of(object)
            if size == 0:
                return other()
            if points == 0:
                points = size
                shaped = object
            else:
                if differ(object, shaped):
                    return other()
            entry[0] = address(object[DATA])
            entry[1] = step_of(object)
    patience = doubles(pointers(table)[PATIENCE])
    left = patience[1] - double(points) * patience[0]
    if points == 0 or points > table[MOST] or left < 0.0:
        return other()
    patience[1] = left
    rank = ints32(shaped)[RANK]
    extents = room(ints, rank + 1)
    extents[0] = table[RESULTS]
    copy(extents[1:], ints(shaped[EXTENTS]), rank)
    first = 0 if table[RESULTS] != 0 else 1
    Py_IncRef(descriptor)
    array = pointers(PyArray_Empty(rank + 1 - first, extents[first:], descriptor, 0))
    if array == null:
        return null
    result = words[count * WORDS:]
    result[0] = address(array[DATA])
    result[1] = NUMBERS
    if run(table, words, points) != 0:
        Py_DecRef(array)
        return other()
    return array
'''


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class CallTable(np.ndarray[Any, np.dtype[np.int64]]):
    """The words of a kernel's table, and the owners of the memory that they point to."""

    owners: tuple[Any, ...]


def array_call(
    code: Code, inputs: int, results: int, nanoseconds: float, patience: NDArray[np.float64]
) -> Callable[..., Any] | None:
    """Return the builtin function of a kernel of numbers; None where the interpreter has no such calls.

    It returns an array of the shape of its arguments, with an axis of `results` in front unless these are 0. Its
    `__self__` is the table. A point takes some `nanoseconds`; the second number of `patience` is counted down.
    """
    if not objects_known() or not inputs or inputs + results > MOST_NUMBERS:
        return None
    block = -(-code.number // ALIGNMENT) * ALIGNMENT
    blocks = inputs + max(results, 1) + code.lanes.width  # several numbers are moved in squares of lanes
    words = {
        "KERNEL": code.address, "DRIVER": code.driver.library.addresses["batch"], "ARGUMENTS": inputs,
        "RESULTS": results, "MOST": int(LONGEST / nanoseconds), "LOCKED": int(LOCKED / nanoseconds),
        "STEP": code.lanes.size if code.lanes.width == 1 else 0,
        "BLOCK": block, "ROOM": blocks * block, "PATIENCE": patience.ctypes.data,
    }  # fmt: skip
    table = np.array([words[name] for name in TABLE], dtype=np.int64).view(CallTable)
    table.owners = code, patience
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)
    make = prototype(("PyCFunction_NewEx", ctypes.pythonapi))
    function: Callable[..., Any] = make(ctypes.byref(_method()), table, None)
    return function


@cache
def _method() -> _MethodDef:
    """Return the definition that all array calls share; functions read it until they are freed."""
    return _MethodDef(b"array_call", _library().addresses["array_call"], FASTCALL, None)


@Once
def _library() -> Library:
    symbols = interpreter_symbols() | {"Py_NotImplemented": id(NotImplemented)}
    return compile_text(_text(), ("array_call",), symbols, 2)


def _text() -> str:
    names = ("PyArray_Type", "PyFloat_Type", "descriptor", "Py_NotImplemented")
    numbers: Numbers = OFFSETS | {name: f"@{name}" for name in names} | {"READ": READ, "WORDS": WORDS, "NUMBERS": 8}
    numbers |= {name: k for k, name in enumerate(TABLE)} | {"ALIGNMENT": ALIGNMENT, "ALIGNED": ALIGNED}
    routines = Routines({"": ARRAY_CALL}, lambda scalar: numbers)
    external = "\n".join(f"@{name} = external global i8" for name in names)
    return f"{external}\n{routines.text(FLOAT64.lanes(), public=['ptr @array_call('])}"
