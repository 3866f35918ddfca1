"""Write the kernel of a rolled program: constants, workspace, and the loops in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod

from codegen.emission.emit import MEMORY, POINT, STACK_BYTES, Emitted, Form
from codegen.emission.schedule import FREE, LINE, schedule, workspace
from codegen.functions.libraries import has_library
from codegen.functions.workers import available
from codegen.ir.readdress import interned
from codegen.ir.region import Nest, Region, RolledProgram, Step, regions_of
from codegen.ir.strictness import checked
from codegen.lanes import SCALAR, Lanes
from codegen.loops.emit.loop_columns import LoopColumns, columns_of, lanes_of_runs
from codegen.loops.emit.loop_points import PointsLoop, has_points
from codegen.loops.emit.loop_scalar import LONG, ScalarLoop, StraightRegion
from codegen.loops.emit.loop_text import Job, Written
from codegen.loops.emit.loop_vector import VectorLoop, registers
from codegen.loops.emit.matrix_calls import MatrixCall
from codegen.loops.emit.thread_blocks import Blocks, asks_scipy, blocks_of, work_of
from codegen.loops.emit.thread_rounds import MOST_MEMORY, RoundsText, ThreadRounds, rounds_of
from codegen.loops.emit.thread_text import clearing, in_blocks, zeros
from codegen.loops.emit.workspace import Memory, Shared, Tables, Writes, apart, shared, writes
from codegen.loops.optimise.common_rows import share
from codegen.loops.optimise.packing import COPY, pack
from codegen.loops.optimise.unrolled_sums import with_unrolled_sums
from codegen.lowering.lower import Lowered
from codegen.lowering.passes import Prepared, prepare
from codegen.matrices.matrix_loops import asks_library, without_library
from codegen.options import Options
from codegen.processor import vector_bits
from codegen.records import dataclass
from codegen.stages import allowed, carried_out, part


def calls(
    steps: Sequence[Step],
    prefix: str,
    shared: Sequence[Shared],
    scalar: Lanes = SCALAR,
    threaded: Mapping[int, str] | None = None,
    around: str = "",
) -> list[str]:
    """Return the IR that calls the function of each region, in the order of `regions_of`, with the rounds of its nests.

    It begins in the block %start. Nests that are `threaded`, by the number of their first region, have a function of
    their own. `around` is the round of a nest around the steps.

    >>> from codegen.ir.program import Output, Program
    >>> region = Region(Program([], [], {}, (), ()), 1, (), ())
    >>> calls([region], "kernel", apart([region], Memory((), 0)))
    ['call void @kernel.region0(ptr %in,ptr %out,ptr %w)']
    """
    lines: list[str] = []
    block, regions, nests = "start", 0, 0
    rounds: list[str] = [around] if around else []
    stack: list[Step | tuple[int, int, str]] = list(reversed(steps))
    while stack:
        step = stack.pop()
        if isinstance(step, Nest) and threaded and regions in threaded:
            lines.append(f"call void @{threaded[regions]}(ptr %in,ptr %out,ptr %w)")
            regions += len(step.steps)
        elif isinstance(step, Region):
            arrays = enumerate(shared[regions].given)
            pointers = [_pointer(f"%a{regions}.{k}", *array, scalar, lines) for k, array in arrays]
            further = [*(f"i64 {number}" for number in rounds), *(f"ptr {pointer}" for pointer in pointers)]
            arguments = ",".join(["ptr %in", "ptr %out", "ptr %w", *further])
            lines.append(f"call void @{prefix}.region{shared[regions].number}({arguments})")
            regions += 1
        elif isinstance(step, Nest):
            n, nests = nests, nests + 1
            lines += [f"br label %nest{n}", f"nest{n}:", f"%n{n}=phi i64 [0,%{block}],[%n{n}.next,%again{n}]"]
            block = f"nest{n}"
            rounds.append(f"%n{n}")
            stack += [(n, step.count, block), *reversed(step.steps)]
        else:
            n, count, _ = step
            lines += [f"br label %again{n}", f"again{n}:", f"%n{n}.next=add i64 %n{n},1"]
            lines += [f"%m{n}=icmp ult i64 %n{n}.next,{count}", f"br i1 %m{n},label %nest{n},label %end{n}", f"end{n}:"]
            block = f"end{n}"
            rounds.pop()
    return lines


PASSES = (("sharing", share), ("sum-unrolling", with_unrolled_sums))
SHORT = 12000  # operations of a region below which registers of 256 bits are as fast: the wider ones have to warm up


@dataclass(frozen=True)
class RolledPlan:
    """A rolled program, ready to be written; `lanes` overrides how many repetitions run side by side."""

    program: RolledProgram
    options: Options
    prepared: tuple[Prepared, ...]
    lanes: int | None = None
    strategy = "rolled"

    @classmethod
    def of(cls, program: RolledProgram, options: Options, lanes: int | None = None) -> RolledPlan:
        """Prepare the bodies of a program; LoweringError for a head without a native lowering."""
        checked(program, "what is to be compiled")
        if asks_library(program) and not has_library():
            program = checked(without_library(program), "writing matrix operations as loops", program)
        for name, change in PASSES:
            program = checked(carried_out(name, change, program), name, program)
        program = replace(program, steps=interned(program.steps))
        if lanes is None and not allowed("vectorization"):
            lanes = 1
        return cls(program, options, _prepared(program, options, {}), lanes)

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR of `i32 @kernel(in, out)` for one point: deterministic, also in the order of its sums."""
        return self.packed.functions(form)

    @cached_property
    def packed(self) -> RolledPlan:
        """The plan with the workspaces of `codegen.loops.optimise.packing`."""
        rows = {id(region.body): prepared for (region, _), prepared in self.regions}
        outside = [at for at, step in enumerate(self.program.steps) if isinstance(step, Region)]  # of nests
        lanes = [lanes for ((_, counts), _), lanes in zip(self.regions, self.wide, strict=True) if not counts]
        wide = {at for at, region_lanes in zip(outside, lanes, strict=True) if region_lanes.width > 1}
        packed = carried_out("packing", lambda program: pack(program, wide), self.program)
        checked(packed, "packing", self.program)
        return replace(self, program=packed, prepared=_prepared(packed, self.options, rows))

    @property
    def has_points(self) -> bool:
        """Whether the loops can be run for points side by side, with the bits of single points."""
        packed = self.packed
        known = zip(packed.regions, packed.wide, packed.columns_known, packed.writes.stored, strict=True)
        return not any(packed.blocks_kept) and all(
            has_points(region, columns, stored, lanes.width) for ((region, _), _), lanes, columns, stored in known
        )

    def functions(self, form: Form) -> Emitted:
        """Return the functions of the regions, equal ones once, and the kernel that calls them."""
        tables, emitted = Tables(form.name), Emitted([], [], {function.name: function for function in MEMORY})
        memory = Memory.of(self.program, tables, self.scalar if form.lanes.width == 1 else form.lanes)
        shared, extra = self.shared(memory), 0
        fast = self.options.accuracy == "fast" and allowed("vector-library") and not form.device
        for number, region in enumerate(shared):
            if region.number == number:
                written = self.function(region, form, tables, fast)
                emitted += written.emitted
                extra = max(extra, written.scratch)
        return Emitted([], tables.globals, {}) + emitted + self.kernel(memory, extra, form, shared)

    def in_threads(
        self, memory: Memory, extra: int, form: Form, shared: Sequence[Shared]
    ) -> tuple[dict[int, str], Emitted, int]:
        """Return the nests whose rounds threads share: functions by the number of the first region, IR, all memory."""
        line = LINE // memory.scalar.size
        own = -(-(memory.workspace + extra) // line) * line
        names, emitted, size = {}, Emitted([], [], {}), own
        if self.threads > 1 and not form.device and form.lanes.width == 1:
            for first, (nest, rounds) in self.rounds.items():
                name, outputs = f"{form.name}.nest{first}", len(self.program.outputs)
                text = RoundsText(name, rounds, memory, own, outputs, self.threads)
                emitted += text.written(calls(nest.steps, form.name, shared[first:], memory.scalar, around="%round"))
                names[first], size = name, max(size, text.size)
        return names, emitted, size

    def function(self, shared: Shared, form: Form, tables: Tables, fast: bool) -> Written:
        """Return the function of the first of some equal regions."""
        number = shared.number
        ((region, counts), prepared), blocks = self.regions[number], self.blocks_kept[number]
        job = Job(
            f"{form.name}.region{number}", region, prepared.fused, len(counts), shared.memory, tables,
            self.writes.stored[number], shared.memory.workspace, fast, self.columns_known[number], blocks, shared.names,
        )  # fmt: skip
        with part(f"region {number}"):
            written = _write(job, self.wide[number], points=shared.memory.scalar != self.scalar)
        return written if blocks is None else in_blocks(job, blocks, written, self.threads)

    def shared(self, memory: Memory) -> list[Shared]:
        """Return the function that runs each region."""
        regions = [region for (region, _), _ in self.regions]
        if not allowed("equal-loops") or memory.scalar != self.scalar:
            return apart(regions, memory)
        counts = (len(counts) for (_, counts), _ in self.regions)
        facts = zip(counts, self.wide, self.blocks_kept, self.writes.stored, strict=True)
        return shared(regions, list(facts), memory)

    def kernel(self, memory: Memory, extra: int, form: Form, shared: Sequence[Shared]) -> Emitted:
        """Return the kernel function: workspace, zeros, then the steps."""
        scalar = memory.scalar
        names, threaded, numbers = self.in_threads(memory, extra, form, shared)
        size = scalar.size * scalar.width * numbers
        large, linkage = size > STACK_BYTES, "" if form.name == "kernel" else "internal "
        lines = [f"define {linkage}i32 @{form.name}(ptr noalias %in,ptr noalias %out) nounwind {{"]
        lines += [*workspace(max(size, 8), large), "br label %start", "start:"]
        for number in sorted(self.writes.cleared):
            pointer = _pointer(f"%c{number}", memory.pointers[number], 0, scalar, lines)
            cleared = scalar.size * scalar.width * self.program.buffers[number].size
            lines += clearing(form.name, pointer, cleared, self.threads)
        steps = calls(self.program.steps, form.name, shared, scalar, names)
        lines += [*steps, *([FREE] if large else []), "ret i32 0", "}"]
        text = "\n".join(lines)
        clear = zeros(form.name) if f"@{form.name}.zeros" in text else Emitted([], [], {})
        return threaded + Emitted([], [text], {}) + clear

    @property
    def scalar(self) -> Lanes:
        return self.options.number.lanes()

    @property
    def threads(self) -> int:
        """Number of threads that share a loop."""
        return self.options.threads if available() else 1

    @cached_property
    def columns(self) -> list[LoopColumns | None]:
        """The columns of the regions that run in lanes."""
        wide = ((region, lanes) for ((region, _), _), lanes in zip(self.regions, self.wide, strict=True))
        return [columns_of(region, lanes.width) if lanes.width > 1 else None for region, lanes in wide]

    @cached_property
    def writes(self) -> Writes:
        return writes(self.program, self.columns)

    @cached_property
    def columns_known(self) -> list[LoopColumns | None]:
        """The columns, with the results that are stores."""
        pairs = zip(self.columns, self.writes.stored, strict=True)
        return [None if columns is None else columns.known(stored) for columns, stored in pairs]

    @cached_property
    def blocks(self) -> list[Blocks | None]:
        """The blocks of each region, see `codegen.loops.emit.thread_blocks`."""
        facts = zip(self.regions, self.wide, self.columns_known, self.writes.stored, strict=True)
        return [
            blocks_of(region, prepared.fused, lanes.width, columns, stored)
            for ((region, _), prepared), lanes, columns, stored in facts
        ]

    @cached_property
    def rounds(self) -> dict[int, tuple[Nest, ThreadRounds]]:
        """The nests whose rounds threads share, by the numbers of their first regions."""
        shared_rounds, first = {}, 0
        for step in self.program.steps:
            here = slice(first, first + sum(1 for _ in regions_of([step])))
            bodies = [prepared.fused for _, prepared in self.regions[here]]
            small = self.workspace <= MOST_MEMORY and not any(self.blocks[here])
            if isinstance(step, Nest) and small and not any(map(asks_scipy, bodies)):
                facts = zip(self.regions[here], bodies, self.wide[here], strict=True)
                work = sum(work_of(region, lowered, lanes.width) for ((region, _), _), lowered, lanes in facts)
                rounds = rounds_of(self.program, step, self.writes.stored[here], work, self.scalar)
                shared_rounds.update({} if rounds is None else {first: (step, rounds)})
            first = here.stop
        return shared_rounds

    @cached_property
    def blocks_kept(self) -> list[Blocks | None]:
        """The blocks in use: on one thread only where there are sums or copies, to keep the bits."""
        kept = (blocks is not None and (self.threads > 1 or blocks.sums or blocks.copies) for blocks in self.blocks)
        return [blocks if keep else None for blocks, keep in zip(self.blocks, kept, strict=True)]

    @property
    def cut(self) -> list[int]:
        """Number of blocks of each region of the program, or of the nest around it."""
        packed = self.packed
        blocks = [1 if region_blocks is None else region_blocks.count for region_blocks in packed.blocks]
        for first, (nest, rounds) in packed.rounds.items():
            blocks[first : first + len(nest.steps)] = [rounds.count] * len(nest.steps)
        pairs = zip(packed.regions, blocks, strict=True)
        counts = (count for ((region, _), _), count in pairs if region.origin != COPY)
        return [1 if region.origin == COPY else next(counts) for (region, _), _ in self.regions]

    @cached_property
    def regions(self) -> list[tuple[tuple[Region, tuple[int, ...]], Prepared]]:
        return list(zip(regions_of(self.program.steps), self.prepared, strict=True))

    @cached_property
    def wide(self) -> list[Lanes]:
        return [self.lanes_of(region, prepared.fused) for (region, _), prepared in self.regions]

    def lanes_of(self, region: Region, lowered: Lowered) -> Lanes:
        """Return how many repetitions run side by side: as many as registers hold, or all where there are fewer."""
        if not region.parallel or region.count == 1:
            return self.scalar
        if self.lanes is not None:
            return self.options.number.lanes(self.lanes)
        bits = 8 * self.scalar.size
        widest = vector_bits() // bits
        if region.count * len(lowered.live()) < SHORT:
            widest = min(widest, 256 // bits)
        if bits < 64:
            widest = lanes_of_runs(region, lowered, widest, 256 // bits)
        if self.options.accuracy == "strict" or not lowered.count()["call"]:  # the C library has no longer vectors
            widest *= registers(region, lowered)
        while widest > region.count:
            widest //= 2
        return self.options.number.lanes(widest)

    def executed(self) -> Counter[str]:
        """Return the operations of one call by kind; an operation on a vector register counts once."""
        total: Counter[str] = Counter()
        for ((region, counts), prepared), lanes in zip(self.regions, self.wide, strict=True):
            times = prod(counts) * -(-region.count // lanes.width)
            total.update({kind: times * number for kind, number in prepared.fused.count().items()})
        return total

    @property
    def written_out(self) -> int:
        """Number of operations of one call, each repetition counted."""
        return sum(
            prod(counts) * region.count * prepared.fused.count().total() for (region, counts), prepared in self.regions
        )

    @property
    def chunks(self) -> int:
        """Number of functions."""
        return sum(max(len(schedule(prepared.fused).chunks), 1) for prepared in self.prepared)

    @property
    def workspace(self) -> int:
        """Number of values that regions leave for each other in memory."""
        return sum(buffer.size for buffer in self.program.buffers if buffer.kind == "workspace")


def _prepared(program: RolledProgram, options: Options, known: dict[int, Prepared]) -> tuple[Prepared, ...]:
    """Prepare all bodies; `known` has some of them by id, and the others are added to it."""
    bodies = [region.body for region, _ in regions_of(program.steps)]
    for number, body in enumerate(bodies):
        if id(body) not in known:
            with part(f"region {number}"):
                known[id(body)] = prepare(body, options)
    return tuple(known[id(body)] for body in bodies)


def _write(job: Job, lanes: Lanes, *, points: bool) -> Written:
    """Return the function of a region in the form that suits it."""
    if job.region.count == 1 and len(job.lowered.rows) > LONG:
        return StraightRegion(job, job.scalar).emit()
    if job.region.matrix is not None:
        return MatrixCall(job, job.region.matrix).emit()
    if job.columns is None:
        return ScalarLoop(job, job.scalar).emit()
    if points:
        return PointsLoop(job, job.columns, lanes.width).emit()
    return VectorLoop(job, lanes, job.columns).emit()


def _pointer(name: str, text: str, moved: int, scalar: Lanes, lines: list[str]) -> str:
    """Return a pointer to the place `moved` of a buffer (`Memory.pointers`); write the instructions that compute it."""
    table, _, place = text.partition(" ")
    if table == "%work":
        table, moved = "%w", moved + int(place)
    elif place:
        lines += [
            f"{name}.at=getelementptr ptr,ptr {table},i64 {place}",
            f"{name}.start=load ptr,ptr {name}.at,align 8",
        ]
        table = f"{name}.start"
    if not moved:
        return table
    lines.append(f"{name}=getelementptr {scalar.type},ptr {table},i64 {moved}")
    return name
