"""read_llvm and read_assembly: the code of a kernel line by line, with what each line does.

LLVM's lines are carried out on symbols, so that each is shown with the formula that it has computed so far, and the
formulas that are stored at the end can be compared with the derivative. Assembly differs from processor to processor;
its lines are told apart by their kind only.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import sympy as sp

from codegen import Kernel
from codegen.records import dataclass
from symad.display.document import Document, Heading, Marked, Table
from symad.display.shown import Shown
from symad.errors import ArgumentError, LimitError
from symad.tracing.calling.tracebacks import public_api

MAX_LINES = 400  # more are not read
_PIECE = re.compile(r"^define internal void @kernel\.\d+\(", re.MULTILINE)


@dataclass(frozen=True)
class CodeLine:
    """A line of code, its kind in words, and the formula of what it computes, where it computes a number."""

    text: str
    kind: str
    value: sp.Basic | None = None


@dataclass(frozen=True)
class CodeReading(Shown):
    """The lines of a function in machine code or LLVM IR; `results` are the formulas that it stores, in order."""

    language: str
    lines: tuple[CodeLine, ...]
    results: tuple[sp.Basic, ...] = ()

    @property
    def title(self) -> str:
        """The title of its page."""
        return f"{self.language[:1].upper()}{self.language[1:]}, line by line"

    def count(self) -> Counter[str]:
        """Return how many lines there are of each kind."""
        return Counter(line.kind for line in self.lines)

    def document(self) -> Document:
        """Return a table: the line, what it does, and the formula so far."""
        rows = tuple(
            (Marked(line.text, "code"), line.kind, *([line.value or ""] if self.results else [])) for line in self.lines
        )
        header = (self.language, "what it does", *(["computed so far"] if self.results else []))
        return (Heading(self.title), Table(header, rows))


@public_api
def read_llvm(kernel: Kernel) -> CodeReading:
    """Return the lines of LLVM IR of a kernel that is straight-line code, each with the formula that it computes.

    A line that is no arithmetic (a comparison, a choice) stands for itself, under the number of its register.
    ArgumentError for a kernel that is more than one piece of straight-line code, LimitError for more than 400 lines.

    >>> import symad as sa
    >>> read_llvm(sa.compile(sa.derivative(lambda x: x**3), 1.0)).results
    (3*x**2,)
    """
    if not is_one_function(kernel):
        raise _in_parts()
    inputs = kernel.program.inputs
    symbols = [[_symbol(part.name, index) for index in np.ndindex(*part.shape)] for part in inputs]
    machine = _Symbolic(symbols)
    lines = tuple(machine.line(text) for text in _body(kernel.llvm.split("\n"), "define", "}"))
    return CodeReading("LLVM IR", lines, tuple(machine.stored))


def is_one_function(kernel: Kernel) -> bool:
    """Whether LLVM IR of a kernel is one piece of straight-line code."""
    return kernel.stats.strategy == "straight" and len(_PIECE.findall(kernel.llvm)) == 1


@public_api
def read_assembly(kernel: Kernel) -> CodeReading:
    """Return the lines of assembly of a kernel, each with its kind; LimitError for more than 400 lines.

    >>> import symad as sa
    >>> read_assembly(sa.compile(lambda x: x * x, 1.0)).count()["arithmetic"]
    1
    """
    lines = _body(kernel.assembly.split("\n"), "kernel.0:", ".Lfunc_end0:")
    texts = [" ".join(line.split()) for line in lines]
    return CodeReading("assembly", tuple(CodeLine(text, kind_of(text)) for text in texts if text))


# The first that matches the mnemonic; those of x86-64 and of AArch64.
_KINDS = {
    "for the assembler": r"\.|.*:$|#|//",
    "fused multiply-add": r"vf?n?m(add|sub)|vfn?m(add|sub)|fn?m(add|sub)|fml[as]",
    "arithmetic": r"v?(add|sub|mul|div|sqrt|min|max)[sp]d|f(add|sub|mul|div|sqrt|min|max|minnm|maxnm)$",
    "sign of a number": r"v?(xor|and|andn|or)p[sd]|vpternlog|f(neg|abs)$",
    "call": r"call|bl[r]?$",
    "return": r"ret",
    "memory and registers": r"v?mov|lea|ldr|str|ldp|stp|ldu|stu|fmov|adr|vbroadcast|vpermil|vunpck|ldp|dup",
    "stack and addresses": r"push|pop|sub[ql]?$|add[ql]?$|and[ql]?$|xor[ql]?$|vzeroupper",
}


def kind_of(line: str) -> str:
    """Return the kind of a line of assembly, by its first word.

    >>> [kind_of(line) for line in ("vmulsd %xmm0, %xmm0, %xmm1", "fmadd d0, d1, d2, d0", "callq *%rax", "retq")]
    ['arithmetic', 'fused multiply-add', 'call', 'return']
    """
    word = line.split()[0]
    return next((kind for kind, pattern in _KINDS.items() if re.match(pattern, word)), "something else")


class _Symbolic:
    """LLVM's registers, with formulas in them instead of numbers."""

    def __init__(self, inputs: Sequence[Sequence[sp.Symbol]]) -> None:
        self.places = {(f"%{k}", index): symbol for k, part in enumerate(inputs) for index, symbol in enumerate(part)}
        self.pointers: dict[str, tuple[str, int]] = {}
        self.values: dict[str, sp.Basic] = {}
        self.stored: list[sp.Basic] = []

    def line(self, text: str) -> CodeLine:
        """Carry out a line."""
        name, _, operation = text.rpartition("=") if re.match(r"%\w+=", text) else ("", "", text)
        opcode, operands = operation.split(" ")[0], re.findall(r"%\w+|0x[0-9A-F]{16}", operation)
        if opcode == "getelementptr":
            self.pointers[name] = (operands[0], int(operation.rpartition(" ")[2]))
            return CodeLine(text, "address of an element")
        if opcode == "load":
            self.values[name] = self.places.get(self.pointers.get(operands[0], (operands[0], 0)), _register(name))
            return CodeLine(text, "an argument comes from memory", self.values[name])
        if opcode == "store":
            self.stored.append(self.value(operands[0]))
            return CodeLine(text, "a result goes to memory", self.stored[-1])
        if opcode == "extractvalue":
            both = self.value(operands[0])
            part = both.args[int(operation.rpartition(",")[2])] if isinstance(both, sp.Tuple) else _register(name)
            self.values[name] = part
            return CodeLine(text, "one of two results", part)
        function = re.search(r"@(?:llvm\.|symad\.)?(\w+)", operation) if opcode == "call" else None
        kind, value = self.computed(function[1] if function else opcode, [self.value(part) for part in operands])
        if name:
            self.values[name] = _register(name) if value is None else value
        return CodeLine(text, kind, value)

    def value(self, operand: str) -> sp.Basic:
        """Return what a register holds, or the exact value of a number written in hexadecimal."""
        if operand.startswith("0x"):
            return sp.Rational(struct.unpack(">d", bytes.fromhex(operand[2:]))[0])
        return self.values.get(operand, _register(operand))

    def computed(self, operation: str, operands: list[sp.Basic]) -> tuple[str, sp.Basic | None]:
        """Return what an operation is called, and its formula."""
        if operation in _OPERATIONS:
            kind, formula = _OPERATIONS[operation]
            return kind, formula(*operands)
        if operation == "ret":
            return "back to the caller", None
        if operation == "sincos":
            return "a call of sin and cos at once", sp.Tuple(sp.sin(*operands), sp.cos(*operands))
        function = getattr(sp, operation, None)
        if isinstance(function, sp.FunctionClass):
            return f"a call of {operation}", function(*operands)
        return operation, None


_OPERATIONS = {
    "fadd": ("addition", lambda a, b: a + b),
    "fsub": ("subtraction", lambda a, b: a - b),
    "fmul": ("multiplication", lambda a, b: a * b),
    "fdiv": ("division", lambda a, b: a / b),
    "fneg": ("change of sign", lambda a: -a),
    "fma": ("multiplication and addition, rounded once", lambda a, b, c: a * b + c),
    "sqrt": ("square root, an instruction", sp.sqrt),
    "fabs": ("absolute value", sp.Abs),
}


def _register(name: str) -> sp.Symbol:
    return sp.Symbol(f"r_{name.removeprefix('%')}", real=True)


def _symbol(name: str, index: tuple[int, ...]) -> sp.Symbol:
    return sp.Symbol("_".join([name, *map(str, index)]), real=True)


def _in_parts() -> ArgumentError:
    return ArgumentError(
        "a kernel in several parts",
        why="one piece of straight-line code can be read",
        do='take a smaller one, or compile it with roll="never"',
    )


def _body(lines: Sequence[str], start: str, end: str) -> Iterator[str]:
    """Return the lines of the first function, between its head and its end."""
    first = next((k for k, line in enumerate(lines, 1) if line.startswith(start)), None)
    if first is None:  # loops and sweeps are functions of other names
        raise _in_parts()
    last = next(k for k, line in enumerate(lines[first:], first) if line.startswith(end))
    if last - first > MAX_LINES:
        raise LimitError(
            f"{last - first} lines of code",
            why=f"more than {MAX_LINES} are not read",
            do='take a smaller one, or compile it with roll="never"',
        )
    return iter(lines[first:last])
