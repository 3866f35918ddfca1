"""IR text of the batch driver: blocks of points from the user's arrays to lanes, through the kernel, and back.

One driver serves every kernel of one width. A block is as many points as there are lanes. `gather` brings the numbers
of one array and one block into lanes, `scatter` brings results back; both move numbers and never compute with them.
A block at the end that has fewer points than lanes repeats its last point: that lane computes what its neighbour
computes, and stores the same bits to the same place.
"""

from __future__ import annotations

from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines
from codegen.lanes import Lanes
from codegen.machine.batches.batch_threads import PART, SHARED

# int64 per array: address, bytes from point to point, from element to element, elements, offset of the block in the
# buffer, offset of the rows of a block where they go through the buffer one after the other, else 0, and whether these
# go past the caches; for a batch that is run at once, the first byte and the one behind the last, from the address on
WORDS = 9
# int64 of a batch that is run at once: kernel, arguments, results, buffer, number of points, 1 for fresh results, bytes
# of a number, address of what threads share or 0
HEAD = 8
# In words: the address of an array's numbers, its flags, and the first element of a tuple
OBJECTS: Numbers = {"DATA": 2, "FLAGS": 8, "WRITEABLE": 0x400, "TUPLE": 3}
IN_PLACE = -(2**63)  # from element to element, of an array that the kernel reads or writes itself


def driver_text(lanes: Lanes) -> str:
    """Return the module of the driver for one width.

    `i32 @batch(kernel, table, inputs, outputs, buffer, first, count)` runs the points first..first+count-1; the table
    has `WORDS` numbers per array, inputs first. The buffer starts with the pointers that the kernel gets.
    `i32 @batch_on_threads(parallel, shared)` does so on threads, see `batch_threads`.
    `i32 @batch_at_once(head, arrays, parallel)` finds the addresses in a tuple of NumPy's arrays and runs all points.
    It returns 2, and does nothing, where one is not aligned, or a result that was given overlaps another or is not
    writable.

    >>> "define i32 @batch" in driver_text(Lanes(4)), "shufflevector" in driver_text(Lanes())
    (True, False)
    """
    masked = [] if lanes.width == 1 else [
        f"declare {lanes.type} @llvm.masked.load.{lanes.suffix}.p0(ptr,i32,{lanes.truth},{lanes.type})",
        f"declare void @llvm.masked.store.{lanes.suffix}.p0({lanes.type},ptr,i32,{lanes.truth})",
    ]  # fmt: skip
    moves = [_move(lanes, "gather"), _move(lanes, "scatter"), stream_text(lanes.attributes), PART]
    return "\n".join([*moves, _driver(lanes), *masked])


def transpose(lanes: Lanes, rows: list[str]) -> tuple[list[str], list[str]]:
    """Return the IR that transposes a square of lanes, and the names of its columns.

    Stage d swaps the off-diagonal blocks of d by d: log2(width) stages of shuffles of two registers.

    >>> transpose(Lanes(2), ["%a", "%b"])[1]
    ['%t1.0', '%t1.1']
    """
    lines, width, distance = [], lanes.width, 1
    while distance < width:
        changed = list(rows)
        for low in range(width):
            if low & distance:
                continue
            high = low | distance
            for row, kept in ((low, 0), (high, distance)):
                mask = ",".join(f"i32 {_source(lane, distance, kept, width)}" for lane in range(width))
                changed[row] = f"%t{distance}.{row}"
                operands = f"{lanes.type} {rows[low]},{lanes.type} {rows[high]}"
                lines.append(f"{changed[row]}=shufflevector {operands},<{width} x i32> <{mask}>")
        rows, distance = changed, 2 * distance
    return lines, rows


def _source(lane: int, distance: int, kept: int, width: int) -> int:
    """Lane of the two rows, side by side, that a lane of the upper (kept = 0) or lower new row comes from."""
    own = lane & ~distance | kept
    return own + width if lane & distance else own


def _move(lanes: Lanes, name: str) -> str:
    """`gather` or `scatter`: three ways, for elements side by side, for points side by side, and for neither."""
    lines = [
        f"define internal void @{name}(ptr %row,i64 %point,i64 %element,i64 %n,ptr %block,i64 %valid) noinline nounwind"
        f"{lanes.attributes} {{",
        "begin:",
        *_rows(lanes),
    ]
    if lanes.width > 1:
        lines += [
            f"%near=icmp eq i64 %element,{lanes.size}",
            "br i1 %near,label %square,label %other",
            "other:",
            f"%whole=icmp eq i64 %valid,{lanes.width}",
            f"%beside=icmp eq i64 %point,{lanes.size}",
            "%both=and i1 %whole,%beside",
            "br i1 %both,label %lanes,label %single",
            *_squares(lanes, name),
            *_loop(lanes, "lanes", "other", _move_lanes(lanes, name)),
            *_loop(lanes, "single", "other", _move_single(lanes, name)),
        ]
    else:
        lines += ["br label %single", *_loop(lanes, "single", "begin", _move_single(lanes, name))]
    return "\n".join([*lines, "end:", "ret void", "}"])


def _rows(lanes: Lanes) -> list[str]:
    """Pointers to the points of a block; lanes without a point of their own point to the last one."""
    lines = ["%last=add i64 %valid,-1"]
    for lane in range(lanes.width):
        lines += [
            f"%c{lane}=icmp ult i64 {lane},%last",
            f"%p{lane}=select i1 %c{lane},i64 {lane},i64 %last",
            f"%d{lane}=mul i64 %p{lane},%point",
            f"%r{lane}=getelementptr i8,ptr %row,i64 %d{lane}",
        ]
    return lines


def _squares(lanes: Lanes, name: str) -> list[str]:
    """Elements side by side: squares of width by width are transposed in registers, the last one under a mask."""
    width = lanes.width
    mask = ",".join(f"i64 {lane}" for lane in range(width))
    spread = f"<{width} x i64> %one,<{width} x i64> poison,<{width} x i32> zeroinitializer"
    return [
        "square:",
        "%k=phi i64 [0,%begin],[%k.next,%full]",
        f"%k.next=add i64 %k,{width}",
        f"%bytes=mul i64 %k,{lanes.size}",
        f"%offset=mul i64 %bytes,{width}",
        "%at=getelementptr i8,ptr %block,i64 %offset",
        *[f"%a{lane}=getelementptr i8,ptr %r{lane},i64 %bytes" for lane in range(width)],
        "%fits=icmp ule i64 %k.next,%n",
        "br i1 %fits,label %full,label %tail",
        "full:",
        *_square(lanes, name, ""),
        "br label %square",
        "tail:",
        "%rest=sub i64 %n,%k",
        "%none=icmp eq i64 %rest,0",
        "br i1 %none,label %end,label %partial",
        "partial:",
        f"%one=insertelement <{width} x i64> poison,i64 %rest,i32 0",
        f"%all=shufflevector {spread}",
        f"%mask=icmp ult <{width} x i64> <{mask}>,%all",
        *_square(lanes, name, "%mask"),
        "br label %end",
    ]


def _square(lanes: Lanes, name: str, mask: str) -> list[str]:
    """One square; on the side of the user's array under the mask, on the side of the block whole."""
    kind, size, suffix, mark = lanes.type, lanes.size, lanes.suffix, "m" if mask else "f"
    step = size * lanes.width
    lines = [f"%b{mark}{lane}=getelementptr i8,ptr %at,i64 {lane * step}" for lane in range(lanes.width)]
    rows = [f"%{mark}{lane}" for lane in range(lanes.width)]
    source = "a" if name == "gather" else f"b{mark}"
    for lane, row in enumerate(rows):
        if name == "gather" and mask:
            operands = f"ptr %a{lane},i32 {size},{lanes.truth} {mask},{kind} zeroinitializer"
            lines.append(f"{row}=call {kind} @llvm.masked.load.{suffix}.p0({operands})")
        else:
            lines.append(f"{row}=load {kind},ptr %{source}{lane},align {size}")
    shuffles, columns = transpose(lanes, rows)
    lines += [line.replace("%t", f"%{mark}t") for line in shuffles]
    for lane, column in enumerate(column.replace("%t", f"%{mark}t") for column in columns):
        if name == "scatter" and mask:
            operands = f"{kind} {column},ptr %a{lane},i32 {size},{lanes.truth} {mask}"
            lines.append(f"call void @llvm.masked.store.{suffix}.p0({operands})")
        else:
            target = f"%a{lane}" if name == "scatter" else f"%b{mark}{lane}"
            lines.append(f"store {kind} {column},ptr {target},align {size}")
    return lines


def _loop(lanes: Lanes, label: str, before: str, body: list[str]) -> list[str]:
    """A loop over the elements: %x.offset in the user's array, %x.at in the block."""
    x = label[0]
    lines = [
        f"{label}:",
        f"%x.k=phi i64 [0,%{before}],[%x.next,%{label}.one]",
        "%x.more=icmp ult i64 %x.k,%n",
        f"br i1 %x.more,label %{label}.one,label %end",
        f"{label}.one:",
        "%x.next=add i64 %x.k,1",
        "%x.offset=mul i64 %x.k,%element",
        f"%x.step=mul i64 %x.k,{lanes.size * lanes.width}",
        "%x.at=getelementptr i8,ptr %block,i64 %x.step",
        *body,
        f"br label %{label}",
    ]
    return [line.replace("%x.", f"%{x}.") for line in lines]


def _move_lanes(lanes: Lanes, name: str) -> list[str]:
    """Points side by side: one register."""
    source, target = ("%x.user", "%x.at") if name == "gather" else ("%x.at", "%x.user")
    return [
        "%x.user=getelementptr i8,ptr %row,i64 %x.offset",
        f"%x.value=load {lanes.type},ptr {source},align {lanes.size}",
        f"store {lanes.type} %x.value,ptr {target},align {lanes.size}",
    ]


def _move_single(lanes: Lanes, name: str) -> list[str]:
    """One number at a time."""
    lines = []
    for lane in range(lanes.width):
        user, block = f"%x.u{lane}", f"%x.b{lane}"
        source, target = (user, block) if name == "gather" else (block, user)
        lines += [
            f"{user}=getelementptr i8,ptr %r{lane},i64 %x.offset",
            f"{block}=getelementptr {lanes.scalar},ptr %x.at,i64 {lane}",
            f"%x.v{lane}=load {lanes.scalar},ptr {source},align {lanes.size}",
            f"store {lanes.scalar} %x.v{lane},ptr {target},align {lanes.size}",
        ]
    return lines


# Modes: arrays that all points share are gathered once (0), the others block by block (1); the kernel gets pointers to
# the results (2), which are scattered after it (3). It works on the user's arrays themselves where they are blocks, or
# where with one lane the elements stand side by side (DIRECT). Many numbers are best read and written in one sequence
# of lines: the rows of a block are copied to the buffer and gathered there, or scattered there and copied (rows).
DRIVER = """
def gather(row: bytes, point: int, element: int, elements: int, block: bytes, valid: int): ...
def scatter(row: bytes, point: int, element: int, elements: int, block: bytes, valid: int): ...
def stream(to: bytes, origin: bytes, size: int): ...
def take_parts(parallel: pointer, shared: ints, units: int, threads: int): ...

def arrays(mode: int, table: ints, n: int, numbers: pointers, buffer: bytes, at: int, valid: int):
    for k in range(n):
        entry = table[k * WORDS:]
        point, element, elements, rows = entry[1], entry[2], entry[3], entry[5]
        user = bytes(pointers(entry)[0])[at * point:]
        block = buffer[entry[4]:]
        copied = buffer[rows:]
        side = copied if rows != 0 else user
        numbers[k] = user if element == DIRECT else block
        if element != DIRECT:
            if mode < 2:
                if (point == 0) == (mode == 0):
                    if rows != 0:
                        copy(copied, user, point * valid)
                    gather(side, point, element, elements, block, valid)
            elif mode == 3:
                scatter(side, point, element, elements, block, valid)
                if rows != 0:
                    if entry[6] != 0:
                        stream(user, copied, point * valid)
                    else:
                        copy(user, copied, point * valid)

def points(
    kernel: pointer, table: ints, inputs: int, outputs: int, buffer: pointers, first: int, count: int
) -> int32:
    targets = buffer[inputs:]
    results = table[inputs * WORDS:]
    at = first
    last = first + count
    while at != last:
        valid = last - at if last - at < WIDTH else WIDTH
        arrays(1, table, inputs, buffer, bytes(buffer), at, valid)
        arrays(2, results, outputs, targets, bytes(buffer), at, valid)
        if kernel(buffer, targets) != 0:
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

def batch_on_threads(parallel: pointer, shared: ints) -> int32:
    threads = shared[THREADS]
    shared[FAILED] = 0
    clear(shared[OWN:], 2 * threads)
    take_parts(parallel, shared, shared[UNITS], threads)
    return shared[FAILED]

def overlaps(table: ints, first: int, result: int) -> bool:
    low, high = first + table[result * WORDS + 7], first + table[result * WORDS + 8]
    for k in range(result):
        entry = table[k * WORDS:]
        if low < entry[0] + entry[8] and entry[0] + entry[7] < high:
            return True
    return False

def batch_at_once(head: ints, arrays: pointers, parallel: pointer) -> int32:
    inputs, results, fresh = head[1], head[2], head[5]
    table = head[HEAD:]
    for k in range(inputs + results):
        array = ints(arrays[TUPLE + k])
        address = array[DATA]
        table[k * WORDS] = address
        if address & (head[6] - 1) != 0:
            return 2
        if k >= inputs and fresh == 0:
            if array[FLAGS] & WRITEABLE == 0 or overlaps(table, address, k):
                return 2
    if parallel != null:
        return batch_on_threads(parallel, ints(pointers(head)[7]))
    return batch(pointers(head)[0], table, inputs, results, pointers(pointers(head)[3]), 0, head[4])
"""


def _driver(lanes: Lanes) -> str:
    direct = lanes.size if lanes.width == 1 else IN_PLACE
    numbers: Numbers = {"WORDS": WORDS, "HEAD": HEAD, "WIDTH": lanes.width, "DIRECT": direct, **OBJECTS, **SHARED}
    routines = Routines({"": DRIVER}, lambda scalar: numbers)
    return routines.text(
        Lanes(1, lanes.scalar),
        public=["i32 @batch(", "i32 @batch_on_threads(", "i32 @batch_at_once("],
        beside=["gather", "scatter", "stream", "take_parts"],
    )


STREAM = """
define internal void @stream(ptr %to,ptr %from,i64 %bytes) noinline nounwind ATTRIBUTES {
begin:
 %address=ptrtoint ptr %to to i64
 %negative=sub i64 0,%address
 %gap=and i64 %negative,63
 %short=icmp ult i64 %bytes,%gap
 %head=select i1 %short,i64 %bytes,i64 %gap
 %rest=sub i64 %bytes,%head
 %whole=and i64 %rest,-64
 %tail=add i64 %head,%whole
 call void @llvm.memcpy.p0.p0.i64(ptr %to,ptr %from,i64 %head,i1 false)
 br label %next
next:
 %k=phi i64 [%head,%begin],[%k.next,%line]
 %more=icmp ult i64 %k,%tail
 br i1 %more,label %line,label %end
line:
 %source=getelementptr i8,ptr %from,i64 %k
 %target=getelementptr i8,ptr %to,i64 %k
 %value=load <16 x i32>,ptr %source,align 4
 store <16 x i32> %value,ptr %target,align 64,!nontemporal !0
 %k.next=add i64 %k,64
 br label %next
end:
 %left=sub i64 %bytes,%tail
 %last.source=getelementptr i8,ptr %from,i64 %tail
 %last.target=getelementptr i8,ptr %to,i64 %tail
 call void @llvm.memcpy.p0.p0.i64(ptr %last.target,ptr %last.source,i64 %left,i1 false)
 ret void
}
!0=!{i32 1}
"""


def stream_text(attributes: str) -> str:
    """Return the function `stream(to, from, bytes)`, with attributes for the width of registers.

    >>> "nontemporal" in stream_text("")
    True
    """
    return STREAM.replace("ATTRIBUTES", attributes)
