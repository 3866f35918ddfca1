"""Write the LLVM IR text of a scheduled program.

The kernel is `i32 @kernel(ptr inputs, ptr outputs)`, with tables of pointers to the input and output arrays; it
returns 0, or 1 when the workspace could not be allocated. It calls internal chunk functions. Values are numbered,
loads are made once per chunk, stores follow at once, and there are no fast-math flags.

The same text serves one point and several (`Lanes`): with 8 lanes every value is a vector of 8 points, and element k of
an array is the 8 numbers that start at position 8 k.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from codegen.emission.lane_functions import (
    SINE_AND_COSINE,
    angles_of_both,
    in_ir,
    on_lanes,
    pair_of,
    sine_and_cosine_of_lanes,
)
from codegen.emission.schedule import FREE, Place, Schedule, aligned, pointers, split_stores, workspace
from codegen.functions.symbols import Symbol
from codegen.ir.machine_rows import Row, is_truth_row, lanes_of_row
from codegen.ir.operations import EXACT, NEGATED, in_table
from codegen.ir.program import Program
from codegen.lanes import SCALAR, LaneLayout, Lanes
from codegen.limits import check
from codegen.lowering.lower import Lowered
from codegen.records import dataclass

DIRECT_POINTERS = 5  # arrays that are passed to chunk functions in registers; more go through the pointer tables
STACK_BYTES = 65536  # a workspace of up to 64 KiB lives on the stack
BINARY = ("add", "sub", "mul", "div")
MEMORY = (
    Symbol("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr,i8,i64,i1)"),
    Symbol("malloc", "declare ptr @malloc(i64)"),
    Symbol("free", "declare void @free(ptr)"),
)


@dataclass(frozen=True, eq=False)
class Emitted:
    """IR text of functions, and the symbols that they call; chunk functions call no other functions of the text."""

    chunks: list[str]
    functions: list[str]
    symbols: dict[str, Symbol]

    @property
    def text(self) -> str:
        """One module with everything."""
        return "\n".join([*self.chunks, *self.functions, self.declarations]) + "\n"

    @property
    def declarations(self) -> str:
        """Declarations and definitions of the symbols."""
        return "\n".join(called.text for called in self.symbols.values())

    @property
    def addresses(self) -> dict[str, int]:
        """Addresses of the external symbols."""
        return {name: address for called in self.symbols.values() for name, address in called.addresses.items()}

    def __add__(self, other: Emitted) -> Emitted:
        return Emitted(self.chunks + other.chunks, self.functions + other.functions, self.symbols | other.symbols)


@dataclass(frozen=True)
class Form:
    """The form of a program's IR: the name of its function, lanes, and layouts of arrays other than blocks of lanes.

    Different function names make all names of a module different; only a function called "kernel" is exported.
    """

    name: str = "kernel"
    lanes: Lanes = SCALAR
    inputs: Mapping[int, LaneLayout] = field(default_factory=dict)
    outputs: Mapping[int, LaneLayout] = field(default_factory=dict)
    vector_libm: bool = False  # functions of the vector libm, where there are any, see codegen.functions.libraries
    formulas: bool = False  # those of codegen.functions.lane_table, which want fused multiply-adds
    device: bool = False  # for a GPU, whose threads fill its lanes: nothing side by side, no libraries
    steps: int = 0  # of a kernel of many blocks of single numbers: int64 between the steps of arrays, see `_kernel`

    def layout(self, kind: str, number: int) -> LaneLayout:
        """Return the layout of an input ("in") or output ("out") array."""
        return (self.inputs if kind == "in" else self.outputs).get(number, LaneLayout(self.lanes.width))


POINT = Form()


def emit(program: Program, lowered: Lowered, plan: Schedule, form: Form = POINT) -> Emitted:
    """Return the IR of a kernel for one point, or in another form.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.emission.schedule import schedule
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 1])
    >>> lowered = lower(program)
    >>> "fadd double" in emit(program, lowered, schedule(lowered)).text
    True
    """
    stores, copies = split_stores(plan.chunks, lowered.stores)
    writer = ChunkWriter(program, lowered.rows, plan, stores, form)
    chunks = [writer.chunk(number, chunk) for number, chunk in enumerate(plan.chunks)]
    chunks += [writer.copies(number, part) for number, part in enumerate(copies, len(chunks))]
    kernel = _kernel(program, plan, chunks, writer.direct, form)
    if form.steps and len(chunks) == 1:
        chunks = []
    return Emitted(chunks, [kernel], writer.symbols | {called.name: called for called in MEMORY})


class Names(dict[int, str]):
    """Names of the values in one chunk; a missing one is a constant, an input or a workspace value, loaded here."""

    def __init__(self, writer: ChunkWriter, lines: list[str], first: int) -> None:
        super().__init__()
        self.writer, self.lines, self.next = writer, lines, first
        self.lanes: Lanes = writer.form.lanes
        self.pointers: dict[tuple[str, int], str] = {}
        self.pairs: dict[int, str] = {}  # by row of an angle: its sine and cosine

    def new(self, instruction: str) -> str:
        """Write an instruction and return the name of its value."""
        name = f"%{self.next}"
        self.next += 1
        self.lines.append(f"{name}={instruction}")
        return name

    def __missing__(self, index: int) -> str:
        row = self.writer.rows[index]
        make = LEAF_NAMES.get(row[0])
        name = self[index] = self.workspace(index, row) if make is None else make(self, row)
        return name

    def workspace(self, index: int, row: Row) -> str:
        """Load a value of an earlier chunk from the workspace; a truth value is 0.0 or 1.0 there."""
        lanes = self.writer.lanes_of(row)
        value = self.load(self.writer.workspace_pointer, self.writer.plan.slots[index] * self.lanes.width, lanes)
        return self.new(f"fcmp une {lanes.type} {value},zeroinitializer") if is_truth_row(row) else value

    def input(self, row: Row) -> str:
        array, position = self.writer.places[row[1]]
        layout = self.writer.form.layout("in", array)
        load = self.spread if layout.uniform else self.load
        return load(self.array("in", array), position * layout.step)

    def array(self, kind: str, number: int) -> str:
        """Return a pointer to an input or output array."""
        if (kind, number) not in self.pointers:
            self.pointers[kind, number] = self.writer.array_pointer(self, kind, number)
        return self.pointers[kind, number]

    def address(self, pointer: str, position: int) -> str:
        return self.new(f"getelementptr {self.lanes.scalar},ptr {pointer},i64 {position}") if position else pointer

    def load(self, pointer: str, position: int, lanes: Lanes | None = None) -> str:
        lanes = lanes or self.lanes
        return self.new(f"load {lanes.type},ptr {self.address(pointer, position)},align {lanes.size}")

    def spread(self, pointer: str, position: int) -> str:
        """Load one number into all lanes."""
        lanes = self.lanes
        value = self.new(f"load {lanes.scalar},ptr {self.address(pointer, position)},align {lanes.size}")
        return value if lanes.width == 1 else in_all_lanes(self.new, lanes, value)

    def store(self, value: str, pointer: str, position: int, lanes: Lanes | None = None) -> None:
        lanes, address = lanes or self.lanes, self.address(pointer, position)
        self.lines.append(f"store {lanes.type} {value},ptr {address},align {lanes.size}")


def in_all_lanes(new: Callable[[str], str], lanes: Lanes, value: str) -> str:
    """Write one number into all lanes; `new` writes an instruction."""
    first = new(f"insertelement {lanes.type} poison,{lanes.scalar} {value},i32 0")
    return new(f"shufflevector {lanes.type} {first},{lanes.type} poison,<{lanes.width} x i32> zeroinitializer")


LEAF_NAMES: dict[str, Callable[[Names, Row], str]] = {
    "const": lambda names, row: names.lanes.constant(row[1]),
    "input": lambda names, row: names.input(row),
    "constants": lambda names, row: f"<{','.join(f'double {SCALAR.constant(packed)}' for packed in row[1])}>",
    "true": lambda names, row: names.lanes.splat("true", "i1"),
    "false": lambda names, row: names.lanes.splat("false", "i1"),
}


class ChunkWriter:
    """Writes chunk functions."""

    def __init__(
        self, program: Program, rows: list[Row], plan: Schedule, stores: dict[int, list[Place]], form: Form
    ) -> None:
        self.rows, self.plan, self.stores, self.form, self.lanes = rows, plan, stores, form, form.lanes
        self.binary = {code: f"=f{code} {form.lanes.type} " for code in BINARY}
        self.inputs, self.outputs = len(program.inputs), len(program.outputs)
        self.direct = bool(form.steps) or (self.inputs + self.outputs <= DIRECT_POINTERS and not form.device)
        self.places = [(k, j) for k, array in enumerate(program.inputs) for j in range(array.size)]
        arguments = self.inputs + self.outputs if self.direct else 2
        self.workspace_pointer = f"%{arguments}"
        self.arguments = arguments + 1
        self.wider: dict[int, ChunkWriter] = {}
        self.symbols: dict[str, Symbol] = {}  # that are called
        self.both = angles_of_both(rows) if form.formulas and not form.vector_libm else set()

    def array_pointer(self, names: Names, kind: str, number: int) -> str:
        if self.direct:
            return f"%{number if kind == 'in' else self.inputs + number}"
        table = "%0" if kind == "in" else "%1"
        entry = names.new(f"getelementptr ptr,ptr {table},i64 {number}")
        return names.new(f"load ptr,ptr {entry},align 8")

    def chunk(self, number: int, chunk: list[int]) -> str:
        """Return the IR of one chunk function."""
        check("writing code")
        widest = max((lanes_of_row(self.rows[index]) for index in chunk), default=1)
        lanes = self.lanes if widest == 1 else Lanes(widest)
        names = self.begin(number, lanes, aligned(lanes, [self.rows[index] for index in chunk]))
        lines = names.lines
        rows, stores, slots, binary = self.rows, self.stores, self.plan.slots, self.binary
        for index in chunk:
            row = rows[index]
            text = binary.get(row[0])
            if text is not None:
                left = names[row[1]]
                right = names[row[2]]
                name = names[index] = f"%{names.next}"
                names.next += 1
                lines.append(f"{name}{text}{left},{right}")
            elif row[0] in LEAF_NAMES:
                name = names[index]
            else:
                name = names[index] = WRITERS[row[0]](self, names, row)
            if index in slots:
                value = self.grouped(lanes_of_row(row)).number(names, name) if is_truth_row(row) else name
                names.store(value, self.workspace_pointer, slots[index] * self.lanes.width, self.lanes_of(row))
            if index in stores:
                for place in stores[index]:
                    names.store(name, *self.output(names, place))
        return "\n".join([*lines, "ret void\n}"])

    def begin(self, number: int, lanes: Lanes, stack: str = "") -> Names:
        """Begin a chunk function whose widest values have these lanes, with an attribute of its stack."""
        parameters = ",".join(["ptr noalias"] * self.arguments)
        attributes = f"noinline nounwind{stack}{lanes.attributes}"
        head = f"define internal void @{self.form.name}.{number}({parameters}) {attributes} {{"
        return Names(self, [head], self.arguments + 1)

    def copies(self, number: int, part: Mapping[Place, list[Place]]) -> str:
        """Return the IR of a function that copies outputs to other places."""
        names = self.begin(number, self.lanes)
        for source, places in part.items():
            value = names.load(*self.output(names, source))
            for place in places:
                names.store(value, *self.output(names, place))
        return "\n".join([*names.lines, "ret void\n}"])

    def output(self, names: Names, place: Place) -> tuple[str, int]:
        """Return the pointer and position of a place in an output array."""
        array, position = place
        return names.array("out", array), position * self.form.layout("out", array).step

    def lanes_of(self, row: Row) -> Lanes:
        width = lanes_of_row(row)
        return self.lanes if width == 1 else Lanes(width)

    def grouped(self, width: int) -> ChunkWriter:
        """Return this writer with more lanes."""
        if width == 1:
            return self
        if width not in self.wider:
            self.wider[width] = copy.copy(self)
            self.wider[width].lanes, self.wider[width].form = Lanes(width), replace(self.form, lanes=Lanes(width))
        return self.wider[width]

    def number(self, names: Names, truth: str) -> str:
        """Convert a truth value to 0.0 or 1.0."""
        return names.new(in_ir("number", self.lanes).format(truth))

    def call(self, names: Names, function: str, operands: list[str]) -> str:
        """Call a function of numbers, in all lanes."""
        form, kind = self.form, self.lanes.type
        symbols = on_lanes(function, len(operands), self.lanes, formulas=form.formulas, library=form.vector_libm)
        self.symbols.update({called.name: called for called in symbols})
        return names.new(f"call {kind} @{symbols[0].name}({','.join(f'{kind} {operand}' for operand in operands)})")

    def part_of_pair(self, names: Names, function: str, angle: int) -> str:
        """Return sine or cosine where both are wanted: they are computed at once."""
        pair = pair_of(self.lanes)
        if angle not in names.pairs:
            symbols = sine_and_cosine_of_lanes(self.lanes)
            self.symbols.update({called.name: called for called in symbols})
            names.pairs[angle] = names.new(f"call {pair} @{symbols[0].name}({self.lanes.type} {names[angle]})")
        return names.new(f"extractvalue {pair} {names.pairs[angle]},{SINE_AND_COSINE.index(function)}")


def _written(writer: ChunkWriter, names: Names, row: Row) -> str:
    operation, operands = in_table(row)
    return names.new(in_ir(operation, writer.lanes).format(*[names[operand] for operand in operands]))


def _exact(writer: ChunkWriter, names: Names, row: Row) -> str:
    operands = [names[operand] for operand in row[1:]]
    for position in NEGATED.get(row[0], ()):
        operands[position] = names.new(in_ir("neg", writer.lanes).format(operands[position]))
    return writer.call(names, f"llvm.{EXACT.get(row[0], 'fma')}.f64", operands)


def _function(writer: ChunkWriter, names: Names, row: Row) -> str:
    if row[1] in SINE_AND_COSINE and row[2] in writer.both:
        return writer.part_of_pair(names, row[1], row[2])
    return writer.call(names, row[1], [names[operand] for operand in row[2:]])


def _wide(writer: ChunkWriter, names: Names, row: Row) -> str:
    """Write one operation on all lanes of a group."""
    width, *shape = row[1]
    return WRITERS[shape[0]](writer.grouped(width), names, (*shape, *row[2:]))


def _gather(writer: ChunkWriter, names: Names, row: Row) -> str:
    kind, value = Lanes(row[1][0]).type, "poison"
    for lane, operand in enumerate(row[2:]):
        value = names.new(f"insertelement {kind} {value},double {names[operand]},i32 {lane}")
    return value


def _lane(writer: ChunkWriter, names: Names, row: Row) -> str:
    kind = writer.lanes_of(writer.rows[row[2]]).type
    return names.new(f"extractelement {kind} {names[row[2]]},i32 {row[1]}")


WRITERS: dict[str, Callable[[ChunkWriter, Names, Row], str]] = {
    **dict.fromkeys((*BINARY, "neg", "select", "compare", "logic", "not", "number"), _written),
    **dict.fromkeys(("abs", "sqrt", *NEGATED), _exact),
    "wide": _wide,
    "gather": _gather,
    "spread": lambda writer, names, row: in_all_lanes(names.new, Lanes(row[1][0]), names[row[2]]),
    "lane": _lane,
    "call": _function,
}


def _kernel(program: Program, plan: Schedule, chunks: list[str], direct: bool, form: Form) -> str:
    """Return the kernel function: workspace, structural zeros, then the chunks in order.

    With steps it is `i32 @kernel(in, out, blocks, steps)`, of arrays of single numbers: block after block, and from
    point to point the steps, in bytes. One chunk is written inside of this loop, so that numbers are read and written
    in their order in memory: caches answer that faster.
    """
    names = [f"i{k}" for k in range(len(program.inputs))] + [f"o{k}" for k in range(len(program.outputs))]
    value = form.lanes.size * form.lanes.width
    large = plan.workspace * value > STACK_BYTES
    arguments = ",".join(f"ptr %{name}" for name in [*(names if direct else ("in", "out")), "w"])
    body = [f"call void @{form.name}.{number}({arguments})" for number in range(len(chunks))]
    parameters, attributes = "ptr noalias %in,ptr noalias %out", " nounwind {"
    begin, end = pointers(program), [*([FREE] if large else []), "ret i32 0", "}"]
    if form.steps and len(chunks) == 1:
        places = [*(f"%{name}" for name in names), "%w"]
        head, *body = chunks[0].split("\n")[:-2]
        body = [
            re.sub(r"%(\d+)", lambda at: places[k] if (k := int(at[1])) < len(places) else f"%v{k}", x) for x in body
        ]
        attributes = head.partition(" noinline")[2]
    body = [
        f"call void @llvm.memset.p0.i64(ptr %o{k},i8 0,i64 {value * output.size},i1 false)"
        for k, output in enumerate(program.outputs)
        if output.positions is not None and output.size
    ] + body  # fmt: skip
    if form.steps:
        parameters += ",i64 %blocks,ptr %steps"
        begin = [re.sub(r"^%([io]\d+)=", r"%start.\1=", line) for line in begin]
        body = _block_after_block(names, body, form)
    lines = [f"define {'' if form.name == 'kernel' else 'internal '}i32 @{form.name}({parameters}){attributes}", *begin]
    return "\n".join([*lines, *workspace(max(plan.workspace, 1) * value, large), *body, *end])


def _block_after_block(names: list[str], body: list[str], form: Form) -> list[str]:
    steps, moves = [], []
    for k, name in enumerate(names):
        steps.append(f"%step.{name}=getelementptr i64,ptr %steps,i64 {form.steps * k}")
        steps += [f"%{name}.b=load i64,ptr %step.{name}", f"%block.{name}=mul i64 %{name}.b,{form.lanes.width}"]
        moves += [f"%by.{name}=mul i64 %at,%block.{name}", f"%{name}=getelementptr i8,ptr %start.{name},i64 %by.{name}"]
    begin = ["br label %first", "first:", "br label %block", "block:", "%at=phi i64 [0,%first],[%next,%block]"]
    end = ["%next=add i64 %at,1", "%more=icmp ult i64 %next,%blocks", "br i1 %more,label %block,label %end", "end:"]
    return [*steps, *begin, *moves, *body, *end]
