"""Complex numbers: a program's machine operations become operations on real and imaginary parts.

The program is lowered as for real numbers, but with the heads of `COMPLEX`: analytic functions alone, in forms that
hold in the whole plane. Each row then becomes two rows of the real machine, so that everything behind this file
(fusion, chunks, lanes) stays as it is. Arrays have the parts of a number side by side, as NumPy has.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import sympy as sp
from sympy.codegen import cfunctions

import codegen.functions.complex_functions as functions
import codegen.heads as heads
from codegen.errors import LoweringError
from codegen.functions.complex_functions import Parts
from codegen.functions.formula_values import Formula, MachineNumber, log, lowering, reciprocal
from codegen.functions.function_rows import Intrinsic
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.ir.machine_rows import Machine, Reference, Row
from codegen.ir.program import Head, Input, Output, Program
from codegen.lowering.lower import Lowered

FUNCTIONS: dict[str, Callable[[MachineNumber, MachineNumber], Parts]] = {
    "exp": functions.exponential, "log": functions.logarithm, "expm1": functions.exponential_less_one,
    "log1p": functions.logarithm_of_one_plus, "llvm.sin.f64": functions.sine, "llvm.cos.f64": functions.cosine,
    "tan": functions.tangent, "sinh": functions.hyperbolic_sine, "cosh": functions.hyperbolic_cosine,
    "tanh": functions.hyperbolic_tangent,
}  # fmt: skip


def _formula(head: Head, formula: Formula) -> Intrinsic:
    return replace(INTRINSICS[head], native=lowering(formula))


COMPLEX: dict[Head, Intrinsic] = {
    **{
        head: INTRINSICS[head]
        for head in (
            sp.Add, sp.Mul, sp.Pow, heads.Alias, cfunctions.Sqrt, cfunctions.fma, sp.exp, sp.log, heads.exp2,
            heads.expm1, heads.log1p, sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinh, sp.cosh,
            heads.one_minus_square,
        )
    },
    sp.tanh: _formula(sp.tanh, lambda u: u.call("tanh")),
    sp.coth: _formula(sp.coth, lambda u: reciprocal(u.call("tanh"))),
    sp.sech: _formula(sp.sech, lambda u: reciprocal(u.call("cosh"))),
    sp.csch: _formula(sp.csch, lambda u: reciprocal(u.call("sinh"))),
    heads.log2: _formula(heads.log2, lambda u: log(u) / math.log(2.0)),
    heads.log10: _formula(heads.log10, lambda u: log(u) / math.log(10.0)),
}  # fmt: skip


def complex_head(head: Head) -> Intrinsic:
    """Return the complex form of a head; LoweringError names one that is not analytic, or has none here.

    >>> complex_head(sp.Abs)
    Traceback (most recent call last):
        ...
    codegen.errors.LoweringError: Abs of a complex number: ...
    """
    row = COMPLEX.get(head)
    if row is None:
        intrinsic(head)  # names a head that has no form at all
        raise LoweringError(
            f"{head.__name__} of a complex number",
            why="complex128 kernels have arithmetic, powers, exp, log, and trigonometric and hyperbolic functions",
            do='rewrite the expression in these, or compile for dtype="float64"',
        )
    return row


def in_parts(program: Program) -> Program:
    """Return the program with one more axis of its arrays, for the two parts of a number; rows stay as they are.

    >>> in_parts(Program([], [], {}, (Input("z", (3,)),), ())).inputs
    (Input(name='z', shape=(3, 2)),)
    """
    inputs = tuple(Input(array.name, (*array.shape, 2)) for array in program.inputs)
    outputs = tuple(
        Output(
            (*output.shape, 2),
            tuple(row for row in output.rows for _ in range(2)),
            None if output.positions is None else tuple(2 * k + part for k in output.positions for part in range(2)),
        )
        for output in program.outputs
    )
    return replace(program, inputs=inputs, outputs=outputs)


def split(lowered: Lowered) -> Lowered:
    """Return the operations on parts: input k is read at 2k and 2k + 1, and results are stored likewise.

    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> sorted(split(lower(program_from_sympy([x, y], [x * y]), complex_head)).count().items())
    [('add', 1), ('mul', 4), ('sub', 1)]
    """
    splitter = _Splitter(lowered.rows)
    for index in lowered.live():
        splitter.translate(index)
    machine, stores = splitter.machine, []
    for array, position, row in lowered.stores:
        for k, part in enumerate(splitter.whole(row)):
            stores.append((array, 2 * position + k, machine.materialise(part.reference)))
    return replace(lowered, rows=machine.rows, stores=stores)


Number: TypeAlias = tuple[MachineNumber, MachineNumber | None]  # parts; None where it is known to be real


class _Splitter:
    """Translates rows."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.machine = machine = Machine()
        self.numbers: dict[int, Number] = {}
        self.by_code: dict[str, Callable[[Row], Number]] = {
            "input": lambda row: (self.at(machine.input(2 * row[1])), self.at(machine.input(2 * row[1] + 1))),
            "const": lambda row: (self.at(machine.row(*row)), None),
            "neg": lambda row: self._by_parts(operator.neg, row[1]),
            "add": partial(self._sum, operator.add),
            "sub": partial(self._sum, operator.sub),
            "mul": self._product,
            "div": self._quotient,
            "sqrt": lambda row: functions.square_root(*self.whole(row[1])),
            "call": self._call,
        }

    def at(self, reference: Reference) -> MachineNumber:
        return MachineNumber(self.machine, reference)

    def translate(self, index: int) -> None:
        """Translate one row, whose operands have been translated."""
        row = self.rows[index]
        if row[0] not in self.by_code:
            raise LoweringError(f"a {row[0]!r} among complex numbers", why="a truth value is no complex number")
        self.numbers[index] = self.by_code[row[0]](row)

    def whole(self, index: int) -> Parts:
        """Both parts of a number."""
        real, imaginary = self.numbers[index]
        return real, real.constant(0.0) if imaginary is None else imaginary

    def _by_parts(self, function: Callable[[MachineNumber], MachineNumber], index: int) -> Number:
        real, imaginary = self.numbers[index]
        return function(real), None if imaginary is None else function(imaginary)

    def _sum(self, pairwise: Callable[[MachineNumber, MachineNumber], MachineNumber], row: Row) -> Number:
        """A real operand counts as c + 0i, as in NumPy: 1 - (5 + 0i) is above the cut of the square root."""
        (left, x), (right, y) = self.numbers[row[1]], self.numbers[row[2]]
        if x is None and y is None:
            return pairwise(left, right), None
        return pairwise(left, right), pairwise(self.whole(row[1])[1], self.whole(row[2])[1])

    def _product(self, row: Row) -> Number:
        (left, x), (right, y) = self.numbers[row[1]], self.numbers[row[2]]
        if x is None:
            return self._by_parts(lambda part: left * part, row[2])
        if y is None:
            return self._by_parts(lambda part: right * part, row[1])
        return functions.multiply((left, x), (right, y))

    def _quotient(self, row: Row) -> Number:
        divisor, imaginary = self.numbers[row[2]]
        if imaginary is None:
            return self._by_parts(lambda part: part / divisor, row[1])
        return functions.divide(self.whole(row[1]), (divisor, imaginary))

    def _call(self, row: Row) -> Number:
        symbol, *operands = row[1:]
        if symbol == "pow":
            return self._power(*operands)
        if symbol == "exp2":
            return self._exponential_to(math.log(2.0), operands[0])
        return FUNCTIONS[symbol](*self.whole(operands[0]))

    def _power(self, base: int, exponent: int) -> Number:
        """General powers; a positive constant base, or a real exponent, leaves the parts apart."""
        constant = self.numbers[base][0].known if self.numbers[base][1] is None else None
        if constant is not None and constant > 0:
            return self._exponential_to(math.log(constant), exponent)
        real, imaginary = self.numbers[exponent]
        if imaginary is None:
            x, y = functions.logarithm(*self.whole(base))
            return functions.exponential(real * x, real * y)
        return functions.power(self.whole(base), (real, imaginary))

    def _exponential_to(self, scale: float, exponent: int) -> Number:
        x, y = self.whole(exponent)
        return functions.exponential(scale * x, scale * y)
