"""Turn complex operations into operations on real and imaginary parts.

The program is lowered as for real numbers, but with the heads of `COMPLEX`: only analytic functions, in forms that
hold in the whole plane. Each row then becomes two rows of the real machine, so that later stages (fusion, chunks,
lanes) are the same. Arrays have the parts of a number side by side, as in NumPy.

A function of a complex number is a formula: it takes the parts x, y of its operand, and returns the parts of the
result. Branch cuts and signs of zero are those of C and NumPy: an imaginary part of -0 is below the cut.
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

import codegen.heads as heads
from codegen.errors import LoweringError
from codegen.functions.formula_values import (
    Formula,
    MachineNumber as Number,
    atan2,
    copysign,
    cos,
    cosh,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    lowering,
    maximum,
    minimum,
    reciprocal,
    sin,
    sinh,
    sqrt,
    tan,
    where,
)
from codegen.functions.function_rows import Intrinsic
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.ir.machine_rows import Machine, Reference, Row
from codegen.ir.program import Head, Input, Output, Program
from codegen.lowering.lower import Lowered

Parts = tuple[Number, Number]

LARGEST_EXPONENT = 709.0  # exp overflows soon above; the rest of the exponent is a separate factor
HUGE, SHRINK = 1e300, 2.0**-10  # the distance of two larger numbers may overflow


def multiply(a: Parts, b: Parts) -> Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def divide(a: Parts, b: Parts) -> Parts:
    """Smith's quotient, scaled by the larger part of the divisor against overflow; a / 0 is infinite or nan."""
    real_is_larger = abs(b[0]) >= abs(b[1])
    large, small = where(real_is_larger, b[0], b[1]), where(real_is_larger, b[1], b[0])
    by_zero = large.equals(0.0)
    ratio = where(by_zero, 0.0, small / large)
    divisor = where(by_zero, abs(large), large + small * ratio)
    first, second = where(real_is_larger, a[0], a[1]), where(real_is_larger, a[1], a[0])
    real, imaginary = (first + second * ratio) / divisor, (second - first * ratio) / divisor
    return real, where(real_is_larger, imaginary, -imaginary)


def square_root(x: Number, y: Number) -> Parts:
    """sqrt: the larger part without cancellation or overflow, the other one from y = 2 re im."""
    large = 2.0 * sqrt(0.125 * abs(x) + hypot(0.125 * x, 0.125 * y))
    special = large.equals(0.0) | abs(y).equals(math.inf)
    small = where(special, y, 0.5 * y / large)
    left = x < 0.0
    return where(left, abs(small), large), where(left, copysign(large, y), small)


def exponential(x: Number, y: Number) -> Parts:
    """e**x (cos y + i sin y), where e**x may overflow and its products not; a real operand stays real."""
    over = x > LARGEST_EXPONENT
    shift = where(over, LARGEST_EXPONENT, 0.0)
    factor = where(over, math.exp(LARGEST_EXPONENT), 1.0)
    size = exp(x - shift)
    real, imaginary = size * cos(y) * factor, size * sin(y) * factor
    flat = y.equals(0.0)
    return where(flat, size * factor, real), where(flat, y, imaginary)


def logarithm(x: Number, y: Number) -> Parts:
    """log |z| + i arg z; near |z| = 1 by log1p of |z|**2 - 1."""
    a, b = abs(x), abs(y)
    high, low = maximum(a, b), minimum(a, b)
    near = 0.5 * log1p((high - 1.0) * (high + 1.0) + low * low)
    huge = high > HUGE
    scale = where(huge, SHRINK, 1.0)
    lost = where(huge, -math.log(SHRINK), 0.0)
    distance = hypot(scale * x, scale * y)
    close = (distance > 0.71) & (distance < 1.73)
    return where(close, near, log(distance) + lost), atan2(y, x)


def logarithm_of_one_plus(x: Number, y: Number) -> Parts:
    """log(1 + z), exact to the last digits for small z."""
    near = 0.5 * log1p(x * (x + 2.0) + y * y)
    far, angle = logarithm(x + 1.0, y)
    return where(maximum(abs(x), abs(y)) < 0.5, near, far), angle


def exponential_less_one(x: Number, y: Number) -> Parts:
    """exp(z) - 1: expm1(x) cos y + (cos y - 1), exact to the last digits for small z."""
    half = sin(0.5 * y)
    versine = 2.0 * (half * half)
    shrunk = expm1(x)
    _, imaginary = exponential(x, y)
    return where(y.equals(0.0), shrunk, shrunk * cos(y) - versine), imaginary


def sine(x: Number, y: Number) -> Parts:
    """sin x cosh y + i cos x sinh y."""
    return _product(sin(x), cosh(y)), cos(x) * sinh(y)


def cosine(x: Number, y: Number) -> Parts:
    """cos x cosh y - i sin x sinh y."""
    return cos(x) * cosh(y), -_product(sin(x), sinh(y))


def _product(u: Number, v: Number) -> Number:
    """u v, 0 for u = 0 even where v has overflowed."""
    return where(u.equals(0.0), u * copysign(minimum(abs(v), 1.0), v), u * v)


def hyperbolic_sine(x: Number, y: Number) -> Parts:
    """sinh x cos y + i cosh x sin y."""
    imaginary, real = sine(y, x)
    return real, imaginary


def hyperbolic_cosine(x: Number, y: Number) -> Parts:
    """cosh x cos y + i sinh x sin y."""
    real, imaginary = cosine(y, x)
    return real, -imaginary


def hyperbolic_tangent(x: Number, y: Number) -> Parts:
    """Kahan's formula: no cancellation near the zeros and poles; +-1 and a tail where sinh would overflow."""
    t, s = tan(y), sinh(x)
    beta = 1.0 + t * t
    rho = sqrt(1.0 + s * s)
    divisor = 1.0 + beta * (s * s)
    real, imaginary = beta * (rho * s) / divisor, t / divisor
    decay = exp(-abs(x))
    tail = 4.0 * (sin(y) * cos(y) * (decay * decay))
    far = abs(x) >= 22.0  # 1 - tanh(x) is below half a unit in the last place
    return where(far, copysign(x.constant(1.0), x), real), where(far, tail, imaginary)


def tangent(x: Number, y: Number) -> Parts:
    """tan z = -i tanh(i z)."""
    imaginary, real = hyperbolic_tangent(y, x)
    return real, imaginary


def power(base: Parts, exponent: Parts) -> Parts:
    """exp(w log z); z**0 is 1, and 0**w is 0 where the real part of w is positive."""
    real, imaginary = exponential(*multiply(exponent, logarithm(*base)))
    none = exponent[1].equals(0.0) & exponent[0].equals(0.0)
    nothing = base[0].equals(0.0) & base[1].equals(0.0)
    vanishes = nothing & (exponent[0] > 0.0)
    at_zero = where(vanishes, 0.0, real), where(vanishes, 0.0, imaginary)
    return where(none, 1.0, at_zero[0]), where(none, 0.0, at_zero[1])


FUNCTIONS: dict[str, Callable[[Number, Number], Parts]] = {
    "exp": exponential, "log": logarithm, "expm1": exponential_less_one,
    "log1p": logarithm_of_one_plus, "llvm.sin.f64": sine, "llvm.cos.f64": cosine,
    "tan": tangent, "sinh": hyperbolic_sine, "cosh": hyperbolic_cosine,
    "tanh": hyperbolic_tangent,
}  # fmt: skip


def _formula(head: Head, formula: Formula) -> Intrinsic:
    return replace(INTRINSICS[head], native=lowering(formula))


_SAME = (
    sp.Add, sp.Mul, sp.Pow, heads.Alias, cfunctions.Sqrt, cfunctions.fma, sp.exp, sp.log, heads.exp2, heads.expm1,
    heads.log1p, sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinh, sp.cosh, heads.one_minus_square,
)  # fmt: skip
COMPLEX: dict[Head, Intrinsic] = {
    **{head: INTRINSICS[head] for head in _SAME},
    heads.log_argument: replace(INTRINSICS[heads.log_argument], native=INTRINSICS[heads.Alias].native),
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
    """Return the program with one more axis of its arrays, for the two parts of a number; rows stay the same.

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


Complex: TypeAlias = tuple[Number, Number | None]  # parts; None where it is known to be real


class _Splitter:
    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.machine = machine = Machine()
        self.numbers: dict[int, Complex] = {}
        self.by_code: dict[str, Callable[[Row], Complex]] = {
            "input": lambda row: (self.at(machine.input(2 * row[1])), self.at(machine.input(2 * row[1] + 1))),
            "const": lambda row: (self.at(machine.row(*row)), None),
            "neg": lambda row: self._by_parts(operator.neg, row[1]),
            "add": partial(self._sum, operator.add),
            "sub": partial(self._sum, operator.sub),
            "mul": self._product,
            "div": self._quotient,
            "sqrt": lambda row: square_root(*self.whole(row[1])),
            "call": self._call,
        }

    def at(self, reference: Reference) -> Number:
        return Number(self.machine, reference)

    def translate(self, index: int) -> None:
        row = self.rows[index]
        if row[0] not in self.by_code:
            raise LoweringError(f"a {row[0]!r} among complex numbers", why="a truth value is no complex number")
        self.numbers[index] = self.by_code[row[0]](row)

    def whole(self, index: int) -> Parts:
        real, imaginary = self.numbers[index]
        return real, real.constant(0.0) if imaginary is None else imaginary

    def _by_parts(self, function: Callable[[Number], Number], index: int) -> Complex:
        real, imaginary = self.numbers[index]
        return function(real), None if imaginary is None else function(imaginary)

    def _sum(self, pairwise: Callable[[Number, Number], Number], row: Row) -> Complex:
        """A real operand counts as c + 0i, as in NumPy: 1 - (5 + 0i) is above the cut of the square root."""
        (left, x), (right, y) = self.numbers[row[1]], self.numbers[row[2]]
        if x is None and y is None:
            return pairwise(left, right), None
        return pairwise(left, right), pairwise(self.whole(row[1])[1], self.whole(row[2])[1])

    def _product(self, row: Row) -> Complex:
        (left, x), (right, y) = self.numbers[row[1]], self.numbers[row[2]]
        if x is None:
            return self._by_parts(lambda part: left * part, row[2])
        if y is None:
            return self._by_parts(lambda part: right * part, row[1])
        return multiply((left, x), (right, y))

    def _quotient(self, row: Row) -> Complex:
        divisor, imaginary = self.numbers[row[2]]
        if imaginary is None:
            return self._by_parts(lambda part: part / divisor, row[1])
        return divide(self.whole(row[1]), (divisor, imaginary))

    def _call(self, row: Row) -> Complex:
        symbol, *operands = row[1:]
        if symbol == "pow":
            return self._power(*operands)
        if symbol == "exp2":
            return self._exponential_to(math.log(2.0), operands[0])
        return FUNCTIONS[symbol](*self.whole(operands[0]))

    def _power(self, base: int, exponent: int) -> Complex:
        """Write a power; with a positive constant base, or a real exponent, the parts stay separate."""
        constant = self.numbers[base][0].known if self.numbers[base][1] is None else None
        if constant is not None and constant > 0:
            return self._exponential_to(math.log(constant), exponent)
        real, imaginary = self.numbers[exponent]
        if imaginary is None:
            x, y = logarithm(*self.whole(base))
            return exponential(real * x, real * y)
        return power(self.whole(base), (real, imaginary))

    def _exponential_to(self, scale: float, exponent: int) -> Complex:
        x, y = self.whole(exponent)
        return exponential(scale * x, scale * y)
