"""Machine code with the LLVM IR line of each instruction, from the compiler's debug information.

The IR gets debug information with line numbers, which by LLVM's rules changes no instruction. The assembly then names
the line of each instruction by `.loc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen import Kernel
from codegen.engine import assembly
from codegen.options import LEVELS
from codegen.records import dataclass
from symad.classroom.code_reading.llvm_lines import ends

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
    """Return the IR with a line number at each instruction of the first function."""
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
