"""The entry function on a GPU: a thread computes a point, and a warp stores results in order.

Its parameters are the number of points, and for each array (inputs, then outputs) a pointer and the step between points
in machine numbers (0 for an argument that all points share); a point's numbers lie side by side.

Threads that store the numbers of their points one by one write far apart from each other, which is eight times as slow.
So each thread fills its row of a tile in shared memory, and the warp copies the tile, 32 neighbouring numbers at a
time. Rows are an odd number apart, so that no two threads use the same bank. Threads behind the last point compute that
point again, because a warp copies together.

Source of the method: M. Harris, An Efficient Matrix Transpose in CUDA C/C++ (NVIDIA 2013).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from codegen.machine.gpu.driver import WARP
from codegen.records import dataclass

ENTRY = "batch"
TILE = "addrspacecast (ptr addrspace(3) @tile to ptr)"
BARRIER = "llvm.nvvm.bar.warp.sync"

DECLARED = [f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()" for register in ("ctaid", "ntid", "tid")]
# The thread's number among all threads, which is that of its point.
FIND = """%block=call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
%size=call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
%thread=call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
%blocks=zext i32 %block to i64
%sizes=zext i32 %size to i64
%before=mul i64 %blocks,%sizes
%own=zext i32 %thread to i64
%point=add i64 %before,%own"""
OPEN = """define ptx_kernel void @batch(PARAMETERS) {
%in=alloca [INPUTS x ptr],align 8
%out=alloca [OUTPUTS x ptr],align 8
FIND
%inside=icmp ult i64 %point,%count
%last=sub i64 %count,1
%nearest=select i1 %inside,i64 %point,i64 %last
%lane=and i32 %thread,31
%warp=lshr i32 %thread,5
%start=mul i32 %warp,NUMBERS""".replace("FIND", FIND)

# Copies SIZE numbers from the rows of a warp to its points: WIDTH at a time that are neighbours, then STRIDE further.
HEAD = "i64 %count,i64 %point,i32 %lane,ptr %tile,ptr %out,i64 %step"
FLUSH = """define internal void @flush.SIZE.PITCH.WIDTH.STRIDE(HEAD) alwaysinline {
begin:
call void @llvm.nvvm.bar.warp.sync(i32 -1)
%wide=zext i32 %lane to i64
%first=sub i64 %point,%wide
%some=icmp ult i64 %first,%count
br i1 %some,label %copy,label %end
copy:
%left=sub i64 %count,%first
%few=icmp ult i64 %left,32
%whole=select i1 %few,i64 %left,i64 32
%points=trunc i64 %whole to i32
%total=mul i32 %points,SIZE
%mine=icmp ult i32 %lane,%total
br i1 %mine,label %next,label %end
next:
%t=phi i32 [%lane,%copy],[%then,%next]
%q=udiv i32 %t,SIZE
%above=mul i32 %q,SIZE
%j=sub i32 %t,%above
%row=mul i32 %q,PITCH
%place=add i32 %row,%j
%source=getelementptr SCALAR,ptr %tile,i32 %place
%value=load SCALAR,ptr %source,align BYTES
%q.wide=zext i32 %q to i64
%other=add i64 %first,%q.wide
%skipped=mul i64 %other,%step
%line=udiv i32 %j,WIDTH
%behind=mul i32 %line,WIDTH
%within=sub i32 %j,%behind
%down=mul i32 %line,STRIDE
%position=add i32 %down,%within
%j.wide=zext i32 %position to i64
%into=add i64 %skipped,%j.wide
%target=getelementptr SCALAR,ptr %out,i64 %into
store SCALAR %value,ptr %target,align BYTES
%then=add i32 %t,32
%more=icmp ult i32 %then,%total
br i1 %more,label %next,label %end
end:
call void @llvm.nvvm.bar.warp.sync(i32 -1)
ret void
}""".replace("HEAD", HEAD)


def filled(text: str, **values: object) -> str:
    """Return a text with values in the place of names, one after the other."""
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text


@dataclass(frozen=True)
class KernelEntry:
    """The entry of a kernel of some inputs and outputs, whose threads have rows of these lengths in the tile.

    There is a row for each output, or one for all, or none: then results are stored directly, one by one.
    """

    inputs: int
    outputs: int
    scalar: str
    bytes: int
    rows: tuple[int, ...] = ()

    @property
    def pitches(self) -> list[int]:
        """From a thread's row to the next, odd."""
        return [length | 1 for length in self.rows]

    @property
    def shared(self) -> int:
        """Bytes of shared memory to a warp.

        >>> KernelEntry(1, 2, "double", 8, (3, 4)).shared
        2048
        """
        return WARP * sum(self.pitches) * self.bytes

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Types and names."""
        parameters = [("i64", "%count")]
        for letter, attribute, count in (("i", " readonly", self.inputs), ("o", "", self.outputs)):
            for k in range(count):
                parameters += [(f"ptr noalias{attribute} align 8", f"%{letter}{k}"), ("i64", f"%{letter}{k}.step")]
        return parameters

    @property
    def body_parameters(self) -> list[tuple[str, str]]:
        """Types and names of the parameters of the body: its point, its row of the tile, and the outputs."""
        parameters = [("i64", "%count"), ("i64", "%point"), ("i32", "%lane")]
        parameters += [("ptr", f"%{name}{k}") for k in range(len(self.rows)) for name in ("tile", "row")]
        return parameters + [pair for k in range(self.outputs) for pair in (("ptr", f"%o{k}"), ("i64", f"%o{k}.step"))]

    def flush(self, row: int, output: int, begin: int, size: int) -> list[str]:
        """Return the lines that copy `count` numbers from the beginning of a row to an output, from a position on."""
        return self._flush(row, output, str(begin), f"{size}.{self.pitches[row]}.{size}.{size}")

    def flush_columns(self, output: int, column: str, width: int, columns: int) -> list[str]:
        """Return the lines that copy an output's row, some columns of a matrix, from a column on."""
        return self._flush(output, output, column, f"{self.rows[output]}.{self.pitches[output]}.{width}.{columns}")

    def _flush(self, row: int, output: int, begin: str, name: str) -> list[str]:
        target = f"%o{output}.from{begin.removeprefix('%')}"
        arguments = f"i64 %count,i64 %point,i32 %lane,ptr %tile{row},ptr {target},i64 %o{output}.step"
        return [
            f"{target}=getelementptr {self.scalar},ptr %o{output},i64 {begin}",
            f"call void @flush.{name}({arguments})",
        ]

    def text(self, body: Sequence[str], functions: str) -> str:
        """Return the entry around lines that compute a point, and what it and some functions call.

        The lines have tables of pointers to inputs, %in, and to places of outputs, %out, and `body_parameters`.
        """
        lines = list(DECLARED)
        if self.rows:
            lines.append(f"declare void @{BARRIER}(i32)")
            lines.append(f"@tile=external addrspace(3) global [0 x {self.scalar}],align 16")
        for numbers in sorted(set(re.findall(r"call void @flush\.([\d.]+)\(", "\n".join([functions, *body])))):
            named = dict(zip(("SIZE", "PITCH", "WIDTH", "STRIDE"), numbers.split("."), strict=True))
            lines.append(filled(FLUSH, **named, SCALAR=self.scalar, BYTES=self.bytes))
        inputs, outputs, rows = max(self.inputs, 1), max(self.outputs, 1), WARP * sum(self.pitches)
        parameters = ",".join(map(" ".join, self.parameters))
        lines.append(filled(OPEN, PARAMETERS=parameters, INPUTS=inputs, OUTPUTS=outputs, NUMBERS=rows))
        lines += self._places("i", "%in", self.inputs)
        if self.rows:
            lines += [*self._tile(), *body]
        else:
            lines += [*self._places("o", "%out", self.outputs), "br i1 %inside,label %run,label %end", "run:", *body]
            lines += ["br label %end", "end:"]
        return "\n".join([*lines, "ret void", "}"]) + "\n"

    def _tile(self) -> list[str]:
        """Find the thread's own rows; where outputs have a row each, they are put there."""
        lines = []
        bases = accumulate((WARP * pitch for pitch in self.pitches[:-1]), initial=0)
        for k, (base, pitch) in enumerate(zip(bases, self.pitches, strict=True)):
            lines += [
                f"%base{k}=add i32 %start,{base}",
                f"%tile{k}=getelementptr {self.scalar},ptr {TILE},i32 %base{k}",
                f"%moved{k}=mul i32 %lane,{pitch}",
                f"%row{k}=getelementptr {self.scalar},ptr %tile{k},i32 %moved{k}",
                f"%o{k}.entry=getelementptr ptr,ptr %out,i64 {k}",
                f"store ptr %row{k},ptr %o{k}.entry,align 8",
            ]
        return lines

    def _places(self, letter: str, table: str, count: int) -> list[str]:
        """Find the point's numbers in arrays."""
        lines = []
        for k in range(count):
            lines += [
                f"%{letter}{k}.at=mul i64 %nearest,%{letter}{k}.step",
                f"%{letter}{k}.own=getelementptr {self.scalar},ptr %{letter}{k},i64 %{letter}{k}.at",
                f"%{letter}{k}.entry=getelementptr ptr,ptr {table},i64 {k}",
                f"store ptr %{letter}{k}.own,ptr %{letter}{k}.entry,align 8",
            ]
        return lines
