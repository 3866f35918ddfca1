"""Errors of every function in units in the last place: `python -m benchmarks.accuracy [--rounds N]`.

Each head of the table of intrinsics is compiled in both accuracies and compared with 50 digits: at the points that the
tests have for it, at random points between them, next to them, and at arguments that are hard for its kind. Vector
functions run in lanes of every width that the machine has, and functions that have formulas of their own for the lanes
of loops run in a loop. Exits non-zero when one is off by more than its bound.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mp

from codegen import Input, Kernel, Output, Program, compile_program
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.functions.lane_table import FORMULAS
from codegen.functions.libraries import FUNCTIONS, vector_symbol
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.lowering.passes import prepare
from codegen.options import Options
from tests.support.kernel_points import OWN_TESTS, TRUTHS, points_of, ulp_error

Point = tuple[float, ...]

DIGITS = 50
RESULTS = Path(__file__).parent / "results" / "accuracy.md"
BUCKETS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PIECES = 60  # random points of one round
WIDTHS = (2, 4, 8)
ACCURACIES = ("strict", "loops", "fast")
PERIODS = [math.pi / 2 * k for k in (1, 2, 3, 4, 7, 22, 1e3, 1e5, 1e8)] + [1e15, 1e22, 1e300]
HARD: dict[str, list[float]] = {  # for each of several functions
    "sin cos tan cot sec csc sinc": [*PERIODS, 1e-300, 5e-324, 0.7853981633974483],
    "exp exp2 expm1": [709.782712893384, -708.4, -745.1, 1e-17, 5e-324, -0.1, 0.34657],
    "log log2 log10": [5e-324, 2.2e-308, 1 - 2**-53, 1 + 2**-52, 1.7e308, 0.9999, 1.0001],
    "log1p": [1e-17, -1e-17, 5e-324, -1 + 2**-53, 1.7e308],
    "sinh cosh tanh asinh atan erf cbrt": [1e-17, 5e-324, 710.4, 0.625, 22.0, 1e-3],
    "asin acos atanh": [1 - 2**-53, -1 + 2**-53, 1e-17, 0.5, 5e-324],
    "acosh": [1 + 2**-52, 1.7e308],
    "erfc": [26.5, -6.0, 1e-17],
}


@dataclass
class Errors:
    """Errors of one head in one accuracy, in ULP, and the point of the largest."""

    values: list[float] = field(default_factory=list)
    worst: Point = ()
    over: int = 0  # points where it is beyond the bound, and not because the argument itself is rounded
    beyond: tuple[Point, float] = ((), 0.0)  # one of them

    def add(self, error: float, point: Point) -> None:
        """Add a point."""
        if error > max(self.values, default=-1.0):
            self.worst = point
        self.values.append(error)

    def cells(self) -> list[str]:
        """Largest, median, and how many per cent fall between the bounds of the histogram."""
        if not self.values:
            return ["", "", *[""] * (len(BUCKETS) + 1)]
        edges = [-1.0, *BUCKETS, math.inf]
        counts = [sum(low < value <= high for value in self.values) for low, high in pairwise(edges)]
        shares = ["" if count == 0 else f"{100 * count / len(self.values):.3g}" for count in counts]
        return [f"{max(self.values):.3g}", f"{float(np.median(self.values)):.2g}", *shares]


def program_of(head: Any, point: Point, fixed: tuple[int, ...]) -> Program:
    """Return the program of one head; the operands at `fixed` are constants taken from the point."""
    free = [k for k in range(len(point)) if k not in fixed]
    heads: list[Any] = [sp.Symbol] * len(free)
    atoms: dict[int, sp.Basic] = {row: sp.Symbol(f"x{k}") for row, k in enumerate(free)}
    rows = {k: row for row, k in enumerate(free)}
    for k in fixed:
        rows[k] = len(heads)
        atoms[len(heads)] = sp.Integer(int(point[k])) if point[k] == int(point[k]) else sp.Float(point[k])
        heads.append(type(atoms[len(heads)]))
    operands: list[tuple[int, ...]] = [()] * len(heads)
    inputs = tuple(Input(f"x{k}", ()) for k in free)
    outputs = (Output((), (len(heads),)),)
    return Program([*heads, head], [*operands, tuple(rows[k] for k in range(len(point)))], atoms, inputs, outputs)


def orders_of(points: Sequence[Point]) -> tuple[int, ...]:
    """Positions of operands that are whole numbers in all points of a function of several: orders and degrees."""
    count = len(points[0])
    if count == 1:
        return ()
    return tuple(k for k in range(count) if all(point[k] == math.floor(point[k]) for point in points))


def between(random: Random, first: float, second: float) -> float:
    """A random number between two, by size where they have one sign."""
    share = random.random()
    if first * second > 0:
        return math.copysign(math.exp((1 - share) * math.log(abs(first)) + share * math.log(abs(second))), first)
    return (1 - share) * first + share * second


def hard_points(head: Any, points: Sequence[Point]) -> list[Point]:
    """The tests' points, their neighbours, and arguments that are hard for the kind of function."""
    finite = [point for point in points if all(map(math.isfinite, point))]
    steps = [tuple(math.nextafter(value, math.inf) for value in point) for point in finite if len(point) == 1]
    kinds = [values for names, values in HARD.items() if head.__name__ in names.split()]
    named = kinds[0] if kinds and len(finite[0]) == 1 else []
    return [*finite, *steps, *[(value,) for value in named], *[(-value,) for value in named]]


def random_points(head: Any, random: Random, points: Sequence[Point], orders: tuple[int, ...]) -> list[Point]:
    """Random points between points of the tests that have the same orders."""
    found = []
    for _ in range(PIECES):
        first = random.choice(points)
        second = random.choice([point for point in points if all(point[k] == first[k] for k in orders)])
        found.append(
            tuple(
                u if k in orders else between(random, u, v) for k, (u, v) in enumerate(zip(first, second, strict=True))
            )
        )
    return found


def exact_value(head: Any, point: Point) -> Any:
    """The value in 50 digits."""
    with mp.workdps(DIGITS):
        return mp.mpf(intrinsic(head).reference(*[mp.mpf(value) for value in point]))


def condition(head: Any, point: Point, exact: Any) -> float:
    """How many ULP the value moves when each operand moves by one relative rounding unit."""
    moved = 0.0
    with mp.workdps(DIGITS):
        for k, value in enumerate(point):
            shifted = [mp.mpf(u) * (1 + mp.mpf(2) ** -52) if j == k else mp.mpf(u) for j, u in enumerate(point)]
            change = abs(mp.mpf(intrinsic(head).reference(*shifted)) - exact)
            moved += float(change / math.ulp(float(exact))) if value and not mp.isnan(change) else 0.0
    return moved


def bound_of(head: Any, program: Program, accuracy: str) -> float:
    """The stated bound: that of the table of intrinsics, and 4 ULP more for each call of a vector function."""
    bound = max(intrinsic(head).ulp, 0.5)
    if accuracy != "fast":
        return bound
    rows = prepare(program, Options(accuracy="fast")).fused
    calls = [rows.rows[row][1] for row in rows.live() if rows.rows[row][0] == "call"]
    vector = [symbol for symbol in calls if any(vector_symbol(symbol, width) for width in WIDTHS)]
    return bound + sum(FUNCTIONS[symbol].ulp for symbol in vector)


class Loop:
    """A function in a loop over its arguments, several at a time."""

    def __init__(self, program: Program) -> None:
        arity, every = len(program.inputs), Affine(0, 1, PIECES)
        gathers = tuple(Gather(k, every) for k in range(arity))
        region = Region(program, PIECES, gathers, (Result(0, arity, every, "store"),))
        buffers = (*[Buffer("input", PIECES)] * arity, Buffer("output", PIECES))
        inputs = tuple(Input(found.name, (PIECES,)) for found in program.inputs)
        self.kernel = compile_program(RolledProgram(inputs, (Output((PIECES,), ()),), buffers, (region,)))

    def batch(self, *arrays: Any) -> Any:
        """The values at any number of points."""
        starts = range(0, len(arrays[0]), PIECES)
        parts = [self.kernel(*(np.resize(x[start : start + PIECES], PIECES) for x in arrays)) for start in starts]
        return np.concatenate(parts)[: len(arrays[0])]


def kernels_of(program: Program, accuracy: str) -> list[Kernel | Loop]:
    """Kernels that call the function in every way of an accuracy; none in loops that call what straight lines call."""
    if accuracy == "strict":
        return [compile_program(program)]
    if accuracy == "loops":
        fused = prepare(program, Options()).fused
        calls = {fused.rows[row][1] for row in fused.live() if fused.rows[row][0] == "call"}
        return [Loop(program)] if program.inputs and calls & FORMULAS.keys() else []
    return [compile_program(program, accuracy="fast", lanes=width) for width in WIDTHS]


class Study:
    """All heads, in both accuracies, and in loops."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.errors: dict[tuple[str, str], Errors] = {}
        self.bounds: dict[tuple[str, str], float] = {}
        self.known: dict[tuple[Any, Point], list[tuple[str, float, list[Kernel | Loop]]]] = {}

    def run(self, head: Any) -> None:
        """Check one head: the hard points, then random ones, the same in every run."""
        points = [point for point in points_of(head) if all(map(math.isfinite, point))]
        orders, random = orders_of(points), Random(head.__name__)
        self.check(head, hard_points(head, points), orders)
        for _ in range(self.rounds):
            self.check(head, random_points(head, random, points, orders), orders)

    def check(self, head: Any, points: list[Point], orders: tuple[int, ...]) -> None:
        """Compare at some points, those of the same orders in one batch."""

        def order(point: Point) -> Point:
            return tuple(point[k] for k in orders)

        for _, group in groupby(sorted(points, key=order), key=order):
            same = list(group)
            exact = [exact_value(head, point) for point in same]
            free = [k for k in range(len(same[0])) if k not in orders]
            key = head, order(same[0])
            if key not in self.known:
                program = program_of(head, same[0], orders)
                self.known[key] = [
                    (accuracy, bound_of(head, program, accuracy), kernels_of(program, accuracy))
                    for accuracy in ACCURACIES
                ]
            arrays = [np.array([point[k] for point in same]) for k in free]
            for accuracy, bound, kernels in self.known[key]:
                for kernel in kernels:
                    values = np.atleast_1d(kernel.batch(*arrays)) if free else [kernel()] * len(same)
                    self.compare(head, accuracy, bound, same, [float(value) for value in values], exact)

    def compare(
        self, head: Any, accuracy: str, bound: float, points: list[Point], values: list[float], exact: list[Any]
    ) -> None:
        """Add the errors; a large one is excused where rounding the argument would move the value as far."""
        key = head.__name__, accuracy
        errors = self.errors.setdefault(key, Errors())
        self.bounds[key] = max(bound, self.bounds.get(key, 0.0))
        for point, value, wanted in zip(points, values, exact, strict=True):
            if mp.isnan(wanted) or mp.isinf(wanted) or abs(float(wanted)) < sys.float_info.min:
                continue  # the conventions at poles, overflow and underflow are the business of the tests
            error = ulp_error(value, wanted)
            errors.add(error, point)
            if error > bound and not error <= bound * (1 + condition(head, point, wanted)):
                errors.over += 1
                errors.beyond = point, error


def report(study: Study) -> str:
    """Return the table."""
    header = ["head", "accuracy", "bound", "points", "largest", "median", *[f"<= {bound:g}" for bound in BUCKETS]]
    header.append(f"> {BUCKETS[-1]:g}")
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for (name, accuracy), errors in sorted(study.errors.items()):
        row = [name, accuracy, f"{study.bounds[name, accuracy]:g}", str(len(errors.values)), *errors.cells()]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


ABOUT = """# Errors of functions in units in the last place

Made by `python -m benchmarks.accuracy`: every head of the table of intrinsics against {digits} digits, in both
accuracies; "fast" in 2, 4 and 8 lanes. "loops" is "strict" in loops, where functions have formulas of their own.
Columns from `<= 0.5` on are per cent of the points. A value may be off by its bound, or by its bound times what one
rounding of each argument does to it (next to a zero of a Bessel function no floating-point argument comes closer).
The bound of "fast" is that of "strict" and 4 ULP for each call of a vector function.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all heads, write the report; 1 when a function is off by more than its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help=f"of {PIECES} random points for each head")
    parser.add_argument("--heads", nargs="*", default=[], help="names; all by default")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    study = Study(options.rounds)
    for head in INTRINSICS:
        if head not in OWN_TESTS | TRUTHS and (not options.heads or head.__name__ in options.heads):
            study.run(head)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(ABOUT.format(digits=DIGITS) + report(study), encoding="utf-8")
    failed = {key: errors for key, errors in study.errors.items() if errors.over}
    for (name, accuracy), errors in failed.items():
        point, error = errors.beyond
        bound = study.bounds[name, accuracy]
        print(f"{name} ({accuracy}): {errors.over} points beyond {bound:g}: {error:.3g} at {point}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
