"""The function that a GPU's driver starts: each thread finds its point, and warps deliver results in order.

Parameters are the number of points, and for each array of inputs and then of outputs a pointer and the step from a
point to the next in machine numbers (0 for an argument that all points share); a point's numbers lie side by side.

Threads of a warp that store the numbers of their points one by one write far apart from each other, which takes a GPU
eight times as long. So the 32 points of a warp are computed into a tile of shared memory, and then the warp copies the
tile, 32 numbers that are neighbours at a time. From a point to the next in a tile it is an odd number, so that no two
threads ask the same bank.

Source of the method: M. Harris, An Efficient Matrix Transpose in CUDA C/C++ (NVIDIA 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

ENTRY = "batch"
WARP = 32
TILE = "addrspacecast (ptr addrspace(3) @tile to ptr)"
REGISTERS = ("ctaid", "ntid", "tid")
BARRIER = "llvm.nvvm.bar.warp.sync"

FIND = """%block=call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
%size=call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
%thread=call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
%blocks=zext i32 %block to i64
%threads=zext i32 %size to i64
%before=mul i64 %blocks,%threads
%own=zext i32 %thread to i64
%point=add i64 %before,%own
%lane=and i32 %thread,31
%warp=lshr i32 %thread,5
%start=mul i32 %warp,NUMBERS"""

FILL = """define internal void @fill(PARAMETERS) alwaysinline {
%in=alloca [INPUTS x ptr],align 8
%out=alloca [OUTPUTS x ptr],align 8
FIND
%inside=icmp ult i64 %point,%count
br i1 %inside,label %run,label %end
run:
PLACES
%status=call i32 @kernel(ptr %in,ptr %out)
br label %end
end:
ret void
}"""

DELIVER = """define internal void @deliver(PARAMETERS) alwaysinline {
FIND
%lane.wide=zext i32 %lane to i64
%first=sub i64 %point,%lane.wide
%some=icmp ult i64 %first,%count
br i1 %some,label %begin,label %end
begin:
%left=sub i64 %count,%first
%few=icmp ult i64 %left,32
%whole=select i1 %few,i64 %left,i64 32
%points=trunc i64 %whole to i32
br label %copy0
COPIES
copyLAST:
br label %end
end:
ret void
}"""

COPY = """copyK:
%totalK=mul i32 %points,SIZE
%anyK=icmp ult i32 %lane,%totalK
br i1 %anyK,label %nextK,label %copyAFTER
nextK:
%tK=phi i32 [%lane,%copyK],[%thenK,%nextK]
%qK=udiv i32 %tK,SIZE
%qsK=mul i32 %qK,SIZE
%jK=sub i32 %tK,%qsK
%rowK=mul i32 %qK,PITCH
%placeK=add i32 %rowK,%jK
%movedK=add i32 %placeK,BASE
%fromK=add i32 %start,%movedK
%sourceK=getelementptr SCALAR,ptr TILE,i32 %fromK
%valueK=load SCALAR,ptr %sourceK,align BYTES
%qwK=zext i32 %qK to i64
%atK=add i64 %first,%qwK
%skipK=mul i64 %atK,%oK.step
%jwK=zext i32 %jK to i64
%intoK=add i64 %skipK,%jwK
%targetK=getelementptr SCALAR,ptr %oK,i64 %intoK
store SCALAR %valueK,ptr %targetK,align BYTES
%thenK=add i32 %tK,32
%moreK=icmp ult i32 %thenK,%totalK
br i1 %moreK,label %nextK,label %copyAFTER"""


@dataclass(frozen=True)
class Entry:
    """The entry of a kernel of some inputs, with the machine numbers of each output, through a tile or not."""

    inputs: int
    outputs: tuple[int, ...]
    scalar: str
    bytes: int
    tiled: bool = False

    @classmethod
    def of(cls, inputs: int, outputs: Sequence[int], scalar: str, size: int, shared: int) -> Entry:
        """Choose: with a tile where one of a warp fits into so many bytes, and numbers are not alone."""
        tiled = cls(inputs, tuple(outputs), scalar, size, tiled=True)
        return tiled if 0 < tiled.shared <= shared and max(outputs) > 1 else cls(inputs, tuple(outputs), scalar, size)

    @property
    def pitches(self) -> list[int]:
        """From a point to the next in the tile of each output: odd."""
        return [size | 1 for size in self.outputs] if self.tiled else []

    @property
    def shared(self) -> int:
        """Bytes of shared memory to a warp.

        >>> Entry(1, (3, 4), "double", 8, tiled=True).shared
        2048
        """
        return WARP * sum(self.pitches) * self.bytes

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Types and names."""
        found = [("i64", "%count")]
        for letter, attribute, count in (("i", " readonly", self.inputs), ("o", "", len(self.outputs))):
            for k in range(count):
                found += [(f"ptr noalias{attribute} align 8", f"%{letter}{k}"), ("i64", f"%{letter}{k}.step")]
        return found

    def text(self) -> str:
        """Return the entry and its parts: `fill` computes the point of a thread, `deliver` copies the tile."""
        parameters = ",".join(map(" ".join, self.parameters))
        arguments = ",".join(f"{kind.split()[0]} {name}" for kind, name in self.parameters)
        lines = [f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()" for register in REGISTERS]
        calls = [f"call void @fill({arguments})"]
        parts = [self._fill()]
        if self.tiled:
            lines += [
                f"declare void @{BARRIER}(i32)",
                f"@tile=external addrspace(3) global [0 x {self.scalar}],align 16",
            ]
            calls += [f"call void @{BARRIER}(i32 -1)", f"call void @deliver({arguments})"]
            parts.append(self._deliver())
        find = FIND.replace("NUMBERS", str(WARP * sum(self.pitches)))
        functions = "\n".join(parts).replace("FIND", find).replace("PARAMETERS", parameters)
        entry = [f"define ptx_kernel void @{ENTRY}({parameters}) {{", *calls, "ret void", "}"]
        return "\n".join([*lines, functions, *entry]) + "\n"

    def _fill(self) -> str:
        places = self._places("i", "%in", self.inputs, 0)
        if not self.tiled:
            places += self._places("o", "%out", len(self.outputs), 0)
        for k, (base, pitch) in enumerate(zip(self._bases(), self.pitches, strict=True)):
            places += [
                f"%o{k}.row=mul i32 %lane,{pitch}",
                f"%o{k}.moved=add i32 %o{k}.row,{base}",
                f"%o{k}.place=add i32 %o{k}.moved,%start",
                f"%o{k}.own=getelementptr {self.scalar},ptr {TILE},i32 %o{k}.place",
                f"%o{k}.entry=getelementptr ptr,ptr %out,i64 {k}",
                f"store ptr %o{k}.own,ptr %o{k}.entry,align 8",
            ]
        text = FILL.replace("PLACES", "\n".join(places)).replace("INPUTS", str(max(self.inputs, 1)))
        return text.replace("OUTPUTS", str(max(len(self.outputs), 1)))

    def _places(self, letter: str, table: str, count: int, first: int) -> list[str]:
        """Find the point's numbers in arrays."""
        lines = []
        for k in range(first, count):
            lines += [
                f"%{letter}{k}.at=mul i64 %point,%{letter}{k}.step",
                f"%{letter}{k}.own=getelementptr {self.scalar},ptr %{letter}{k},i64 %{letter}{k}.at",
                f"%{letter}{k}.entry=getelementptr ptr,ptr {table},i64 {k}",
                f"store ptr %{letter}{k}.own,ptr %{letter}{k}.entry,align 8",
            ]
        return lines

    def _bases(self) -> list[int]:
        """Where the tile of each output begins, among those of a warp."""
        return [WARP * numbers for numbers in accumulate(self.pitches[:-1], initial=0)] if self.tiled else []

    def _deliver(self) -> str:
        copies = []
        for k, (size, base, pitch) in enumerate(zip(self.outputs, self._bases(), self.pitches, strict=True)):
            text = COPY.replace("AFTER", str(k + 1)).replace("SIZE", str(max(size, 1))).replace("PITCH", str(pitch))
            text = text.replace("BASE", str(base)).replace("SCALAR", self.scalar).replace("BYTES", str(self.bytes))
            copies.append(text.replace("TILE", TILE).replace("K", str(k)))
        return DELIVER.replace("COPIES", "\n".join(copies)).replace("LAST", str(len(self.outputs)))
