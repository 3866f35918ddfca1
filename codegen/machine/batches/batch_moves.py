"""Transpose a block of points from the user's array into lanes, and back.

`gather` and `scatter` take the address of the first point, bytes from point to point and from element to element, the
number of elements, the block, and how many of its lanes have a point of their own.
"""

from __future__ import annotations

from codegen.lanes import Lanes


def moves_text(lanes: Lanes) -> str:
    """Return the functions `gather`, `scatter` and `stream(to, from, bytes)` for one width.

    >>> "nontemporal" in moves_text(Lanes(2)), "masked" in moves_text(Lanes(2))
    (True, True)
    """
    half = _half(lanes)
    masked = [] if lanes.width == 1 else [
        f"declare {half.type} @llvm.masked.load.{half.suffix}.p0(ptr,i32,{half.truth},{half.type})",
        f"declare void @llvm.masked.store.{half.suffix}.p0({half.type},ptr,i32,{half.truth})",
    ]  # fmt: skip
    stream = STREAM.replace("ATTRIBUTES", lanes.attributes)
    return "\n".join([_move(lanes, "gather"), _move(lanes, "scatter"), stream, *masked])


def transpose(lanes: Lanes, rows: list[str]) -> tuple[list[str], list[str]]:
    """Return the IR that transposes squares of lanes side by side, as many as there are rows, and the names of columns.

    Stage d swaps the off-diagonal blocks of d by d: log2(rows) stages of shuffles of two registers.

    >>> transpose(Lanes(2), ["%a", "%b"])[1]
    ['%t1.0', '%t1.1']
    """
    lines, width, distance = [], lanes.width, 1
    while distance < len(rows):
        changed = list(rows)
        for low in range(len(rows)):
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
    """Lane of the two rows, side by side, that moves to a lane of the upper (kept = 0) or lower new row."""
    own = lane & ~distance | kept
    return own + width if lane & distance else own


def _register(lanes: Lanes) -> Lanes:
    """As many of the lanes as one register of 512 bits holds."""
    return Lanes(min(lanes.width, 64 // lanes.size), lanes.scalar)


def _half(lanes: Lanes) -> Lanes:
    return Lanes(max(_register(lanes).width // 2, 1), lanes.scalar)


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
            "br i1 %near,label %panel,label %other",
            "other:",
            f"%whole=icmp eq i64 %valid,{lanes.width}",
            f"%beside=icmp eq i64 %point,{lanes.size}",
            "%both=and i1 %whole,%beside",
            "br i1 %both,label %lanes,label %single",
            *_panels(lanes, name),
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


def _panels(lanes: Lanes, name: str) -> list[str]:
    """Elements side by side: half a register at a time, of all points, the last ones under a mask.

    A register has two rows side by side, of points half its lanes apart. So loading or storing halves is one stage of
    the transposition, for which processors have other units than for shuffles.
    """
    half = _half(lanes)
    mask = ",".join(f"i64 {lane}" for lane in range(half.width))
    lines = [
        "panel:",
        "%k=phi i64 [0,%begin],[%k.next,%full]",
        f"%k.next=add i64 %k,{half.width}",
        f"%bytes=mul i64 %k,{lanes.size}",
        f"%offset=mul i64 %bytes,{lanes.width}",
        "%at=getelementptr i8,ptr %block,i64 %offset",
        *[f"%a{lane}=getelementptr i8,ptr %r{lane},i64 %bytes" for lane in range(lanes.width)],
        "%fits=icmp ule i64 %k.next,%n",
        f"br i1 %fits,label %full,label %{'tail' if half.width > 1 else 'end'}",
        "full:",
        *_panel(lanes, name, ""),
        "br label %panel",
    ]
    if half.width > 1:
        spread = f"<{half.width} x i64> %one,<{half.width} x i64> poison,<{half.width} x i32> zeroinitializer"
        lines += [
            "tail:",
            "%rest=sub i64 %n,%k",
            "%none=icmp eq i64 %rest,0",
            "br i1 %none,label %end,label %partial",
            "partial:",
            f"%one=insertelement <{half.width} x i64> poison,i64 %rest,i32 0",
            f"%all=shufflevector {spread}",
            f"%mask=icmp ult <{half.width} x i64> <{mask}>,%all",
            *_panel(lanes, name, "%mask"),
            "br label %end",
        ]
    return lines


def _panel(lanes: Lanes, name: str, mask: str) -> list[str]:
    """One panel; on the side of the user's array under the mask, on the side of the block whole."""
    lines, move = [], _gathered if name == "gather" else _scattered
    for first in range(0, lanes.width, _register(lanes).width):
        mark = f"%{'m' if mask else 'f'}{first}."
        moved = move(lanes, mark, mask, [first, first + _half(lanes).width])
        places = [f"{mark}b{k}=getelementptr i8,ptr %at,i64 {(k * lanes.width + first) * lanes.size}"
                  for k in range(_half(lanes).width)]  # fmt: skip
        lines += [line.replace("%t", f"{mark}t") for line in (*places, *moved)]
    return lines


def _gathered(lanes: Lanes, mark: str, mask: str, points: list[int]) -> list[str]:
    """Bring elements of the points of one register into the block: of two points at once, the first ones of halves."""
    register, half, size = _register(lanes), _half(lanes), lanes.size
    kind = f"<{half.width} x {half.scalar}>"  # also of one
    lines, rows = [], []
    both = ",".join(f"i32 {lane}" for lane in range(register.width))
    for k in range(half.width):
        for part, first in enumerate(points):
            load = f"load {kind},ptr %a{first + k},align {size}"
            if mask:
                operands = f"ptr %a{first + k},i32 {size},{half.truth} {mask},{kind} zeroinitializer"
                load = f"call {kind} @llvm.masked.load.{half.suffix}.p0({operands})"
            lines.append(f"{mark}h{k}.{part}={load}")
        rows.append(f"{mark}r{k}")
        operands = f"{kind} {mark}h{k}.0,{kind} {mark}h{k}.1"
        lines.append(f"{rows[-1]}=shufflevector {operands},<{register.width} x i32> <{both}>")
    shuffles, columns = transpose(register, rows)
    stores = [f"store {register.type} {column},ptr {mark}b{k},align {size}" for k, column in enumerate(columns)]
    return [*lines, *shuffles, *stores]


def _scattered(lanes: Lanes, mark: str, mask: str, points: list[int]) -> list[str]:
    """Bring elements of the points of one register from the block to them."""
    register, half, size = _register(lanes), _half(lanes), lanes.size
    kind = f"<{half.width} x {half.scalar}>"  # also of one
    rows = [f"{mark}r{k}" for k in range(half.width)]
    lines = [f"{row}=load {register.type},ptr {mark}b{k},align {size}" for k, row in enumerate(rows)]
    shuffles, columns = transpose(register, rows)
    lines += shuffles
    for k, column in enumerate(columns):
        for part, first in enumerate(points):
            taken = ",".join(f"i32 {part * half.width + lane}" for lane in range(half.width))
            value, operands = f"{mark}h{k}.{part}", f"{register.type} {column},{register.type} poison"
            store = f"store {kind} {value},ptr %a{first + k},align {size}"
            if mask:
                operands_stored = f"{kind} {value},ptr %a{first + k},i32 {size},{half.truth} {mask}"
                store = f"call void @llvm.masked.store.{half.suffix}.p0({operands_stored})"
            lines += [f"{value}=shufflevector {operands},<{half.width} x i32> <{taken}>", store]
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
