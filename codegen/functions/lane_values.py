"""Values that formulas of lane functions are written in, and the constants and coefficients that they rest on.

A formula is written once, as mathematics on `Value`; a `Writer` makes text of each operation: LLVM IR on the lanes of a
vector (`codegen.emission.lane_functions`). Nothing is contracted: a fused multiply-add stands where `fma` is written,
and nowhere else.

A constant in two parts is rounded in the first, and the second has what is left. Polynomials are minimax, by Remez'
algorithm in 60 digits, their coefficients rounded to float64; the errors that are stated include this rounding.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Operand: TypeAlias = "Value | float"
SHIFT = 1.5 * 2.0**52  # added to a number below 2**51, it leaves the nearest whole number in the lowest bits


class Writer(ABC):
    """Writes operations one after the other; each has a name in the tables of the writers."""

    @abstractmethod
    def number(self, value: float) -> str:
        """Return the text of a constant."""

    @abstractmethod
    def word(self, value: int) -> str:
        """Return the text of a constant of 64 bits."""

    @abstractmethod
    def put(self, operation: str, operands: Sequence[str]) -> str:
        """Write an operation and return the name of its value."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value that has been written."""

    writer: Writer
    text: str

    def put(self, operation: str, *operands: Operand) -> Value:
        """Write an operation whose first operand this is; floats are constants."""
        texts = [one.text if isinstance(one, Value) else self.writer.number(one) for one in operands]
        return Value(self.writer, self.writer.put(operation, [self.text, *texts]))

    def put_word(self, operation: str, word: int) -> Value:
        """Write an operation on bits, with a constant."""
        return Value(self.writer, self.writer.put(operation, [self.text, self.writer.word(word)]))

    def __add__(self, other: Operand) -> Value:
        return self.put("add", other)

    def __sub__(self, other: Operand) -> Value:
        return self.put("sub", other)

    def __mul__(self, other: Operand) -> Value:
        return self.put("mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self.put("div", other)

    def __neg__(self) -> Value:
        return self.put("neg")

    def __abs__(self) -> Value:
        return self.put("abs")

    def __lt__(self, other: Operand) -> Value:
        return self.put("olt", other)

    def __gt__(self, other: Operand) -> Value:
        return self.put("ogt", other)

    def __ge__(self, other: Operand) -> Value:
        return self.put("oge", other)

    def equals(self, other: Operand) -> Value:
        return self.put("oeq", other)

    def signed_as(self, other: Value) -> Value:
        """The absolute value with the sign of another number."""
        return self.put("copysign", other)

    def where(self, test: Value, other: Operand) -> Value:
        """The value where a test holds, another one elsewhere."""
        return test.put("select", self, other)

    def clamp(self, low: float, high: float) -> Value:
        """The nearest number of an interval; nan stays."""
        return self.constant(low).where(self < low, self).at_most(high)

    def at_most(self, high: float) -> Value:
        """The smaller one; nan stays."""
        return self.constant(high).where(self > high, self)

    def constant(self, value: float) -> Value:
        return Value(self.writer, self.writer.number(value))

    def bits(self) -> Value:
        """The 64 bits of a number."""
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
    """The whole number nearest to `factor * x`, below 2**51 in size; halves go to the even one."""
    return fma(x, factor, SHIFT) - SHIFT


def power_of_two(n: Value) -> Value:
    """2**n for a whole number between -1022 and 1023."""
    return (n + (SHIFT + 1023.0)).bits().put_word("shl", 52).of_bits()


def bits_of(value: float) -> int:
    """Return the 64 bits of a number.

    >>> hex(bits_of(1.0))
    '0x3ff0000000000000'
    """
    (found,) = struct.unpack("<q", struct.pack("<d", value))
    return int(found)


LN2 = 0.6931471805599453, 2.3190468138462996e-17  # rounded, and the rest
LOG2_E = 1.4426950408889634, 2.0355273740931033e-17
LOG10_E = 0.4342944819032518, 1.098319650216765e-17
LOG10_2 = 0.30102999566383914, 1.42050232272661e-13  # 42 bits and the rest, as in the next line
LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14  # 42 bits, so that n*LN2_HIGH is exact; and the rest
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # the sum has 161 bits
TWO_THIRDS = 0.6666666666666666, 3.700743415417188e-17

# (exp(r) - 1 - r)/r**2 for |r| <= log(2)/2, relative error of exp(r) - 1 below 6e-19
EXPONENTIAL = (
    0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321613, 0.0013888888888866722, 0.0001984126988616754,
    2.4801587360743605e-05, 2.7557244171805765e-06, 2.7557242622201404e-07, 2.5109048753558248e-08,
    2.092448096812919e-09,
)  # fmt: skip
# (2 atanh(s)/s - 2)/z with z = s**2, for s <= 3 - 2 sqrt(2), relative error of 2 atanh(s) below 2e-18
LOGARITHM = (
    0.6666666666666735, 0.3999999999941111, 0.285714287432593, 0.22222198476224617, 0.18183569732552068,
    0.1531390330949919, 0.14797508217516278,
)  # fmt: skip
# (2 atanh(s)/s - 2 - 2/3 z)/z**2, relative error of 2 atanh(s) below 2e-20
LONG_LOGARITHM = (
    0.3999999999999998, 0.2857142857144522, 0.22222222217510426, 0.18181818873513186, 0.15384556652570827,
    0.1333632583064389, 0.11674647587274124, 0.11990438104509173,
)  # fmt: skip
# (sin(r)/r - 1)/z and (cos(r) - 1 + z/2)/z**2 with z = r**2, for |r| <= pi/4, relative errors below 7e-18 and 2e-18
SINE = (
    -0.16666666666666632, 0.00833333333332237, -0.00019841269829771148, 2.755731367863497e-06, -2.505075595431875e-08,
    1.5896666008223773e-10,
)  # fmt: skip
COSINE = (
    0.0416666666666666, -0.0013888888888874064, 2.480158728944356e-05, -2.7557314340675877e-07, 2.087572162503593e-09,
    -1.1359559353420913e-11,
)  # fmt: skip

# (atan(t)/t - 1)/z with z = t**2, for |t| <= tan(pi/8), relative error below 3e-18
ARCTANGENT = (
    -0.333333333333332, 0.1999999999995366, -0.14285714280203834, 0.11111110783807954, -0.09090897766945569,
    0.0769206036005106, -0.06663105441042826, 0.058478973123184744, -0.05039330557508313, 0.03806494970389946,
    -0.017907339485039225,
)  # fmt: skip
# (sinh(x)/x - 1)/z with z = x**2, for |x| <= 0.35, relative error below 2e-18
HYPERBOLIC_SINE = (
    0.16666666666666677, 0.008333333333320666, 0.00019841269888862435, 2.7557241197409536e-06, 2.5110166452160284e-08,
)  # fmt: skip
