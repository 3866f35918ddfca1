"""Print a rolled program as readable loops.

    for k in range(36):                 # pairs.py:1-2
        a, b = x[i(k)], x[j(k)]
        t1 = a*b
        out0 += t1 + 1
        out1[k] = t1

Arrays are numbered in C order. What a loop carries has its first value in front of the loop, and the next one at its
end. Workspaces are w0, w1..., constants c0, c1..., tables of places i(k), j(k)..., rounds of nests r, s...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

import numpy as np
import sympy as sp

from codegen.errors import ArgumentError
from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Program, reachable
from codegen.ir.region import Carry, Gather, Region, Result, RolledProgram, Step, buffer_names, regions_of
from codegen.ir.tables import Affine, Indexed, Table

ROUNDS = "rsuvw"
SHOWN = 8  # numbers of a table
DEEPEST = 30  # operations in operations, in one line


def rolled_text(program: RolledProgram) -> str:
    """Return a rolled program as text; ArgumentError for a program without loops.

    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import buffer_names, Buffer
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> total = Result(0, 1, Affine(0, 0, 3), "add")
    >>> squares = Region(program_from_sympy([x], [x**2]), 3, (Gather(0, Affine(0, 1, 3)),), (total,), origin="f.py:2")
    >>> buffers = (Buffer("input", 3), Buffer("output", 1))
    >>> print(rolled_text(RolledProgram((Input("x", (3,)),), (Output((), ()),), buffers, (squares,), "norm")))
    norm(x[3]) -> out
    for k in range(3):  # f.py:2
        a = x[k]
        out += a**2
    """
    if not isinstance(program, RolledProgram):
        raise ArgumentError(f"text of {type(program).__name__}", why="only programs with loops are written so")
    return "\n".join(ProgramText(program).lines())


class ProgramText:
    """Names of buffers and tables, as they are met."""

    program: RolledProgram
    names: list[str]

    def __init__(self, program: RolledProgram) -> None:
        self.program = program
        self.bases = _bases(program)
        self.tables: dict[bytes, str] = {}
        self.shown: dict[bytes, str] = {}
        self.names = buffer_names(program)

    def lines(self) -> list[str]:
        """The whole text."""
        program = self.program
        steps = list(self.steps(program.steps, 0))
        inputs = ", ".join(f"{array.name}{list(array.shape) or ''}" for array in program.inputs)
        results = zip(self.names[program.first_output :], program.outputs, strict=True)
        outputs = ", ".join(f"{name}{list(output.shape) or ''}" for name, output in results)
        constants = [
            f"{name} = {_numbers(buffer.values)}"
            for name, buffer in zip(self.names, program.buffers, strict=True)
            if buffer.values is not None and buffer.size > 1
        ]
        return [f"{program.name}({inputs}) -> {outputs}", *constants, *self.shown.values(), *steps]

    def steps(self, steps: Sequence[Step], depth: int) -> Iterator[str]:
        """The lines of steps, those of nests further in."""
        for step in steps:
            if isinstance(step, Region):
                yield from ("    " * depth + line for line in self.region(step))
            else:
                yield "    " * depth + f"for {_round(depth)} in range({step.count:_}):"
                yield from self.steps(step.steps, depth + 1)

    def region(self, region: Region) -> list[str]:
        """The lines of one region."""
        if region.matrix is not None:
            return [self.matrix(region, region.matrix)]
        slots = _letters(len(region.gathers) + len(region.carries))
        carried = slots[len(region.gathers) :]
        lets, values = _let(region.body, slots)
        inside = self.reads(region.gathers, slots) + lets
        inside += [self.result(use, values) for use in region.results if use.kind != "last"]
        inside += [] if region.stop is None else [f"stop = {values[region.stop]}"]
        following = ", ".join(values[carry.output] for carry in region.carries)
        inside += [f"{', '.join(carried)} = {following}"] if carried else []
        inside += [] if region.stop is None else ["if stop: break"]
        before = [self.carry(name, carry) for name, carry in zip(carried, region.carries, strict=True)]
        after = [
            f"{self.place(use.buffer, use.table)} = {_last(region, use, carried)}"
            for use in region.results if use.kind == "last"
        ]  # fmt: skip
        origin = f"  # {region.origin}" if region.origin else ""
        if region.count == 1 and region.stop is None:
            return [*before, *([f"# {region.origin}"] if region.origin else []), *inside, *after]
        head = f"for k in range({region.count}):{origin}"
        return [*before, head, *(f"    {line}" for line in inside), *after]

    def matrix(self, region: Region, operation: MatrixOperation) -> str:
        """The line of a matrix operation: `w1[0:9] = solve(w0[0:9], x[0:3])`; .T are operands by columns."""
        turned = (".T" if is_turned else "" for is_turned in operation.transposed)
        operands = ", ".join(self.part(use) + by for use, by in zip(region.gathers, turned, strict=False))
        adds = "+=" if region.results[0].kind == "add" else "="
        line = f"{', '.join(map(self.part, region.results))} {adds} {operation.kind}({operands})"
        return f"{line}  # {operation.description}{f', {region.origin}' if region.origin else ''}"

    def part(self, use: Gather | Result) -> str:
        """Some places side by side."""
        return f"{self.names[use.buffer]}[{use.table.first}:{use.table.first + use.table.count}]"

    def reads(self, gathers: Sequence[Gather], slots: Sequence[str]) -> list[str]:
        parts = [self.place(use.buffer, use.table) for use in gathers]
        return [f"{', '.join(slots[: len(parts)])} = {', '.join(parts)}"] if parts else []

    def carry(self, name: str, carry: Carry) -> str:
        first = ", ".join(self.place(use.buffer, use.table) for use in carry.initial)
        return f"{name} = {first}" + (f", ...  # its value {carry.lag} repetitions before" if carry.lag > 1 else "")

    def result(self, use: Result, values: Sequence[str]) -> str:
        return f"{self.place(use.buffer, use.table)} {'+=' if use.kind == 'add' else '='} {values[use.output]}"

    def place(self, number: int, table: Table) -> str:
        """One place of a buffer, or a constant."""
        buffer, name = self.program.buffers[number], self.names[number]
        fixed = isinstance(table, Affine) and (not table.step or table.count == 1) and not any(table.shifts)
        if fixed and buffer.values is not None:
            return repr(float(buffer.values[table.first]))
        return name if buffer.size == 1 else f"{name}[{self.index(table)}]"

    def index(self, table: Table) -> str:
        """Which place it is in repetition k, in this round."""
        if isinstance(table, Affine):
            terms = [(table.step if table.count > 1 else 0, "k")]
            start = table.start
        else:
            base = self.bases[_steps_of(table.index)]
            terms, start = [(1, f"{self.named(base)}(k)")], int(table.index[0] - base[0])
        terms += [(shift, _round(depth)) for depth, shift in enumerate(table.shifts)]
        parts = [{1: name, -1: f"-{name}"}.get(factor, f"{factor}*{name}") for factor, name in terms if factor]
        if start or not parts:
            parts.insert(0 if parts and parts[0].startswith("-") else len(parts), str(start))
        return " + ".join(parts).replace("+ -", "- ")

    def numbers(self, use: Gather) -> str:
        """The first numbers of a table that is not affine, or of the constants that are read; "" of other places."""
        values = self.program.buffers[use.buffer].values
        if values is not None:
            return _numbers(values[use.table.places()]) if use.table.count > 1 else ""
        if not isinstance(use.table, Indexed):
            return ""
        base = self.bases[_steps_of(use.table.index)]
        self.named(base)
        return self.shown[base.tobytes()]

    def named(self, places: np.ndarray) -> str:
        """The name of a table that is not affine; equal ones have one name."""
        key = places.tobytes()
        if key not in self.tables:
            number = len(self.tables)
            letters = "ijlmnpq"
            name = letters[number] if number < len(letters) else f"i{number}"
            self.tables[key] = name
            self.shown[key] = f"{name}(k) = {_numbers(places)}"
        return self.tables[key]


def _bases(program: RolledProgram) -> dict[bytes, np.ndarray]:
    """Tables that differ by a number only are named once, by the lowest."""
    bases: dict[bytes, np.ndarray] = {}
    for region, _ in regions_of(program.steps):
        initial = [use for carry in region.carries for use in carry.initial]
        uses: list[Gather | Result] = [*region.gathers, *initial, *region.results]
        for places in (use.table.index for use in uses if isinstance(use.table, Indexed)):
            lowest = bases.setdefault(_steps_of(places), places)
            if places[0] < lowest[0]:
                bases[_steps_of(places)] = places
    return bases


def _steps_of(places: np.ndarray) -> bytes:
    moved: np.ndarray = places - places[0]
    return moved.tobytes()


def _let(body: Program, slots: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines for what a body uses more than once, and the text of its outputs."""
    results = [output.rows[0] for output in body.outputs]
    order = reachable(body, results)
    uses = Counter([part for row in order for part in body.operands[row]] + results)
    expressions: dict[int, sp.Basic] = {}
    depth: dict[int, int] = {}
    lines: list[str] = []
    for row in order:
        parts = [expressions[part] for part in body.operands[row]]
        if row < len(slots):
            expressions[row] = sp.Symbol(slots[row])
        elif not parts:
            expressions[row] = body.atoms[row]
        else:
            expressions[row] = rebuild(body.heads[row], parts)
            depth[row] = 1 + max(depth.get(part, 0) for part in body.operands[row])
            if (uses[row] > 1 and body.heads[row] is not Alias) or depth[row] > DEEPEST:
                depth[row] = 0
                lines.append(f"t{len(lines) + 1} = {expressions[row]}")
                expressions[row] = sp.Symbol(f"t{len(lines)}")
    return lines, [str(expressions[row]) for row in results]


def _last(region: Region, use: Result, carried: Sequence[str]) -> str:
    """The last value of a carry is that of its output after the loop."""
    pairs = zip(carried, region.carries, strict=True)
    return next(name for name, carry in pairs if carry.output == use.output and carry.lag == 1)


def _numbers(values: np.ndarray) -> str:
    kept = [f"{value:.6g}" for value in values[:SHOWN].tolist()]
    return ", ".join(kept) + (f", ... ({len(values)})" if len(values) > SHOWN else "")


def _letters(number: int) -> list[str]:
    """Names of slots: k is the repetition, others are tables and rounds."""
    letters = [letter for letter in ascii_lowercase if letter not in "ijklmnpqt" + ROUNDS]
    return [letters[k % len(letters)] + (str(k // len(letters)) if k >= len(letters) else "") for k in range(number)]


def _round(depth: int) -> str:
    return ROUNDS[depth] if depth < len(ROUNDS) else f"r{depth}"
