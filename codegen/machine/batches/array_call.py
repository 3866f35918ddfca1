"""Call a kernel on arrays of points without Python code in between.

`Batch` takes tens of microseconds to find out where the points of a batch are. An array call is a builtin function of
the interpreter that does so in machine code, for arguments that are floats, or aligned arrays whose last axes have the
declared shape; the axes in front are the same in all of them, or absent. All axes in front, and all behind, have one
step. For anything else it returns NotImplemented, and the caller takes `Batch`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.code_memory import python_function
from codegen.engine import Library, Once, compile_text
from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.lanes import FLOAT64, NumberType
from codegen.machine.batches.batch_run import ALIGNMENT, STREAMED, Code
from codegen.machine.batches.batch_text import WORDS
from codegen.machine.calls.gate import interpreter_symbols, objects_known
from codegen.machine.calls.gate_routines import ALIGNED, OFFSETS

LONGEST = 1e7  # nanoseconds of a call; longer ones have progress and Ctrl-C, which `Batch` gives
LOCKED = 1e4  # nanoseconds that a call keeps the interpreter's lock
MOST_NUMBERS = 64  # arguments and results; each takes some hundred bytes of the stack
MOST_BYTES = 1 << 18  # of blocks of points, on the stack
MOST_AXES = 64  # NumPy's
CHANGED = 0x0500  # NumPy's flags of an array that is written: aligned and writeable
FASTCALL = 0x80  # METH_FASTCALL (methodobject.h)

# Words of a kernel's table: its address, that of the driver's function `batch`, the numbers of arguments and results,
# most points of a call, and of a call that keeps the lock, bytes of all blocks, 1 where the axes of a result are in
# front of those of the points, the type of numbers and their bytes, the address of two floats (nanoseconds of a point,
# and those left until other machine code is to be made), and that of the words of each array.
TABLE = (
    "KERNEL", "DRIVER", "ARGUMENTS", "RESULTS", "MOST", "LOCKED", "ROOM", "FRONT", "KIND", "SIZE", "PATIENCE",
    "FORMS",
)  # fmt: skip
# Words of an array: its numbers, its axes, the step of a single number, where its block is in the buffer, and the
# address of its shape.
FORM = ("ELEMENTS", "AXES", "SINGLE", "BLOCK", "SHAPE")

ARRAY_CALL = '''
def PyArray_Empty(rank: int32, extents: ints, dtype: pointer, by_columns: int32) -> pointer: ...
def PyTuple_New(size: int) -> pointer: ...
def Py_IncRef(object: pointer): ...
def Py_DecRef(object: pointer): ...
def PyEval_SaveThread() -> pointer: ...
def PyEval_RestoreThread(thread: pointer): ...

def other() -> pointer:
    Py_IncRef(Py_NotImplemented)
    return Py_NotImplemented

def step_of(extents: ints, strides: ints, rank: int) -> int:
    """Return the bytes from number to number; `IRREGULAR` where they differ."""
    step = 0
    size = 1
    for k in range(rank):
        axis = rank - 1 - k
        if extents[axis] != 1:
            if size == 1:
                step = strides[axis]
            if strides[axis] != step * size:
                return IRREGULAR
            size = size * extents[axis]
    return step

def differ(extents: ints, others: ints, rank: int) -> bool:
    for k in range(rank):
        if extents[k] != others[k]:
            return True
    return False

def describe(table: ints, array: pointers, form: ints, entry: ints, flags: int) -> int:
    """Write the words of an array; return its number of axes of points, -1 for any other object."""
    if array[TYPE] != PyArray_Type:
        return -1
    words = ints32(array)
    axes = words[RANK] - form[AXES]
    if axes < 0 or (words[FLAGS] & flags) != flags or array[DTYPE] != pointers(table)[KIND]:
        return -1
    extents = ints(array[EXTENTS])
    strides = ints(array[STRIDES])
    if differ(extents[axes:], ints(pointers(form)[SHAPE]), form[AXES]):
        return -1
    entry[0] = address(array[DATA])
    entry[1] = step_of(extents, strides, axes)
    entry[2] = step_of(extents[axes:], strides[axes:], form[AXES])
    if entry[1] == IRREGULAR or entry[2] == IRREGULAR:
        return -1
    return axes

def ends(entry: ints, points: int, size: int):
    """Write the first byte of an array and the one behind the last, from its address on."""
    point = (points - 1) * entry[1]
    element = (entry[3] - 1) * entry[2]
    entry[7] = (point if point < 0 else 0) + (element if element < 0 else 0)
    entry[8] = (point if point > 0 else 0) + (element if element > 0 else 0) + size

def overlaps(words: ints, result: int) -> bool:
    own = words[result * WORDS:]
    for k in range(result):
        entry = words[k * WORDS:]
        if own[0] + own[7] < entry[0] + entry[8] and entry[0] + entry[7] < own[0] + own[8]:
            return True
    return False

def run(table: ints, words: ints, points: int) -> int32:
    """Run all points; the buffer begins with the pointers that the kernel gets."""
    memory = room(bytes, table[ROOM] + ALIGNMENT)
    begin = memory[(ALIGNMENT - (address(memory) & (ALIGNMENT - 1))):]
    forms = ints(pointers(table)[FORMS])
    inputs = table[ARGUMENTS]
    for k in range(inputs + table[RESULTS]):
        entry = words[k * WORDS:]
        form = forms[k * FORM:]
        if form[ELEMENTS] == 1:
            entry[2] = form[SINGLE]
    batch = pointers(table)[DRIVER]
    thread = null
    if points > table[LOCKED]:
        thread = PyEval_SaveThread()
    status = batch(pointers(table)[KERNEL], words, inputs, table[RESULTS], pointers(begin), 0, points)
    if points > table[LOCKED]:
        PyEval_RestoreThread(thread)
    return status

def fresh(table: ints, words: ints, lead: ints, axes: int, points: int) -> pointer:
    """Make the results; return a tuple of them, null without memory."""
    forms = ints(pointers(table)[FORMS])
    extents = room(ints, 2 * MOST_AXES)
    made = pointers(PyTuple_New(table[RESULTS]))
    if made == null:
        return null
    for k in range(table[RESULTS]):
        form = forms[(table[ARGUMENTS] + k) * FORM:]
        entry = words[(table[ARGUMENTS] + k) * WORDS:]
        rank = form[AXES]
        before = rank if table[FRONT] != 0 else 0
        copy(extents[before:], lead, axes)
        copy(extents[(0 if table[FRONT] != 0 else axes):], ints(pointers(form)[SHAPE]), rank)
        Py_IncRef(pointers(table)[KIND])
        array = pointers(PyArray_Empty(axes + rank, extents, pointers(table)[KIND], 0))
        if array == null:
            Py_DecRef(made)
            return null
        made[ITEMS + k] = array
        entry[0] = address(array[DATA])
        entry[1] = table[SIZE] * (1 if table[FRONT] != 0 else form[ELEMENTS])
        entry[2] = table[SIZE] * (points if table[FRONT] != 0 else 1)
    return made

def array_call(self: pointers, arguments: pointers, count: int) -> pointer:
    table = ints(self[DATA])
    forms = ints(pointers(table)[FORMS])
    inputs = table[ARGUMENTS]
    arrays = inputs + table[RESULTS]
    if count != inputs and count != arrays:
        return other()
    words = room(ints, WORDS * arrays)
    numbers = room(doubles, arrays)
    clear(words, WORDS * arrays)
    lead = ints(self)
    axes = 0
    for k in range(arrays):
        form = forms[k * FORM:]
        words[k * WORDS + 3] = form[ELEMENTS]
        words[k * WORDS + 4] = form[BLOCK]
    for k in range(count):
        object = pointers(arguments[k])
        form = forms[k * FORM:]
        entry = words[k * WORDS:]
        if object[TYPE] == PyFloat_Type and form[AXES] == 0 and k < inputs and table[SIZE] == 8:
            numbers[k] = doubles(object)[NUMBER]
            entry[0] = address(numbers[k:])
        else:
            own = describe(table, object, form, entry, ALIGNED if k < inputs else CHANGED)
            if own < 0 or (own == 0 and k >= inputs) or (own != 0 and axes != 0 and own != axes):
                return other()
            if own != 0:
                if axes == 0:
                    axes = own
                    lead = ints(object[EXTENTS])
                if differ(ints(object[EXTENTS]), lead, axes):
                    return other()
    points = 1
    for k in range(axes):
        points = points * lead[k]
    patience = doubles(pointers(table)[PATIENCE])
    left = patience[1] - double(points) * patience[0]
    if axes == 0 or points == 0 or points > table[MOST] or left < 0.0:
        return other()
    result = Py_None
    if count == inputs:
        result = fresh(table, words, lead, axes, points)
        if result == null:
            return null
    else:
        for k in range(arrays):
            ends(words[k * WORDS:], points, table[SIZE])
            if k >= inputs:
                if overlaps(words, k) or (words[k * WORDS + 1] == 0 and points > 1):
                    return other()
        Py_IncRef(result)
    patience[1] = left
    if run(table, words, points) != 0:
        Py_DecRef(result)
        return other()
    if table[FRONT] != 0 and count == inputs:
        array = pointers(result)[ITEMS]
        Py_IncRef(array)
        Py_DecRef(result)
        return array
    return result
'''


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class CallTable(np.ndarray[Any, np.dtype[np.int64]]):
    """The words of a kernel's table, and the owners of the memory that they point to."""

    owners: tuple[Any, ...]


def array_call(
    code: Code, program: Program | RolledProgram, number: NumberType, nanoseconds: float,
    patience: NDArray[np.float64], *, front: bool,
) -> Callable[..., Any] | None:  # fmt: skip
    """Return the builtin function of a kernel of real numbers; None where the interpreter has no such calls.

    It returns a tuple of new results, or None where these are further arguments, which it writes into; with `front`
    the only result, whose own axes are in front. Its `__self__` is the table. A point takes some `nanoseconds`; the
    second number of `patience` is counted down.
    """
    arguments, outputs = program.arguments, program.outputs
    arrays: list[Input | Output] = [*arguments, *outputs]
    at, forms, shapes = -(-8 * len(arrays) // ALIGNMENT) * ALIGNMENT, [], []
    for array in arrays:
        unit = ALIGNMENT if array.size == 1 else code.unit
        block = -(-array.size * code.number // unit) * unit
        shapes.append(np.array(array.shape, dtype=np.int64))
        single = code.lanes.size if code.lanes.width == 1 else 0
        forms.append([array.size, len(array.shape), single, at, shapes[-1].ctypes.data])
        at += block
    largest = max([array.size for array in arrays], default=0)
    few = 0 < len(arguments) <= MOST_NUMBERS and len(outputs) <= MOST_NUMBERS and at <= MOST_BYTES
    if not (few and objects_known() and all(array.size for array in arrays)):
        return None
    laid = np.array(forms, dtype=np.int64)
    words = {
        "KERNEL": code.address, "DRIVER": code.driver.library.addresses["batch"], "ARGUMENTS": len(arguments),
        "RESULTS": len(outputs), "MOST": int(min(LONGEST / nanoseconds, STREAMED / (8 * largest))),
        "LOCKED": int(LOCKED / nanoseconds), "ROOM": at, "FRONT": int(front),
        "KIND": id(number.dtype), "SIZE": code.lanes.size,
        "PATIENCE": patience.ctypes.data, "FORMS": laid.ctypes.data,
    }  # fmt: skip
    table = np.array([words[name] for name in TABLE], dtype=np.int64).view(CallTable)
    table.owners = code, number, patience, laid, shapes
    kinds = ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p
    function: Callable[..., Any] = python_function("PyCFunction_NewEx", *kinds)(ctypes.byref(_method()), table, None)
    return function


@cache
def _method() -> _MethodDef:
    """Return the definition that all array calls share; functions read it until they are freed."""
    return _MethodDef(b"array_call", _library().addresses["array_call"], FASTCALL, None)


@Once
def _library() -> Library:
    symbols = interpreter_symbols() | {"Py_NotImplemented": id(NotImplemented), "Py_None": id(None)}
    return compile_text(_text(), ("array_call",), symbols, 2)


def _text() -> str:
    names = ("PyArray_Type", "PyFloat_Type", "Py_NotImplemented", "Py_None")
    numbers: Numbers = OFFSETS | {name: f"@{name}" for name in names} | {"WORDS": WORDS}
    for places in (TABLE, FORM):
        numbers |= {name: k for k, name in enumerate(places)}
    numbers |= {"FORM": len(FORM), "ALIGNMENT": ALIGNMENT, "ALIGNED": ALIGNED, "CHANGED": CHANGED}
    numbers |= {"MOST_AXES": MOST_AXES, "IRREGULAR": -(2**62)}
    routines = Routines({"": ARRAY_CALL}, lambda scalar: numbers)
    external = "\n".join(f"@{name} = external global i8" for name in names)
    return f"{external}\n{routines.text(FLOAT64.lanes(), public=['ptr @array_call('])}"
