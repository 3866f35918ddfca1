"""The routines of the call gate, written as `codegen.functions.routines`."""

from __future__ import annotations

from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.lanes import NumberType

# Words of 8 bytes: of any object its type, of an array its data, extents, strides and dtype, of a float the number, of
# a tuple its length and items; RANK and FLAGS of an array are words of 4 bytes.
OFFSETS: dict[str, float | str] = {
    "TYPE": 1, "DATA": 2, "EXTENTS": 4, "STRIDES": 5, "DTYPE": 7, "RANK": 6, "FLAGS": 16, "NUMBER": 2, "LENGTH": 2,
    "ITEMS": 3,
}  # fmt: skip
GLOBALS = (
    "PyFloat_Type",
    "PyTuple_Type",
    "PyArray_Type",
    "PyDoubleScalar_Type",
    "descriptor",
    "name_out",
    "name_slow",
    "table_offset",
)

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
    table = ints(self[address(table_offset)])
    given = table[1]
    if (count & 0x7FFFFFFFFFFFFFFF) != given:
        return slow(self, arguments, count, keywords)
    if keywords != null:
        if ints(keywords)[LENGTH] != 1:
            return slow(self, arguments, count, keywords)
        if keywords[ITEMS] != name_out:
            return slow(self, arguments, count, keywords)
    inputs = room(pointers, given)
    numbers = room(reals, given)
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
    outputs = room(pointers, table[2])
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
    outputs = room(pointers, table[2])
    objects = room(pointers, table[2])
    numbers = room(reals, table[2])
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

def trial(inputs: pointers, outputs: pointers) -> int32:
    """The kernel that the gate is tried on: it adds a number to two others, and both sums."""
    given = reals(inputs[0])
    number = reals(inputs[1])
    added = reals(outputs[0])
    total = reals(outputs[1])
    added[0] = given[0] + number[0]
    added[1] = given[1] + number[0]
    total[0] = added[0] + added[1]
    return 0
'''


MOST_ARRAYS = 8192  # inputs, and outputs: the gate keeps 40 bytes of each on the stack; more go through the slow path
MOST_DIMENSIONS = 8
ENTRY = 2 + MOST_DIMENSIONS  # int64 per array: dimensions, bytes, extents
HEADER = 4  # kernel address, number of inputs, of outputs, whether to release the GIL
ALIGNED, READ, WRITE = 0x0100, 0x0101, 0x0501  # NumPy flags: aligned, C-contiguous too, writeable too

EXPORTED = ("gate", "slow", "trial")


NUMBERS: Numbers = OFFSETS | {name: f"@{name}" for name in GLOBALS} | {
    "ENTRY": ENTRY, "READ": READ, "WRITE": WRITE, "HEADER": HEADER,
}  # fmt: skip


def gate_text(number: NumberType) -> str:
    """Return the LLVM IR of the routines for a type of numbers."""
    names = "\n".join(f"@{name} = external global i8" for name in GLOBALS)
    heads = ("ptr @gate(", "ptr @slow(", "i32 @trial(")
    return f"{names}\n{Routines({'': GATE}, lambda scalar: NUMBERS).text(number.lanes(), public=heads)}"
