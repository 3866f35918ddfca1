"""The values that lane formulas compute with: IR of vectors.

A formula is written once, as mathematics on `LaneValue`; a `LaneOperationWriter` makes text of each operation: LLVM IR
on the lanes of a vector (`codegen.emission.lane_functions`). Nothing is contracted: a fused multiply-add stands where
`fma` is written, and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from codegen.functions.formula_values import Number, where
from codegen.functions.lane_formats import Format
from codegen.records import dataclass

Operand: TypeAlias = "LaneValue | float"


class LaneOperationWriter(ABC):
    """Writes operations on numbers of a format in order, each by its name in the writers' tables."""

    format: Format

    @abstractmethod
    def number(self, value: float) -> str:
        """Return the text of a constant."""

    @abstractmethod
    def word(self, value: int) -> str:
        """Return the text of a constant of as many bits as a number has."""

    @abstractmethod
    def put(self, operation: str, operands: Sequence[str]) -> str:
        """Write an operation and return the name of its value."""

    @abstractmethod
    def entry(self, name: str, table: Sequence[int], place: str) -> str:
        """Write that a word is read from a table of words, which has a name."""


@dataclass(frozen=True, slots=True, eq=False)
class LaneValue(Number):
    """A value that has been written."""

    writer: LaneOperationWriter
    text: str

    @property
    def format(self) -> Format:
        """The format of the number."""
        return self.writer.format

    def put(self, operation: str, *operands: Operand) -> LaneValue:
        """Write an operation (`codegen.ir.operations`) whose first operand is this value. Floats are constants."""
        texts = [part.text if isinstance(part, LaneValue) else self.writer.number(part) for part in operands]
        return LaneValue(self.writer, self.writer.put(operation, [self.text, *texts]))

    def compare(self, condition: str, other: Operand) -> LaneValue:
        return self.put(condition, other)

    def __neg__(self) -> LaneValue:
        return self.put("neg")

    def constant(self, value: float) -> LaneValue:
        return LaneValue(self.writer, self.writer.number(value))

    def put_word(self, operation: str, word: int) -> LaneValue:
        """Write an operation on bits, with a constant."""
        return LaneValue(self.writer, self.writer.put(operation, [self.text, self.writer.word(word)]))

    def signed_as(self, other: LaneValue) -> LaneValue:
        """The absolute value with the sign of another number."""
        return self.put("copysign", other)

    def times_sign_of(self, other: LaneValue) -> LaneValue:
        """The negative where another number has the sign of negative ones."""
        sign = other.bits().put_word("and", 1 << (self.format.bits - 1))
        return self.bits().put("xor", sign).of_bits()

    def entry(self, name: str, table: Sequence[int]) -> LaneValue:
        """The entry of a table of words at this place."""
        return LaneValue(self.writer, self.writer.entry(name, table, self.text))

    def sqrt(self) -> LaneValue:
        """The square root; nan of a negative number."""
        return self.put("sqrt")

    def floor(self) -> LaneValue:
        """The largest whole number that is not larger."""
        return self.put("floor")

    def clamp(self, low: float, high: float) -> LaneValue:
        """The nearest number of an interval; nan stays."""
        return where(self < low, low, self).at_most(high)

    def at_most(self, high: float) -> LaneValue:
        """The smaller one; nan stays."""
        return where(self > high, high, self)

    def bits(self) -> LaneValue:
        """The bits of a number."""
        return self.put("bits")

    def of_bits(self) -> LaneValue:
        """The number that has these bits."""
        return self.put("of_bits")


def fma(a: LaneValue, b: Operand, c: Operand) -> LaneValue:
    """a*b + c, rounded once."""
    return a.put("fma", b, c)


def two_sum(a: LaneValue, b: LaneValue) -> tuple[LaneValue, LaneValue]:
    """a + b and its rounding error (Knuth).

    Source: D. E. Knuth, The Art of Computer Programming 2, section 4.2.2, theorem B.
    """
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


def quick_two_sum(a: LaneValue, b: LaneValue) -> tuple[LaneValue, LaneValue]:
    """a + b and its rounding error, for |a| >= |b| or a = 0 (Dekker)."""
    total = a + b
    return total, (a - total) + b


def estrin(coefficients: Sequence[float], x: LaneValue) -> LaneValue:
    """c0 + c1 x + c2 x^2 + ..., by pairs: few operations wait for each other."""
    terms: list[Operand] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = [fma(power, terms[k + 1], terms[k]) for k in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
        power = power * power if len(terms) > 1 else power
    (total,) = terms
    return total if isinstance(total, LaneValue) else x.constant(total)


def nearest(x: LaneValue, factor: float) -> LaneValue:
    """The whole number nearest to `factor * x`, below a quarter of `shift` in size; halves go to the even one."""
    shift = x.format.shift
    return fma(x, factor, shift) - shift


def power_of_two(n: LaneValue) -> LaneValue:
    """2**n for a whole number n, if it is a normal number."""
    form = n.format
    return (n + (form.shift + form.bias)).bits().put_word("shl", form.fraction).of_bits()
