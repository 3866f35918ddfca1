"""IR of the batch driver: blocks of points from arrays to lanes, through the kernel, and back.

One driver serves every kernel of one width. A block is as many points as there are lanes. `gather` brings the numbers
of one array and one block into lanes, `scatter` brings results back; both move numbers and never compute with them.
A block at the end that has fewer points than lanes repeats its last point: that lane computes what its neighbour
computes, and stores the same bits to the same place.
"""

from __future__ import annotations

from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.lanes import Lanes
from codegen.machine.batches.batch_moves import moves_text

# int64 per array: address, bytes from point to point, from element to element, elements, offset of the block in the
# buffer, offset of the rows of a block where they go through the buffer one after the other, else 0, and whether these
# go past the caches, else how many bytes of a point are fetched before the kernel computes them; for an array call, the
# first byte and the one behind the last, from the address on
WORDS = 9
IN_PLACE = -(2**63)  # from element to element, of an array that the kernel reads or writes itself

# int64 that threads share: kernel, table, arguments, results, address and bytes of the buffer of each, first point,
# number of points, points of a unit, units, threads, 1 where a unit failed; behind them, for each thread, how many
# units of its own part have been taken, and 1 where its buffer has what all points share
OWN = 12
SHARED: Numbers = {"UNITS": 9, "THREADS": 10, "FAILED": 11, "OWN": OWN}


def driver_text(lanes: Lanes, of_blocks: bool = False) -> str:
    """Return the module of the driver for one width; its kernels may take many blocks of single numbers each.

    `i32 @batch(kernel, table, inputs, outputs, buffer, first, count)` runs the points first..first+count-1; the table
    has `WORDS` numbers per array, inputs first. The buffer starts with the pointers that the kernel gets.
    `i32 @batch_on_threads(parallel, shared)` does so on threads.

    >>> "define i32 @batch" in driver_text(Lanes(4)), "shufflevector" in driver_text(Lanes())
    (True, False)
    """
    return "\n".join([moves_text(lanes), _driver(lanes, of_blocks)])


# Modes: arrays that all points share are gathered once (0), the others block by block (1); the kernel gets pointers to
# the results (2), whose lines may be fetched, and which are scattered after it (3). It works on the user's arrays
# themselves where they are blocks, where with one lane the elements stand side by side (DIRECT), and where the points
# of a whole block have one number each, side by side; where all of them do, only pointers move. Many numbers are best
# read and written in one sequence of lines:
# the rows of a block are copied to the buffer and gathered there, or scattered there and copied (rows). Lines that will
# be written are fetched: they come to the nearest cache while the kernel computes.
#
# A thread takes the units of its own part, the same ones each time, so that its caches have the data of the time
# before; then the rest of the other parts. One is left for each call: there are as many calls as units.
DRIVER = """
def gather(row: bytes, point: int, element: int, elements: int, block: bytes, valid: int): ...
def scatter(row: bytes, point: int, element: int, elements: int, block: bytes, valid: int): ...
def stream(to: bytes, origin: bytes, size: int): ...

def fetch(to: bytes, size: int):
    k = 0
    while k < size:
        prefetch(to[k:])
        k += 64

def arrays(mode: int, table: ints, n: int, numbers: pointers, buffer: bytes, at: int, valid: int):
    for k in range(n):
        entry = table[k * WORDS:]
        point, element, elements, rows = entry[1], entry[2], entry[3], entry[5]
        user = bytes(pointers(entry)[0])[at * point:]
        block = buffer[entry[4]:]
        copied = buffer[rows:]
        side = copied if rows != 0 else user
        placed = element
        if elements == 1:
            if point == NUMBER:
                if valid == WIDTH:
                    placed = DIRECT
        numbers[k] = user if placed == DIRECT else block
        if placed != DIRECT:
            if mode < 2:
                if (point == 0) == (mode == 0):
                    if rows != 0:
                        copy(copied, user, point * valid)
                    gather(side, point, element, elements, block, valid)
            elif mode == 2:
                if rows == 0:
                    fetch(user, entry[6] * valid)
            else:
                scatter(side, point, element, elements, block, valid)
                if rows != 0:
                    if entry[6] != 0:
                        stream(user, copied, point * valid)
                    else:
                        copy(user, copied, point * valid)

def side_by_side(table: ints, n: int, shared: int) -> bool:
    for k in range(n):
        entry = table[k * WORDS:]
        if entry[1] != 0 or shared == 0:
            if entry[1] != NUMBER or entry[3] != 1:
                return False
    return True

def advance(table: ints, n: int, numbers: pointers):
    for k in range(n):
        numbers[k] = bytes(numbers[k])[table[k * WORDS + 1] * WIDTH:]

def points(
    kernel: pointer, table: ints, inputs: int, outputs: int, buffer: pointers, first: int, count: int
) -> int32:
    targets = buffer[inputs:]
    results = table[inputs * WORDS:]
    at = first
    last = first + count
    if count >= WIDTH and side_by_side(table, inputs, 1) and side_by_side(results, outputs, 0):
        arrays(1, table, inputs, buffer, bytes(buffer), at, WIDTH)
        arrays(2, results, outputs, targets, bytes(buffer), at, WIDTH)
        if OF_BLOCKS != 0:
            blocks = (last - at) >> SHIFT
            if kernel(buffer, targets, blocks, table[1:]) != 0:
                return 1
            at += blocks << SHIFT
        else:
            while last - at >= WIDTH:
                if kernel(buffer, targets) != 0:
                    return 1
                advance(table, inputs, buffer)
                advance(results, outputs, targets)
                at += WIDTH
    while at != last:
        valid = last - at if last - at < WIDTH else WIDTH
        arrays(1, table, inputs, buffer, bytes(buffer), at, valid)
        arrays(2, results, outputs, targets, bytes(buffer), at, valid)
        if kernel(buffer, targets, 1, table[1:]) != 0:
            return 1
        arrays(3, results, outputs, targets, bytes(buffer), at, valid)
        at += valid
    fence()
    return 0

def batch(
    kernel: pointer, table: ints, inputs: int, outputs: int, buffer: pointers, first: int, count: int
) -> int32:
    arrays(0, table, inputs, buffer, bytes(buffer), first, 1)
    return points(kernel, table, inputs, outputs, buffer, first, count)

def unit(shared: ints, number: int, thread: int) -> int32:
    where = pointers(shared)
    inputs, first, size = shared[2], shared[6], shared[8]
    begin = number * size
    left = shared[7] - begin
    buffer = pointers(bytes(where[4])[thread * shared[5]:])
    mine = shared[OWN + 2 * thread:]
    if mine[1] == 0:
        mine[1] = 1
        arrays(0, ints(where[1]), inputs, buffer, bytes(buffer), first, 1)
    count = left if left < size else size
    return points(where[0], ints(where[1]), inputs, shared[3], buffer, first + begin, count)

def part(shared: ints, call: int, thread: int):
    units, threads = shared[UNITS], shared[THREADS]
    k = thread
    number = atomic_add(shared[OWN + 2 * k:], 1) + k * units // threads
    while number >= (k + 1) * units // threads:
        k = k + 1 if k + 1 < threads else 0
        number = atomic_add(shared[OWN + 2 * k:], 1) + k * units // threads
    if unit(shared, number, thread) != 0:
        atomic_store(shared[FAILED:], 1)

def batch_on_threads(parallel: pointer, shared: ints) -> int32:
    threads = shared[THREADS]
    shared[FAILED] = 0
    clear(shared[OWN:], 2 * threads)
    parallel(part, shared, shared[UNITS], threads)
    return shared[FAILED]
"""


def _driver(lanes: Lanes, of_blocks: bool) -> str:
    direct = lanes.size if lanes.width == 1 else IN_PLACE
    numbers: Numbers = {"WORDS": WORDS, "WIDTH": lanes.width, **SHARED}
    numbers |= {
        "DIRECT": direct,
        "NUMBER": lanes.size,
        "OF_BLOCKS": int(of_blocks),
        "SHIFT": lanes.width.bit_length() - 1,
    }
    routines = Routines({"": DRIVER}, lambda scalar: numbers)
    return routines.text(
        Lanes(1, lanes.scalar),
        public=["i32 @batch(", "i32 @batch_on_threads("],
        beside=["gather", "scatter", "stream"],
    )
