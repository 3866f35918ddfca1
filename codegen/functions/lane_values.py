"""Values that formulas of lane functions are written in.

A formula is written once, as mathematics on `Value`; a `Writer` makes text of each operation: LLVM IR on the lanes of a
vector (`codegen.emission.lane_functions`). Nothing is contracted: a fused multiply-add stands where `fma` is written,
and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from codegen.functions.formula_values import Number, where
from codegen.functions.lane_formats import Format
from codegen.records import dataclass

Operand: TypeAlias = "Value | float"


class Writer(ABC):
    """Writes operations on numbers of a format one after the other; each has a name in the tables of the writers."""

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
class Value(Number):
    """A value that has been written."""

    writer: Writer
    text: str

    @property
    def format(self) -> Format:
        """The format of the number."""
        return self.writer.format

    def put(self, operation: str, *operands: Operand) -> Value:
        """Write an operation whose first operand this is; floats are constants."""
        texts = [one.text if isinstance(one, Value) else self.writer.number(one) for one in operands]
        return Value(self.writer, self.writer.put(operation, [self.text, *texts]))

    def compare(self, condition: str, other: Operand) -> Value:
        return self.put(condition, other)

    def constant(self, value: float) -> Value:
        return Value(self.writer, self.writer.number(value))

    def put_word(self, operation: str, word: int) -> Value:
        """Write an operation on bits, with a constant."""
        return Value(self.writer, self.writer.put(operation, [self.text, self.writer.word(word)]))

    def signed_as(self, other: Value) -> Value:
        """The absolute value with the sign of another number."""
        return self.put("copysign", other)

    def times_sign_of(self, other: Value) -> Value:
        """The negative where another number has the sign of negative ones."""
        sign = other.bits().put_word("and", 1 << (self.format.bits - 1))
        return self.bits().put("xor", sign).of_bits()

    def entry(self, name: str, table: Sequence[int]) -> Value:
        """The entry of a table of words at this place."""
        return Value(self.writer, self.writer.entry(name, table, self.text))

    def sqrt(self) -> Value:
        """The square root; nan of a negative number."""
        return self.put("sqrt")

    def floor(self) -> Value:
        """The largest whole number that is not larger."""
        return self.put("floor")

    def clamp(self, low: float, high: float) -> Value:
        """The nearest number of an interval; nan stays."""
        return where(self < low, low, self).at_most(high)

    def at_most(self, high: float) -> Value:
        """The smaller one; nan stays."""
        return where(self > high, high, self)

    def bits(self) -> Value:
        """The bits of a number."""
        return self.put("bits")

    def of_bits(self) -> Value:
        """The number that has these bits."""
        return self.put("of_bits")


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """a*b + c, rounded once."""
    return a.put("fma", b, c)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error (Knuth).

    Source: D. E. Knuth, The Art of Computer Programming 2, section 4.2.2, theorem B.
    """
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


def quick_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error, for |a| >= |b| or a = 0 (Dekker)."""
    total = a + b
    return total, (a - total) + b


def estrin(coefficients: Sequence[float], x: Value) -> Value:
    """c0 + c1 x + c2 x^2 + ..., by pairs: few operations wait for each other."""
    terms: list[Operand] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = [fma(power, terms[k + 1], terms[k]) for k in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
        power = power * power if len(terms) > 1 else power
    (total,) = terms
    return total if isinstance(total, Value) else x.constant(total)


def nearest(x: Value, factor: float) -> Value:
    """The whole number nearest to `factor * x`, below a quarter of `shift` in size; halves go to the even one."""
    shift = x.format.shift
    return fma(x, factor, shift) - shift


def power_of_two(n: Value) -> Value:
    """2**n for a whole number n, where that is a normal number."""
    form = n.format
    return (n + (form.shift + form.bias)).bits().put_word("shl", form.fraction).of_bits()
