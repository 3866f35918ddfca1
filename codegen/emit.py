"""Emission: LLVM IR text of a scheduled program.

The kernel is `i32 @kernel(ptr inputs, ptr outputs)`, with tables of pointers to the input and output arrays; it
returns 0, or 1 when the workspace could not be allocated. The work is done by internal chunk functions. Values are
numbered, loads are made once per chunk, stores follow at once, and there are no fast-math flags.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.lower import Lowered
from codegen.machine import TRUTHS, Row
from codegen.program import Program
from codegen.schedule import Schedule
from codegen.symbols import Symbol, symbol

DIRECT_POINTERS = 5  # so many arrays go to chunk functions in registers, more through the pointer tables
STACK_SLOTS = 8192  # a workspace of up to 64 KiB lives on the stack
BINARY = {code: f"=f{code} double " for code in ("add", "sub", "mul", "div")}
ROOTS = {"sqrt": "llvm.sqrt.f64", "abs": "llvm.fabs.f64"}
FMA = "llvm.fma.f64"
NEGATED = {"fma": (), "fms": (3,), "fnma": (1,), "fnms": (1, 3)}  # operands of the fused operation with a sign


class Emitted:
    """IR text of a kernel and the external symbols that it calls."""

    def __init__(self, text: str, symbols: list[Symbol]) -> None:
        self.text, self.symbols = text, symbols


def emit(program: Program, lowered: Lowered, plan: Schedule) -> Emitted:
    """Return the IR text of a kernel.

    >>> import sympy as sp
    >>> from codegen.lower import lower
    >>> from codegen.schedule import schedule
    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 1])
    >>> lowered = lower(program)
    >>> "fadd double" in emit(program, lowered, schedule(lowered)).text
    True
    """
    stores: dict[int, list[tuple[int, int]]] = {}
    for array, position, row in lowered.stores:
        stores.setdefault(row, []).append((array, position))
    writer = _Writer(program, lowered.rows, plan, stores)
    parts = [writer.chunk(number, chunk) for number, chunk in enumerate(plan.chunks)]
    parts.append(_kernel(program, plan, writer.direct))
    symbols = [symbol(name, arity) for name, arity in sorted(writer.called.items())]
    parts += [found.text for found in symbols]
    return Emitted("\n".join(parts) + "\n", symbols)


class _Names(dict[int, str]):
    """Names of the values in one chunk; a missing one is a constant, an input or a workspace value, loaded here."""

    def __init__(self, writer: _Writer, lines: list[str], first: int) -> None:
        super().__init__()
        self.writer, self.lines, self.next = writer, lines, first
        self.pointers: dict[tuple[str, int], str] = {}

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
        """Load a value that an earlier chunk left in the workspace; a truth value is kept as 0.0 or 1.0."""
        value = self.load(self.writer.workspace_pointer, self.writer.plan.slots[index])
        return self.new(f"fcmp une double {value},0.0") if row[0] in TRUTHS else value

    def input(self, row: Row) -> str:
        array, position = self.writer.place(row[1])
        return self.load(self.array("in", array), position)

    def array(self, kind: str, number: int) -> str:
        """Pointer to an input or output array."""
        key = (kind, number)
        found = self.pointers.get(key)
        if found is None:
            found = self.pointers[key] = self.writer.array_pointer(self, kind, number)
        return found

    def address(self, pointer: str, position: int) -> str:
        return self.new(f"getelementptr double,ptr {pointer},i64 {position}") if position else pointer

    def load(self, pointer: str, position: int) -> str:
        return self.new(f"load double,ptr {self.address(pointer, position)},align 8")

    def store(self, value: str, pointer: str, position: int) -> None:
        self.lines.append(f"store double {value},ptr {self.address(pointer, position)},align 8")


LEAF_NAMES: dict[str, Callable[[_Names, Row], str]] = {
    "const": lambda names, row: "0x" + row[1].hex().upper(),
    "input": lambda names, row: names.input(row),
    "true": lambda names, row: "true",
    "false": lambda names, row: "false",
}


class _Writer:
    """Writes chunk functions."""

    def __init__(
        self, program: Program, rows: list[Row], plan: Schedule, stores: dict[int, list[tuple[int, int]]]
    ) -> None:
        self.rows, self.plan, self.stores = rows, plan, stores
        self.inputs, self.outputs = len(program.inputs), len(program.outputs)
        self.direct = self.inputs + self.outputs <= DIRECT_POINTERS
        self.places = [(k, j) for k, array in enumerate(program.inputs) for j in range(array.size)]
        arguments = self.inputs + self.outputs if self.direct else 2
        self.workspace_pointer = f"%{arguments}"
        self.arguments = arguments + 1
        self.called: dict[str, int] = {}

    def place(self, position: int) -> tuple[int, int]:
        """Input array and position in it of a flat input."""
        return self.places[position]

    def array_pointer(self, names: _Names, kind: str, number: int) -> str:
        if self.direct:
            return f"%{number if kind == 'in' else self.inputs + number}"
        table = "%0" if kind == "in" else "%1"
        entry = names.new(f"getelementptr ptr,ptr {table},i64 {number}")
        return names.new(f"load ptr,ptr {entry},align 8")

    def chunk(self, number: int, chunk: list[int]) -> str:
        """Return the IR of one chunk function."""
        parameters = ",".join(["ptr noalias"] * self.arguments)
        lines = [f"define internal void @c{number}({parameters}) noinline nounwind {{"]
        names = _Names(self, lines, self.arguments + 1)
        rows, stores, slots = self.rows, self.stores, self.plan.slots
        for index in chunk:
            row = rows[index]
            text = BINARY.get(row[0])
            if text is not None:
                left = names[row[1]]
                right = names[row[2]]
                name = names[index] = f"%{names.next}"
                names.next += 1
                lines.append(f"{name}{text}{left},{right}")
            elif row[0] in LEAF_NAMES:
                name = names[index]
            else:
                name = names[index] = OPERATIONS[row[0]](self, names, row)
            if index in slots:
                value = names.new(f"uitofp i1 {name} to double") if row[0] in TRUTHS else name
                names.store(value, self.workspace_pointer, slots[index])
            if index in stores:
                for array, position in stores[index]:
                    names.store(name, names.array("out", array), position)
        lines.append("ret void\n}")
        return "\n".join(lines)

    def call(self, names: _Names, function: str, operands: list[str]) -> str:
        self.called[function] = len(operands)
        return names.new(f"call double @{function}({','.join(['double ' + operand for operand in operands])})")


def _fused(writer: _Writer, names: _Names, row: Row) -> str:
    operands = [names[operand] for operand in row[1:]]
    for position in NEGATED[row[0]]:
        operands[position - 1] = names.new(f"fneg double {operands[position - 1]}")
    return writer.call(names, FMA, operands)


def _select(writer: _Writer, names: _Names, row: Row) -> str:
    test, first, second = [names[operand] for operand in row[1:]]
    return names.new(f"select i1 {test},double {first},double {second}")


def _infix(prefix: str, separator: str = ",") -> Callable[[_Writer, _Names, Row], str]:
    """Instruction whose kind is the row's first field: compare and logic."""

    def write(writer: _Writer, names: _Names, row: Row) -> str:
        left, right = names[row[2]], names[row[3]]
        return names.new(f"{prefix.format(row[1])} {left}{separator}{right}")

    return write


OPERATIONS: dict[str, Callable[[_Writer, _Names, Row], str]] = {
    **dict.fromkeys(NEGATED, _fused),
    "neg": lambda writer, names, row: names.new(f"fneg double {names[row[1]]}"),
    "sqrt": lambda writer, names, row: writer.call(names, ROOTS["sqrt"], [names[row[1]]]),
    "abs": lambda writer, names, row: writer.call(names, ROOTS["abs"], [names[row[1]]]),
    "call": lambda writer, names, row: writer.call(names, row[1], [names[operand] for operand in row[2:]]),
    "select": _select,
    "compare": _infix("fcmp {} double"),
    "logic": _infix("{} i1"),
    "not": lambda writer, names, row: names.new(f"xor i1 {names[row[1]]},true"),
    "number": lambda writer, names, row: names.new(f"uitofp i1 {names[row[1]]} to double"),
}


def _kernel(program: Program, plan: Schedule, direct: bool) -> str:
    """The exported function: workspace, structural zeros, then the chunks in order."""
    lines = ["define i32 @kernel(ptr noalias %in,ptr noalias %out) nounwind {"]
    lines += _pointers(program)
    sparse = [k for k, output in enumerate(program.outputs) if output.positions is not None and output.size]
    lines += [
        f"call void @llvm.memset.p0.i64(ptr %o{k},i8 0,i64 {8 * program.outputs[k].size},i1 false)" for k in sparse
    ]
    large = plan.workspace > STACK_SLOTS
    lines += _workspace(plan.workspace, large)
    tables = (
        [f"ptr %i{k}" for k in range(len(program.inputs))] + [f"ptr %o{k}" for k in range(len(program.outputs))]
        if direct
        else ["ptr %in", "ptr %out"]
    )
    arguments = ",".join([*tables, "ptr %w"])
    lines += [f"call void @c{number}({arguments})" for number in range(len(plan.chunks))]
    lines += ["call void @free(ptr %w)"] if large else []
    lines += ["ret i32 0", "}", "declare void @llvm.memset.p0.i64(ptr,i8,i64,i1)"]
    lines += ["declare ptr @malloc(i64)", "declare void @free(ptr)"] if large else []
    return "\n".join(lines)


def _pointers(program: Program) -> list[str]:
    lines = []
    for letter, table, count in (("i", "%in", len(program.inputs)), ("o", "%out", len(program.outputs))):
        for k in range(count):
            lines.append(f"%p{letter}{k}=getelementptr ptr,ptr {table},i64 {k}")
            lines.append(f"%{letter}{k}=load ptr,ptr %p{letter}{k},align 8")
    return lines


def _workspace(slots: int, large: bool) -> list[str]:
    if not large:
        return [f"%w=alloca [{max(slots, 1)} x double],align 8"]
    return [
        f"%w=call ptr @malloc(i64 {8 * slots})",
        "%none=icmp eq ptr %w,null",
        "br i1 %none,label %full,label %run",
        "full:",
        "ret i32 1",
        "run:",
    ]
