"""Write a region in blocks: the blocks, on one thread or several, then the sums over blocks.

`@name.part` runs the repetitions of one block (`codegen.loops.emit.loop_text`), `@name.block` computes their range,
and `@name` runs all blocks. A table on the caller's stack has the pointers and the rounds for the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from codegen.emission.emit import Emitted
from codegen.functions.symbols import symbol
from codegen.functions.workers import PARALLEL
from codegen.loops.emit.loop_lanes import SMALLER
from codegen.loops.emit.loop_text import Frame, Job, Written
from codegen.loops.emit.thread_blocks import Blocks, Copy

LARGE = 1 << 22  # bytes from which on threads share the clearing of a buffer
PIECE = 1 << 20  # bytes that a thread clears at once
TOGETHER = 8  # numbers of copies that are added at once
LINE = 64  # bytes in a line of the cache: threads do not share those of their bodies


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
        self.blocks, self.threads, self.label = blocks, threads, "entry"

    def written(self) -> str:
        words = self.job.parameters.split(",")
        self.write(f"%given=alloca [{len(words)} x i64],align 8")
        for k, word in enumerate(words):
            self.write(f"store {word},ptr {self.new(f'getelementptr i64,ptr %given,i64 {k}')},align 8")
        block, count = f"@{self.job.name}.block", self.blocks.count
        if self.threads > 1:
            self.write(f"call void @{PARALLEL}(ptr {block},ptr %given,i64 {count},i64 {self.threads})")
        else:
            self.repeat("run", 0, count, lambda k: self.write(f"call void {block}(ptr %given,i64 {k},i64 0)"))
        if self.blocks.sums:
            self.total()
        for copy in self.blocks.copies:
            self.total_of(copy)
        self.write("ret void")
        return self.text()

    def repeat(self, label: str, first: int, end: int, body: Callable[[str], None]) -> None:
        """Write a loop."""
        k = f"%{label}.k"
        self.write(f"br label %{label}", f"{label}:", f"{k}=phi i64 [{first},%{self.label}],[{k}.next,%{label}]")
        body(k)
        self.write(f"{k}.next=add i64 {k},1")
        more = self.new(f"icmp ult i64 {k}.next,{end}")
        self.write(f"br i1 {more},label %{label},label %{label}.end", f"{label}.end:")
        self.label = f"{label}.end"

    def total(self) -> None:
        """Add the sums of each block to those of the blocks before; the sums of the last block are the results."""
        blocks, count = self.blocks, len(self.blocks.sums)
        sums = self.offset("%work", self.job.scratch)

        def add(k: str) -> None:
            before = self.offset(sums, self.new(f"sub i64 {k},{count}"))
            place = self.offset(sums, k)
            self.store_one(self.new(f"fadd {self.scalar.type} {self.load(before)},{self.load(place)}"), place)

        self.repeat("add", count, blocks.partial, add)
        for c, place in zip(blocks.sums, range(blocks.partial - count, blocks.partial), strict=True):
            self.add_to(self.fixed(self.region.results[c]), self.load(self.offset(sums, place)))

    def total_of(self, copy: Copy) -> None:
        """Add the copies of all blocks to a buffer, in their order."""
        blocks = self.blocks
        begin = self.job.scratch + blocks.partial + blocks.begins[copy.buffer] + copy.first
        use = next(use for use in self.region.results if use.buffer == copy.buffer)
        base, target = self.offset("%work", begin), self.offset(self.view(use), copy.first)
        whole = copy.size // TOGETHER
        for width, first, end in ((TOGETHER, 0, whole), (1, whole * TOGETHER, copy.size)):
            if first < end:
                self.repeat(f"copy{copy.buffer}.{width}", first, end, partial(self.add_copies, base, target, width))

    def add_copies(self, base: str, target: str, width: int, k: str) -> None:
        """Add `width` numbers of all copies, from number k * width on."""
        size, copied = self.scalar.size, self.blocks.copied
        kind = self.scalar.type if width == 1 else f"<{width} x {self.scalar.type}>"
        begin = k if width == 1 else self.new(f"mul i64 {k},{width}")

        def load(pointer: str) -> str:
            return self.new(f"load {kind},ptr {pointer},align {size}")

        first = self.offset(base, begin)
        total = load(first)
        for block in range(1, self.blocks.count):
            total = self.new(f"fadd {kind} {total},{load(self.offset(first, block * copied))}")
        place = self.offset(target, begin)
        self.write(f"store {kind} {self.new(f'fadd {kind} {load(place)},{total}')},ptr {place},align {size}")
