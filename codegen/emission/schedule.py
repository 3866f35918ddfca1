"""Schedule: order the operations, split them into chunk functions, and lay out the frame and workspace.

Depth-first order from the outputs keeps values short-lived; LLVM's cost is superlinear in the size of a function, so
long programs are cut into functions of about 250 operations, which pass values through a workspace of reused slots.

Copies: a value with very many places is stored in some, and separate functions copy it to the others. LLVM's cost is
superlinear in the stores of one function: 10 000 stores of one constant took it 20 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, Row, lanes_of_row, operands_of
from codegen.ir.program import Program
from codegen.lanes import Lanes
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered
from codegen.processor import vector_bits, vector_registers
from codegen.records import dataclass

SINGLE_LIMIT = 1500  # up to here one function is both fastest to run and cheap enough to compile
CHUNK = 250


@dataclass(frozen=True)
class Schedule:
    """Chunks of rows in order of execution; `slots` are the places in the workspace of values that cross chunks."""

    chunks: list[list[int]]
    slots: dict[int, int]
    workspace: int


def schedule(lowered: Lowered, chunk: int | None = None) -> Schedule:
    """Return the order of the live operations, in chunks of `chunk` (default: one up to 1500 operations, then 250).

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> plan = schedule(lower(program_from_sympy([x], [sp.sin(x) + sp.cos(x)])), chunk=1)
    >>> len(plan.chunks), plan.workspace
    (3, 2)
    """
    order = depth_first(lowered)
    if chunk is None:
        chunk = len(order) if len(order) <= SINGLE_LIMIT else CHUNK
    chunk = max(chunk, 1)
    chunks = [order[start : start + chunk] for start in range(0, len(order), chunk)]
    return Schedule(chunks, *_slots(lowered, chunks))


def depth_first(lowered: Lowered) -> list[int]:
    """Return operations in depth-first order from the outputs, in output order; of leaves only stored ones."""
    rows, first = lowered.rows, FIRST_OPERAND
    done = bytearray(len(rows))
    order: list[int] = []
    for _, _, output in lowered.stores:
        if done[output]:
            continue
        stack = [output]
        while stack:
            index = stack.pop()
            if index < 0:
                order.append(~index)
                if not len(order) % EVERY:
                    check("ordering machine operations")
            elif not done[index]:
                done[index] = 1
                stack.append(~index)
                row = rows[index]
                for operand in row[: first.get(row[0], 1) - 1 : -1]:
                    if not done[operand] and rows[operand][0] not in LEAVES:
                        stack.append(operand)
    return order


def _slots(lowered: Lowered, chunks: list[list[int]]) -> tuple[dict[int, int], int]:
    """Assign a workspace slot to every value that a later chunk reads; a slot is free after the last such chunk."""
    rows = lowered.rows
    last: dict[int, int] = {}
    for number, chunk in enumerate(chunks):
        for index in chunk:
            for operand in operands_of(rows[index]):
                last[operand] = number
    slots: dict[int, int] = {}
    free: dict[int, list[int]] = {}  # by the number of values in a row
    ending: list[list[int]] = [[] for _ in range(len(chunks) + 1)]
    size = 0
    for number, chunk in enumerate(chunks):
        check("placing machine operations")
        for index in ending[number]:
            free[lanes_of_row(rows[index])].append(slots[index])
        for index in chunk:
            until = last.get(index, number)
            if until > number and rows[index][0] not in LEAVES:
                width = lanes_of_row(rows[index])
                unused = free.setdefault(width, [])
                if not unused:
                    unused.append(size)
                    size += width
                slots[index] = unused.pop()
                ending[until + 1].append(index)
    return slots, size


Place = tuple[int, int]  # output array, flat position
MOST = 500  # stores in one function, without the first store of each value


def split_stores(
    chunks: Sequence[Sequence[int]], stores: Sequence[tuple[int, int, int]], most: int = MOST
) -> tuple[dict[int, list[Place]], list[dict[Place, list[Place]]]]:
    """Return where each row is stored in its chunk, and the copies of further functions: targets by source.

    >>> split_stores([[7, 8]], [(0, 0, 7), (0, 1, 8), (0, 2, 7), (0, 3, 7), (0, 4, 7)], most=3)
    ({7: [(0, 0), (0, 2)], 8: [(0, 1)]}, [{(0, 0): [(0, 3), (0, 4)]}])
    """
    places: dict[int, list[Place]] = {}
    for array, position, row in stores:
        places.setdefault(row, []).append((array, position))
    copies: list[dict[Place, list[Place]]] = []
    size = most
    for chunk in chunks:
        stored = [row for row in chunk if row in places]
        left = max(0, most - len(stored))
        for row in stored:
            here = places[row]
            kept = 1 + min(left, len(here) - 1)
            left -= kept - 1
            places[row] = here[:kept]
            for place in here[kept:]:
                if size >= most:
                    copies.append({})
                    size = 0
                copies[-1].setdefault(here[0], []).append(place)
                size += 1
    return places, copies


def pointers(program: Program) -> list[str]:
    """Return the IR that loads the pointers to inputs (%i0...) and outputs (%o0...) from the tables %in and %out."""
    lines = []
    for letter, table, count in (("i", "%in", len(program.inputs)), ("o", "%out", len(program.outputs))):
        for k in range(count):
            lines.append(f"%p{letter}{k}=getelementptr ptr,ptr {table},i64 {k}")
            lines.append(f"%{letter}{k}=load ptr,ptr %p{letter}{k},align 8")
    return lines


LINE = 64  # bytes of a line of the cache
FREE = "call void @free(ptr %memory)"


def aligned(lanes: Lanes, operations: Sequence[Row], others: int = 0) -> str:
    """Return the attribute that aligns the stack of a function, so that a spilled register is in one cache line.

    Without it the stack begins at any 16 bytes. A function spills registers if it has more values than registers
    (`others` are values besides its operations), or if it calls functions.

    >>> aligned(Lanes(2), [("call", "exp", 0)])
    ''
    """
    size = min(lanes.size * lanes.width, vector_bits() // 8)
    few = len(operations) + others <= vector_registers() and not any(row[0] == "call" for row in operations)
    return "" if few or size <= 16 else f" alignstack({size})"


def workspace(size: int, large: bool) -> list[str]:
    """Return the IR of the workspace %w: on the stack, or if it is large on the heap (`FREE`); it may return 1.

    It begins with a line of the cache: registers that cross two lines are read and written at half the rate.
    """
    if not large:
        return [f"%w=alloca [{size} x i8],align {LINE}"]
    return [
        f"%memory=call ptr @malloc(i64 {size + LINE})",
        "%none=icmp eq ptr %memory,null",
        "br i1 %none,label %full,label %run",
        "full:",
        "ret i32 1",
        "run:",
        "%memory.at=ptrtoint ptr %memory to i64",
        "%memory.before=sub i64 0,%memory.at",
        f"%memory.gap=and i64 %memory.before,{LINE - 1}",
        "%w=getelementptr i8,ptr %memory,i64 %memory.gap",
    ]
