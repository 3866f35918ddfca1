"""Write a region in blocks: the blocks, on one thread or several, then the sums over blocks.

`@name.part` runs the repetitions of one block (`codegen.loops.emit.loop_text`), `@name.block` computes their range,
and `@name` runs all blocks. A table on the caller's stack has the pointers and the rounds for the blocks.
"""

from __future__ import annotations

from codegen.emission.emit import Emitted
from codegen.functions.routines import Routines
from codegen.functions.symbols import Symbol, symbol
from codegen.functions.workers import PARALLEL
from codegen.lanes import Lanes
from codegen.loops.emit.loop_lanes import SMALLER
from codegen.loops.emit.loop_text import Frame, Job, Written
from codegen.loops.emit.thread_blocks import Blocks

LARGE = 1 << 22  # bytes from which on threads share the clearing of a buffer
PIECE = 1 << 20  # bytes that a thread clears at once
LINE = 64  # bytes in a line of the cache: threads do not share those of their bodies
ADDING = """
def add(to: reals, copies: reals, count: int, room: int, size: int):
    for number in range(count):
        copy = copies[number * room:]
        for k in range(size):
            to[k] += copy[k]
"""


def adding(scalar: Lanes) -> Symbol:
    """Return the routine that adds `count` copies of `size` numbers, `room` numbers apart, in their order."""
    return Symbol("copies.add", Routines({"copies": ADDING}, lambda scalar: {}).compiled("copies.add", scalar).text)


def clearing(name: str, pointer: str, size: int, threads: int) -> list[str]:
    """Return the IR that sets `size` bytes to zero; on several threads where they are many (`zeros`)."""
    if threads == 1 or size < LARGE:
        return [f"call void @llvm.memset.p0.i64(ptr {pointer},i8 0,i64 {size},i1 false)"]
    return [
        f"{pointer}.given=alloca [2 x i64],align 8",
        f"store ptr {pointer},ptr {pointer}.given,align 8",
        f"{pointer}.bytes=getelementptr i64,ptr {pointer}.given,i64 1",
        f"store i64 {size},ptr {pointer}.bytes,align 8",
        f"call void @{PARALLEL}(ptr @{name}.zeros,ptr {pointer}.given,i64 {-(-size // PIECE)},i64 {threads})",
    ]


def zeros(name: str) -> Emitted:
    """Return the function that sets a piece of memory to zero."""
    text = f"""define internal void @{name}.zeros(ptr %given,i64 %b,i64 %thread) nounwind {{
%start=load ptr,ptr %given,align 8
%bytes.at=getelementptr i64,ptr %given,i64 1
%bytes=load i64,ptr %bytes.at,align 8
%first=mul i64 %b,{PIECE}
%left=sub i64 %bytes,%first
%count=call i64 @{SMALLER.name}(i64 %left,i64 {PIECE})
%place=getelementptr i8,ptr %start,i64 %first
call void @llvm.memset.p0.i64(ptr %place,i8 0,i64 %count,i1 false)
ret void
}}"""
    return Emitted([], [text], {SMALLER.name: SMALLER, PARALLEL: symbol(PARALLEL, 4)})


def in_blocks(job: Job, blocks: Blocks, part: Written, threads: int) -> Written:
    """Return the function of a region whose `part` runs one block, on up to `threads` threads."""
    line = LINE // job.scalar.size
    own = -(-part.scratch // line) * line + line if part.scratch else 0
    first = job.scratch + blocks.partial + blocks.count * blocks.copied
    whole = _Whole(job, blocks, threads)
    symbols = {SMALLER.name: SMALLER} | ({PARALLEL: symbol(PARALLEL, 4)} if threads > 1 else {})
    functions = [_block(job, blocks, first, own), whole.written()]
    more = Emitted([], functions, symbols | whole.symbols)
    return Written(part.emitted + more, first - job.scratch + threads * own)


def _block(job: Job, blocks: Blocks, first: int, own: int) -> str:
    """Return the function that runs block %b; %thread has its own memory for long bodies."""
    lines = [f"define internal void @{job.name}.block(ptr %given,i64 %b,i64 %thread) nounwind {{"]
    for k, word in enumerate(job.parameters.split(",")):
        kind, name = word.split()
        lines += [f"{name}.at=getelementptr i64,ptr %given,i64 {k}", f"{name}=load {kind},ptr {name}.at,align 8"]
    lines += [
        f"%first=mul i64 %b,{blocks.size}",
        f"%after=add i64 %first,{blocks.size}",
        f"%last=call i64 @{SMALLER.name}(i64 %after,i64 {blocks.units})",
        f"%row=mul i64 %b,{len(blocks.sums)}",
        f"%place=add i64 %row,{job.scratch}",
        f"%sums=getelementptr {job.scalar.type},ptr %work,i64 %place",
        f"%copies.before=mul i64 %b,{blocks.copied}",
        f"%copies.place=add i64 %copies.before,{job.scratch + blocks.partial}",
        f"%copies=getelementptr {job.scalar.type},ptr %work,i64 %copies.place",
        *(clearing(job.name, "%copies", blocks.copied * job.scalar.size, 1) if blocks.copies else []),
        f"%mine=mul i64 %thread,{own}",
        f"%begin=add i64 %mine,{first}",
        f"%own=getelementptr {job.scalar.type},ptr %work,i64 %begin",
        f"call void @{job.name}.part({job.parameters},i64 %first,i64 %last,ptr %sums,ptr %copies,ptr %own)",
        "ret void",
        "}",
    ]
    return "\n".join(lines)


class _Whole(Frame):
    """The function that runs all blocks."""

    def __init__(self, job: Job, blocks: Blocks, threads: int) -> None:
        super().__init__(job, f"@{job.name}({job.parameters}) noinline nounwind")
        self.blocks, self.threads = blocks, threads

    def written(self) -> str:
        words, block, count = self.job.parameters.split(","), f"@{self.job.name}.block", self.blocks.count
        self.write(f"%given=alloca [{len(words)} x i64],align 8")
        for k, word in enumerate(words):
            self.write(f"store {word},ptr {self.new(f'getelementptr i64,ptr %given,i64 {k}')},align 8")
        if self.threads > 1:
            self.write(f"call void @{PARALLEL}(ptr {block},ptr %given,i64 {count},i64 {self.threads})")
        else:
            self.write("br label %run", "run:", "%k=phi i64 [0,%entry],[%next,%run]")
            self.write(f"call void {block}(ptr %given,i64 %k,i64 0)", "%next=add i64 %k,1")
            self.write(f"%more=icmp ult i64 %next,{count}", "br i1 %more,label %run,label %end", "end:")
        self.totals()
        self.write("ret void")
        return self.text()

    def totals(self) -> None:
        """Add the sums and copies of all blocks in their order; then the totals to their places."""
        blocks, results = self.blocks, self.region.results
        if blocks.sums:
            sums = self.offset("%work", self.job.scratch)
            self.add(sums, self.offset(sums, len(blocks.sums)), blocks.count - 1, len(blocks.sums), len(blocks.sums))
            for k, c in enumerate(blocks.sums):
                self.add_to(self.fixed(results[c]), self.load(self.offset(sums, k)))
        for copy in blocks.copies:
            use = next(use for use in results if use.buffer == copy.buffer)
            begin = self.job.scratch + blocks.partial + blocks.begins[copy.buffer] + copy.first
            total = self.offset("%work", begin)
            self.add(total, self.offset(total, blocks.copied), blocks.count - 1, blocks.copied, copy.size)
            self.add(self.offset(self.view(use), copy.first), total, 1, 0, copy.size)

    def add(self, to: str, copies: str, count: int, room: int, size: int) -> None:
        function = adding(self.scalar)
        self.symbols[function.name] = function
        self.write(f"call void @{function.name}(ptr {to},ptr {copies},i64 {count},i64 {room},i64 {size})")
