"""`read_llvm` and `read_assembly`: the code of a kernel line by line, with the effect of each line.

LLVM's lines are carried out on symbols, so that each is shown with the formula computed so far, and the stored formulas
can be compared with the derivative. Assembly depends on the processor; its lines are only classified by kind,
with the IR line of each by debug information (`.loc`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import sympy as sp

from codegen import Kernel
from codegen.engine import assembly
from codegen.options import LEVELS
from codegen.records import dataclass
from symad.classroom.code_reading.llvm_lines import FORMULAS, Machine, body_of, ends, kind_of_ir
from symad.display.document import Document, Heading, Marked, Table
from symad.display.shown import Shown
from symad.errors import ArgumentError, LimitError
from symad.tracing.calling.tracebacks import public_api

MAX_LINES = 400  # of a function that is read
_SMALLER = 'take a smaller one, or compile it with roll="never"'
_PIECE = re.compile(r"^define internal void @kernel\.\d+\(", re.MULTILINE)
_SCOPE = "!3"
_FIRST = 20  # number of the first line's metadata
_METADATA = (
    "!llvm.dbg.cu = !{!0}",
    "!llvm.module.flags = !{!5, !6}",
    '!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, producer: "symad", isOptimized: true, '
    "runtimeVersion: 0, emissionKind: LineTablesOnly)",
    '!1 = !DIFile(filename: "kernel.ll", directory: ".")',
    "!2 = !DISubroutineType(types: !4)",
    '!3 = distinct !DISubprogram(name: "kernel.0", scope: !1, file: !1, line: 1, type: !2, unit: !0, '
    "spFlags: DISPFlagDefinition | DISPFlagOptimized)",
    "!4 = !{null}",
    '!5 = !{i32 2, !"Debug Info Version", i32 3}',
    '!6 = !{i32 7, !"Dwarf Version", i32 4}',
)
_LOCATION = re.compile(r"\.loc\s+\d+\s+(\d+)")
_NO_INSTRUCTION = re.compile(r"\.|#|//|$|\.?L\w+:|\w+:$|Ltmp")


@dataclass(frozen=True)
class Instruction:
    """A processor instruction, and the IR line that it was selected for (0: unknown)."""

    text: str
    line: int = 0


def located_assembly(kernel: Kernel) -> list[Instruction]:
    """Return the instructions of a kernel's first function with their IR lines, counted from 1.

    >>> import symad as sa
    >>> from symad.classroom.code_reading.llvm_lines import body_of
    >>> kernel = sa.compile(lambda x: x * x, 1.0)
    >>> squared = next(k for k, line in enumerate(body_of(kernel.llvm), 1) if "fmul" in line)
    >>> any(instruction.line == squared for instruction in located_assembly(kernel))
    True
    """
    return list(_instructions(assembly(_numbered(kernel.llvm), LEVELS[kernel.tier])))


def instructions_of(text: str) -> list[str]:
    return [instruction.text for instruction in _instructions(text)]


def _numbered(text: str) -> str:
    """Return the IR with a line number at each instruction of its first function, which changes no instruction."""
    lines = text.split("\n")
    first, last = ends(lines)
    locations: list[str] = []
    lines[first] = lines[first].removesuffix("{") + f"!dbg {_SCOPE} {{"
    for k in range(first + 1, last):
        if lines[k].strip() and not lines[k].endswith(":"):
            lines[k] += f", !dbg !{_FIRST + len(locations)}"
            locations.append(f"!{_FIRST + len(locations)} = !DILocation(line: {k - first}, column: 1, scope: {_SCOPE})")
    return "\n".join([*lines, *_METADATA, *locations, ""])


def _instructions(text: str) -> Iterator[Instruction]:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    first = next((k for k, line in enumerate(lines, 1) if re.match(r"_?\"?kernel\.0\"?:", line)), len(lines))
    line = 0
    for instruction in lines[first:]:
        if re.match(r"\.?Lfunc_end", instruction):
            return
        if location := _LOCATION.match(instruction):
            line = int(location[1])
        elif not _NO_INSTRUCTION.match(instruction):
            yield Instruction(re.split(r"\s+(#|//)", instruction)[0], line)


@dataclass(frozen=True)
class CodeLine:
    """A line of code, its kind in words, and the formula that it computes, if any."""

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
        return f"{self.language[:1].upper()}{self.language[1:]}, line by line"

    def count(self) -> Counter[str]:
        """Return the number of lines of each kind."""
        return Counter(line.kind for line in self.lines)

    def document(self) -> Document:
        """Return a table of the lines, their effects and their formulas."""
        rows = tuple(
            (Marked(line.text, "code"), line.kind, *([line.value or ""] if self.results else [])) for line in self.lines
        )
        header = (self.language, "what it does", *(["computed so far"] if self.results else []))
        return (Heading(self.title), Table(header, rows))


@public_api
def read_llvm(kernel: Kernel) -> CodeReading:
    """Return the LLVM IR of a kernel of straight-line code, with the formula that each line computes.

    A line without arithmetic (a comparison, a choice) has its register's name as its formula.
    ArgumentError for a kernel that is more than one piece of straight-line code, LimitError for more than 400 lines.

    >>> import symad as sa
    >>> read_llvm(sa.compile(sa.derivative(lambda x: x**3), 1.0)).results
    (3*x**2,)
    """
    _check_kernel(kernel)
    if not is_one_function(kernel):
        raise _in_parts()
    inputs = kernel.program.inputs
    symbols = [
        [sp.Symbol("_".join([part.name, *map(str, index)]), real=True) for index in np.ndindex(*part.shape)]
        for part in inputs
    ]
    machine, lines, stored = Machine(symbols, FORMULAS), list[CodeLine](), list[sp.Basic]()
    for text in _checked(body_of(kernel.llvm)):
        lanes = machine.line(text)
        lines.append(CodeLine(text, kind_of_ir(text), lanes[0] if len(lanes) == 1 else sp.Tuple(*lanes) or None))
        stored += lanes if text.startswith("store ") else ()
    return CodeReading("LLVM IR", tuple(lines), tuple(stored))


def is_one_function(kernel: Kernel) -> bool:
    """Whether a kernel's LLVM IR is one piece of straight-line code."""
    return kernel.stats.strategy == "straight" and len(_PIECE.findall(kernel.llvm)) == 1


@public_api
def read_assembly(kernel: Kernel) -> CodeReading:
    """Return the instructions of a kernel in assembly, each with its kind; LimitError for more than 400.

    >>> import symad as sa
    >>> read_assembly(sa.compile(lambda x: x * x, 1.0)).count()["arithmetic"]
    1
    """
    _check_kernel(kernel)
    texts = instructions_of(kernel.assembly)
    if not texts:  # loops and sweeps are functions of other names
        raise _in_parts()
    return CodeReading("assembly", tuple(CodeLine(text, kind_of(text)) for text in _checked(texts)))


# The first that matches the mnemonic; those of x86-64 and of AArch64.
_KINDS = {
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


def _check_kernel(kernel: Kernel) -> None:
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"{type(kernel).__name__} in place of a kernel", do="compile the function first")


def _in_parts() -> ArgumentError:
    return ArgumentError("a kernel in several parts", why="one piece of straight-line code can be read", do=_SMALLER)


def _checked(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) > MAX_LINES:
        raise LimitError(f"{len(lines)} lines of code", why=f"more than {MAX_LINES} are not read", do=_SMALLER)
    return lines
