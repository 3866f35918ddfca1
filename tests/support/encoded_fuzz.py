"""Random machine operations: the encoder's code gives the bits of LLVM's.

`python -m tests.fuzz encoder 10000` tries that many programs: of numbers, which are put side by side too, of groups in
the lanes of registers, and of sweeps over columns. The bits of NaN are not compared: which of two a sum
passes on is the processor's affair, and LLVM exchanges operands at will.
"""

from __future__ import annotations

import ast
import ctypes
import math
import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from codegen.emission.emit import Form, emit
from codegen.emission.lane_functions import SINE_AND_COSINE, own_functions
from codegen.emission.schedule import schedule
from codegen.emission.straight import StraightPlan, SweepPlan, side_by_side
from codegen.encoding.encode import Encoded, encode, encode_sweep
from codegen.encoding.encoder import CONDITIONS, ROUNDINGS
from codegen.ir.machine_rows import GROUPS, LEAVES, TRUTHS, Row, code_of, operands_of
from codegen.ir.program import Input, Output, Program
from codegen.lanes import SCALAR
from codegen.lowering.halves import Split, split
from codegen.lowering.lower import Lowered
from codegen.machine.storage.program_cache import ObjectCode
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import counted

Vector = npt.NDArray[np.float64]
ARITHMETIC = ("add", "sub", "mul", "div", "fma", "fms", "fnma", "fnms", "neg", "abs", "sqrt", "select", "number")
OPERANDS = {"neg": 1, "abs": 1, "sqrt": 1, "fma": 3, "fms": 3, "fnma": 3, "fnms": 3}
FUNCTIONS = {
    **dict.fromkeys((*ROUNDINGS, "exp", "tanh", "llvm.sin.f64", "llvm.cos.f64", "tgamma"), 1),
    **dict.fromkeys(("llvm.maximum.f64", "llvm.minimum.f64", "llvm.copysign.f64", "pow", "atan2"), 2),
}  # fmt: skip
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, math.inf, -math.inf, math.nan, 5e-324, 1e-310, 1.7e308, 3.0, -7.25)
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class Operations:
    """Rows, results as (flat places or None for all, rows), sizes of inputs, and the seed of their numbers.

    With `columns`, one more input is the unit vectors of a sweep, and every other result has so many columns.
    """

    rows: list[Row]
    inputs: list[int]
    outputs: list[tuple[int, list[int] | None, list[int]]]  # size, places, rows
    seed: int
    columns: int = 0

    def program(self) -> tuple[Program, Lowered]:
        """The same as an argument of the encoder, and of LLVM's writer."""
        sizes = [*self.inputs, *([self.columns] if self.columns else [])]
        arrays = tuple(Input(f"x{k}", (size,)) for k, size in enumerate(sizes))
        outputs = tuple(self.output(k) for k in range(len(self.outputs)))
        stores = [
            (k, place, row)
            for k, output in enumerate(outputs)
            for place, row in zip(output.positions or range(len(output.rows)), output.rows, strict=True)
        ]
        return Program([], [], {}, arrays, outputs, seeded=self.columns > 0), Lowered(self.rows, stores, 0, 0, 0)

    def output(self, number: int) -> Output:
        """One result; of a sweep, every other one has a column for every entry of the seed."""
        size, places, rows = self.outputs[number]
        if not self.columns or number % 2:
            return Output((size,), tuple(rows), None if places is None else tuple(places))
        positions = tuple(self.columns * place for place in (range(size) if places is None else places))
        return Output((size, self.columns), tuple(rows), positions, swept=True)

    def points(self) -> list[Vector]:
        """Inputs: ordinary numbers, and special ones among them."""
        rng = np.random.default_rng(self.seed)
        found = []
        for size in self.inputs:
            values = rng.normal(size=size) * 10.0 ** rng.integers(-3, 3, size)
            odd = rng.random(size) < 0.1
            values[odd] = rng.choice(SPECIAL, int(odd.sum()))
            found.append(values)
        return found


class Author:
    """Draws operations; `reach` is how far back most of their operands lie."""

    def __init__(self, draw: Draw, inputs: int) -> None:
        self.draw, self.inputs, self.reach = draw, inputs, draw.choice((4, 16, 60))
        self.rows: list[Row] = []
        self.numbers = [self.add("input", k) for k in range(inputs)]
        self.truths: list[int] = []
        self.groups: dict[int, list[int]] = {2: [], 4: []}  # by lanes
        self.wide_truths: dict[int, list[int]] = {2: [], 4: []}

    def add(self, *row: object) -> int:
        if row in self.rows:
            return self.rows.index(row)
        self.rows.append(row)
        return len(self.rows) - 1

    def number(self) -> int:
        draw = self.draw
        if draw.chance(0.1):
            value = draw.choice(SPECIAL) if draw.chance(0.5) else draw.real(-3.0, 3.0)
            return self.add("const", struct.pack(">d", value))
        some = self.numbers if draw.chance(0.2) else self.numbers[-self.reach :]
        return draw.choice(some)

    def truth(self) -> int:
        if not self.truths or self.draw.chance(0.1):
            return self.add(self.draw.choice(("true", "false")))
        return self.draw.choice(self.truths[-self.reach :])

    def operation(self, calls: float) -> None:
        draw = self.draw
        if draw.chance(calls):
            function = draw.choice(list(FUNCTIONS))
            operands = [self.number() for _ in range(FUNCTIONS[function])]
            if "copysign" in function:  # the sign of a NaN that was computed is anybody's
                operands[1] = draw.below(self.inputs)
            if function in SINE_AND_COSINE and draw.chance(0.5):  # of one angle
                self.numbers += [self.add("call", each, *operands) for each in SINE_AND_COSINE]
                return
            made = self.add("call", function, *operands)
        elif draw.chance(0.15):
            self.condition()
            return
        else:
            code = draw.choice(ARITHMETIC)
            truths = [self.truth()] if code in ("select", "number") else []
            numbers = 2 if code == "select" else 0 if code == "number" else OPERANDS.get(code, 2)
            made = self.add(code, *truths, *[self.number() for _ in range(numbers)])
        self.numbers.append(made)

    def condition(self) -> None:
        draw = self.draw
        if draw.chance(0.5) or not self.truths:
            made = self.add("compare", draw.choice(list(CONDITIONS)), self.number(), self.number())
        elif draw.chance(0.7):
            made = self.add("logic", draw.choice(("and", "or", "xor")), self.truth(), self.truth())
        else:
            made = self.add("not", self.truth())
        self.truths.append(made)

    def alike(self, calls: float) -> None:
        """Operations that can go side by side, and others that read them alike."""
        draw = self.draw
        count = draw.integer(2, 9)
        values = [self.number() for _ in range(count)]
        for _ in range(draw.integer(1, 6)):
            code = draw.choice(("div", "sqrt", *ARITHMETIC[:10]))
            if draw.chance(calls):
                values = [self.add("call", draw.choice(("exp", "tanh")), value) for value in values]
                continue
            others = OPERANDS.get(code, 2) - 1
            shared = [self.number() for _ in range(others)]
            apart = draw.chance(0.5)
            values = [
                self.add(code, value, *([self.number() for _ in range(others)] if apart else shared))
                for value in values
            ]
        self.numbers += values

    def group(self, lanes: int) -> int:
        """Numbers in the lanes of a register."""
        draw, known = self.draw, self.groups[lanes]
        if known and draw.chance(0.7):
            return draw.choice(known[-self.reach :])
        if draw.chance(0.2):
            made = self.add("constants", tuple(struct.pack(">d", draw.choice(SPECIAL)) for _ in range(lanes)))
        elif draw.chance(0.3):
            made = self.add("spread", (lanes,), self.number())
        elif draw.chance(0.4) and self.inputs >= lanes:
            first = draw.below(self.inputs - lanes + 1)
            made = self.add("gather", (lanes,), *range(first, first + lanes))
        else:
            made = self.add("gather", (lanes,), *[self.number() for _ in range(lanes)])
        known.append(made)
        return made

    def some(self, wide: float, alike: float, calls: float) -> None:
        """Draw what comes next: with these probabilities groups, operations that are alike, and functions."""
        draw = self.draw
        if draw.chance(wide):
            draw.part(lambda: self.wide_operation(calls))
        elif draw.chance(alike):
            draw.part(lambda: self.alike(calls))
        else:
            draw.part(lambda: self.operation(calls))

    def wide_operation(self, calls: float) -> None:
        """An operation on all lanes; or a lane becomes a number."""
        draw = self.draw
        lanes = draw.choice((2, 4))
        if draw.chance(0.3):
            group = self.group(lanes)
            if self.rows[group][0] != "constants":  # whose lanes are constants
                self.numbers.append(self.add("lane", draw.below(lanes), group))
            return
        truths = self.wide_truths[lanes]
        if draw.chance(0.2) or not truths:
            shape: list[object] = ["compare", draw.choice(list(CONDITIONS))]
            truths.append(self.add("wide", (lanes, *shape), self.group(lanes), self.group(lanes)))
            return
        if draw.chance(0.1):
            code = draw.choice(("and", "or", "xor", "not"))
            shape = ["not"] if code == "not" else ["logic", code]
            operands = [draw.choice(truths) for _ in range(1 if code == "not" else 2)]
            truths.append(self.add("wide", (lanes, *shape), *operands))
            return
        self.groups[lanes].append(self._wide_number(lanes, calls))

    def _wide_number(self, lanes: int, calls: float) -> int:
        draw, truths = self.draw, self.wide_truths[lanes]
        if draw.chance(calls):
            function = draw.choice(list(FUNCTIONS))
            operands = [self.group(lanes) for _ in range(FUNCTIONS[function])]
            if "copysign" in function:  # the sign of a NaN that was computed is anybody's
                operands[1] = self.add("spread", (lanes,), draw.below(self.inputs))
            if function in SINE_AND_COSINE:
                self.groups[lanes] += [self.add("wide", (lanes, "call", each), *operands) for each in SINE_AND_COSINE]
            return self.add("wide", (lanes, "call", function), *operands)
        code = draw.choice(ARITHMETIC)
        tests = [draw.choice(truths)] if code in ("select", "number") else []
        numbers = 2 if code == "select" else 0 if code == "number" else OPERANDS.get(code, 2)
        return self.add("wide", (lanes, code), *tests, *[self.group(lanes) for _ in range(numbers)])


def make(draw: Draw) -> Operations:
    """Draw operations on a few arrays."""
    inputs = [draw.integer(0, 20) for _ in range(draw.integer(1, 4))] + [draw.integer(1, 20)]
    author = Author(draw, sum(inputs))
    calls = draw.choice((0.0, 0.0, 0.02, 0.2))
    wide, alike = draw.choice(((0.0, 0.0), (0.5, 0.0), (0.9, 0.0), (0.0, 0.3)))
    columns = draw.integer(4, 20) if not wide and draw.chance(0.3) else 0
    operations = draw.integer(1, draw.choice((8, 40, 150)))
    once = operations // 3 if columns else operations
    for _ in range(once):
        author.some(wide, alike, calls)
    author.numbers += [author.add("input", sum(inputs) + k) for k in range(columns)]
    for _ in range(operations - once):  # where a function of the seed would be LLVM's
        author.some(wide, alike, 0.0)
    last = author.numbers[-1]
    everywhere = without(author.rows, sum(inputs)) if columns else author.numbers  # the same in all columns
    outputs = []
    for number in range(draw.integer(1, 4)):
        size = draw.integer(0, 12)
        places = None if draw.chance(0.6) else sorted(draw.sample(range(size), draw.integer(0, size)))
        count = size if places is None else len(places)
        rows = [draw.choice(everywhere) if columns and number % 2 else author.number() for _ in range(count)]
        outputs.append((size, places, rows))
    if len(outputs) % 2 == 0 or not columns:
        outputs.append((1, None, [last]))
    return Operations(author.rows, inputs, outputs, draw.below(SEEDS), columns)


def without(rows: list[Row], first: int) -> list[int]:
    """Return the numbers among rows that no input from the first one on has reached."""
    reached: set[int] = set()
    for index, row in enumerate(rows):
        seed = row[0] == "input" and row[1] >= first
        if seed or (row[0] not in LEAVES and not reached.isdisjoint(operands_of(row))):
            reached.add(index)
    return [index for index, row in enumerate(rows) if index not in reached and row[0] not in TRUTHS]


def check(case: Operations) -> str:
    """Compare the bits of both; the encoder's code leaves inputs as they are, and says that all went well."""
    program, lowered = case.program()
    points = case.points()
    own = own_functions(lowered.rows, SCALAR, fast=False)
    if program.seeded:
        return check_sweep(program, lowered, points)
    if any(row[0] in GROUPS for row in lowered.rows):
        forms = {"groups": lowered}
        emitted = emit(program, lowered, schedule(lowered), Form(formulas=own))
    else:
        forms = {"numbers": lowered}
        grouped = side_by_side(lowered, own=own)
        if grouped is not lowered:
            forms["put side by side"] = grouped
        emitted = StraightPlan.of(program, lowered).emit()
        if "call" in map(code_of, lowered.rows):
            check_library(program, lowered, points)
    wanted = results(ObjectCode.of(emitted, 0), program, points)
    for form, rows in forms.items():
        compare(form, results(ObjectCode.encoded(encode(program, rows, own), 0.0), program, points), wanted)
    return f"same bits: {', '.join(forms)}"


def check_library(program: Program, lowered: Lowered, points: list[Vector]) -> None:
    """The same with functions of the vector libm."""
    own = own_functions(lowered.rows, SCALAR, fast=True)
    grouped = side_by_side(lowered, own=own, vector_libm=True)
    wanted = results(ObjectCode.of(StraightPlan.of(program, lowered, vector_libm=True).emit(), 0), program, points)
    found = results(ObjectCode.encoded(encode(program, grouped, own, library=True), 0.0), program, points)
    compare("vector library", found, wanted)


def check_sweep(program: Program, lowered: Lowered, points: list[Vector]) -> str:
    """The same for every column of a sweep."""
    halves = split(program, lowered)
    wanted = results(ObjectCode.of(SweepPlan.of(program, halves).emit(), 0), program, points)
    compare("sweep", results(ObjectCode.encoded(encoded_sweep(program, halves), 0.0), program, points), wanted)
    return "same bits: sweep"


def encoded_sweep(program: Program, halves: Split) -> Encoded:
    """Return a sweep, encoded with equal operations of its first half side by side."""
    own = own_functions(halves.once.rows, SCALAR, fast=False)
    return encode_sweep(program, replace(halves, once=side_by_side(halves.once, own=own)), own)


def compare(form: str, found: list[Vector], wanted: list[Vector]) -> None:
    """Compare the bits of results with those of LLVM."""
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        same = (one.view(np.uint64) == other.view(np.uint64)) | (np.isnan(one) & np.isnan(other))
        assert same.all(), f"{form}: result {k}: {one[~same]} is {other[~same]} by LLVM"
        counted(form, one.size)


def results(code: ObjectCode, program: Program, points: list[Vector]) -> list[Vector]:
    """What machine code computes."""
    library = code.linked()
    arrays = [np.full(output.size, 123.0) for output in program.outputs]
    before = [point.tobytes() for point in points]
    status = ENTRY(library.addresses["kernel"])(*(pointers(each) for each in (points, arrays)))
    assert status == 0
    assert [point.tobytes() for point in points] == before
    return arrays


def pointers(arrays: list[Vector]) -> ctypes.Array[ctypes.c_void_p]:
    """Return a table of the addresses of arrays."""
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def written(case: Operations) -> str:
    """Return the operations as text."""
    lines = "\n".join(f"{row!r}," for row in case.rows)
    return f"([\n{lines}\n],\n{case.inputs!r},\n{case.outputs!r},\n{case.seed},\n{case.columns})\n"


def read(text: str) -> Operations:
    """Return the operations of a text."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return Operations(*ast.literal_eval(body))
