"""The hash-consed table of machine operations that a program is lowered to.

Row `i` of the table is a tuple `(code, operand, operand...)`; equal rows are one row, which is the elimination of
common sub-expressions (value numbering). A reference to a row carries a sign: `row` is its value, `~row` its negative.
Signs travel outward through products, quotients and odd functions, where that never changes a bit, and disappear into
subtractions; `materialise` makes a `neg` row only where a negative value is really needed.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from codegen.ir.float_functions import divide
from codegen.limits import EVERY, check

Reference: TypeAlias = int
Row: TypeAlias = tuple[Any, ...]

code_of: Callable[[Row], str] = itemgetter(0)  # the operation of a row
LEAVES = frozenset({"const", "input", "true", "false", "constants", "uniform", "beside"})
OPPOSITES = {"olt": "uge", "ole": "ugt", "ogt": "ule", "oge": "ult", "oeq": "une", "one": "ueq", "ord": "uno"}
OPPOSITES |= {opposite: condition for condition, opposite in OPPOSITES.items()}
TRUTHS = frozenset({"compare", "logic", "not", "true", "false"})
GROUPS = ("wide", "gather", "spread")  # values that fill the lanes of a vector register, see codegen.lowering.group
FIRST_OPERAND = dict.fromkeys(
    ("const", "input", "compare", "logic", "call", "power", "constants", "uniform", "beside", "lane", *GROUPS), 2
)  # others 1


def operands_of(row: Row) -> tuple[int, ...]:
    """Return the rows that a row reads.

    >>> operands_of(("call", "tanh", 3)), operands_of(("add", 1, 2)), operands_of(("power", -1.0, 4))
    ((3,), (1, 2), (4,))
    """
    return row[FIRST_OPERAND.get(row[0], 1) :]


def with_operands(row: Row, operand_for: Callable[[int], int]) -> Row:
    """Return a row with other operands.

    >>> with_operands(("call", "tanh", 3), lambda operand: operand + 10)
    ('call', 'tanh', 13)
    """
    first = FIRST_OPERAND.get(row[0], 1)
    return (*row[:first], *[operand_for(operand) for operand in row[first:]])


def lanes_of_row(row: Row) -> int:
    """Return the number of values that a row computes side by side.

    >>> lanes_of_row(("wide", (4, "add"), 0, 1)), lanes_of_row(("add", 0, 1))
    (4, 1)
    """
    return int(row[1][0]) if row[0] in GROUPS else 1


def is_truth_row(row: Row) -> bool:
    """Whether a row's values are truth values.

    >>> is_truth_row(("wide", (4, "not"), 0)), is_truth_row(("add", 0, 1))
    (True, False)
    """
    return (row[1][1] if row[0] == "wide" else row[0]) in TRUTHS


def constant_of(rows: Sequence[Row], index: int) -> float | None:
    """Return the value of a constant row, None for another.

    >>> constant_of([("const", struct.pack(">d", 2.5)), ("input", 0)], 0)
    2.5
    """
    row = rows[index]
    if row[0] != "const":
        return None
    value: float = struct.unpack(">d", row[1])[0]
    return value


def use_counts(rows: Sequence[Row], outputs: Sequence[int]) -> list[int]:
    """Return how often each row is read or stored, counting only rows that the outputs need: 0 means dead.

    Rows may be appended constants that stand behind their users; all other operands stand before.

    >>> use_counts([("input", 0), ("neg", 0), ("abs", 0)], [2])
    [1, 0, 1]
    """
    uses = [0] * len(rows)
    for stored in outputs:
        uses[stored] += 1
    first = FIRST_OPERAND
    for index in range(len(rows) - 1, -1, -1):
        if uses[index]:
            row = rows[index]
            for operand in row[first.get(row[0], 1) :]:
                uses[operand] += 1
    return uses


class MachineRows:
    """A growing table in which equal rows are one row.

    >>> table = MachineRows()
    >>> table.row("input", 0), table.row("neg", 0), table.row("input", 0)
    (0, 1, 0)
    """

    __slots__ = ("_memo", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._memo: dict[Row, int] = {}

    def row(self, *row: Any) -> int:
        """Return the index of a row, as written."""
        known = self._memo.get(row)
        return self._new(row) if known is None else known

    def _new(self, row: Row) -> int:
        """Add a row; return its index."""
        rows = self.rows
        index = len(rows)
        if not index % EVERY:
            check("writing machine operations")
        self._memo[row] = index
        rows.append(row)
        return index


class Machine(MachineRows):
    """The growing table with its constructors; each takes and returns signed references.

    >>> machine = Machine()
    >>> x, y = machine.input(0), machine.input(1)
    >>> machine.add(x, ~y) == machine.sub(x, y), machine.mul(~x, y) == ~machine.mul(y, x)
    (True, True)
    """

    __slots__ = ("_numbers", "_positive", "_scales", "powers", "squares")

    def __init__(self, *, squares: bool = False) -> None:
        super().__init__()
        self.squares = squares  # whether these are products at once: they need no plan of all powers
        self.powers = False  # whether any powers need a plan
        self._numbers: dict[int, float] = {}  # of the constants
        self._positive: dict[float, int] = {}  # the constants above 0
        self._scales: set[int] = set()  # the constants that are powers of two

    def row(self, *row: Any) -> int:
        """Return the index of a row, as written; note the number of a constant."""
        index = self._memo.get(row)
        if index is None:
            index = self._new(row)
            if row[0] == "const":
                value = struct.unpack(">d", row[1])[0]
                self._numbers[index] = value
                if value > 0:
                    self._positive[value] = index
                    if is_power_of_two(value):
                        self._scales.add(index)
        return index

    def input(self, position: int) -> Reference:
        """Return the scalar input at a flat position."""
        return self.row("input", position)

    def const(self, value: float) -> Reference:
        """Return a constant; its sign is carried by the reference, so that c and -c are one row."""
        if value > 0:
            known = self._positive.get(value)
            return self._const(value) if known is None else known
        if math.copysign(1.0, value) < 0 and value == value:
            return ~(self.const(-value) if value else self._const(0.0))
        return self._const(value if value == value else math.nan)

    def _const(self, value: float) -> int:
        """Return the row of a constant, with its sign."""
        return self.row("const", struct.pack(">d", value))

    def constant(self, reference: Reference) -> float | None:
        """Return the value of a constant, None for anything else."""
        value = self._numbers.get(~reference if reference < 0 else reference)
        return -value if value is not None and reference < 0 else value

    def is_truth(self, reference: Reference) -> bool:
        return self.rows[reference][0] in TRUTHS if reference >= 0 else False

    def materialise(self, reference: Reference) -> int:
        """Return a row with the value of a signed reference; a sign goes into a constant factor where there is one."""
        if reference >= 0:
            return reference
        index = ~reference
        row = self.rows[index]
        if row[0] == "const":
            return self._const(-self._numbers[index])
        if row[0] in ("mul", "div") and self.rows[row[1]][0] == "const":
            return self.row(row[0], self.materialise(~row[1]), row[2])
        return self.row("neg", index)

    def negate(self, a: Reference) -> Reference:
        """-a."""
        return ~a

    def add(self, a: Reference, b: Reference) -> Reference:
        """a + b; a negative operand makes a subtraction, two negative ones (-a) - b: exact, also for signed zeros."""
        if b < 0:
            return self.sub(a, ~b)
        if a < 0:
            return self.sub(b, ~a)
        if a > b:
            a, b = b, a
        row = ("add", a, b)
        known = self._memo.get(row)
        return known if known is not None else self._fold(operator.add, row)

    def sub(self, a: Reference, b: Reference) -> Reference:
        """a - b; subtracting +0 is exact and vanishes."""
        if b < 0:
            if a >= 0:
                return self.add(a, ~b)
            return self.sub(~b, ~a)
        if b in self._numbers and self._numbers[b] == 0:
            return a
        if a < 0:
            a = self.materialise(a)
        row = ("sub", a, b)
        known = self._memo.get(row)
        return known if known is not None else self._fold(operator.sub, row)

    def mul(self, a: Reference, b: Reference) -> Reference:
        """a * b, signs outside, a constant first; factors of one vanish and powers of two merge into constants."""
        negative = False
        if a < 0:
            a, negative = ~a, True
        if b < 0:
            b, negative = ~b, not negative
        numbers = self._numbers
        if b in numbers or (a > b and a not in numbers):
            a, b = b, a
        row = ("mul", a, b)
        product = self._memo.get(row)
        if product is None:
            product = self._scale(row) if a in numbers else self._new(row)
        return ~product if negative else product

    def div(self, a: Reference, b: Reference) -> Reference:
        """a / b, signs outside; a power of two becomes its exact reciprocal."""
        negative = (a < 0) != (b < 0)
        a, b = (~a if a < 0 else a), (~b if b < 0 else b)
        divisor = self.constant(b)
        if divisor == 1:
            quotient = a
        elif divisor is not None and is_power_of_two(divisor) and is_power_of_two(1 / divisor):
            quotient = self.mul(self.const(1 / divisor), a)
        else:
            row = ("div", a, b)
            known = self._memo.get(row)
            quotient = known if known is not None else self._fold(divide, row)
        return ~quotient if negative else quotient

    def power(self, base: Reference, exponent: float) -> Reference:
        """base ** exponent for an exponent n or n + 1/2, to be expanded by the plan of all powers."""
        if exponent == 1:
            return base
        if exponent == 2 and self.squares:
            return self.mul(base, base)
        if base < 0 and exponent == math.floor(exponent):
            positive = self.power(~base, exponent)
            return ~positive if exponent % 2 else positive
        if not exponent:
            return self.const(1.0)
        self.powers = True
        return self.row("power", exponent, self.materialise(base))

    def reciprocal(self, a: Reference) -> Reference:
        """1 / a, shared by all its uses."""
        return self.power(a, -1.0)

    def abs(self, a: Reference) -> Reference:
        """|a|."""
        a = ~a if a < 0 else a
        value = self.constant(a)
        return a if self.rows[a][0] == "abs" or value is not None else self.row("abs", a)

    def sqrt(self, a: Reference) -> Reference:
        """Square root; nan for a negative operand."""
        return self.row("sqrt", self.materialise(a))

    def maximum(self, a: Reference, b: Reference) -> Reference:
        """Larger of two values; nan if either is nan."""
        return self.call("llvm.maximum.f64", (a, b))

    def minimum(self, a: Reference, b: Reference) -> Reference:
        """Smaller of two values; nan if either is nan."""
        return self.call("llvm.minimum.f64", (a, b))

    def call(self, symbol: str, arguments: Sequence[Reference]) -> Reference:
        """Call of a function of doubles."""
        return self.row("call", symbol, *[self.materialise(argument) for argument in arguments])

    def compare(self, condition: str, a: Reference, b: Reference) -> Reference:
        """Comparison with an LLVM condition (olt, oeq, une...)."""
        return self.row("compare", condition, self.materialise(a), self.materialise(b))

    def logic(self, operation: str, a: Reference, b: Reference) -> Reference:
        """and, or, xor of two truth values."""
        return self.row("logic", operation, a, b) if a != b or operation == "xor" else a

    def invert(self, a: Reference) -> Reference:
        """Not."""
        code = self.rows[a][0]
        if code == "not":
            return int(self.rows[a][1])
        if code == "compare":
            return self.row(code, OPPOSITES[self.rows[a][1]], *operands_of(self.rows[a]))
        opposite = {"true": "false", "false": "true"}.get(code)
        return self.row(opposite) if opposite else self.row("not", a)

    def bool(self, value: bool) -> Reference:
        """A constant truth value."""
        return self.row("true" if value else "false")

    def truth(self, a: Reference) -> Reference:
        """A number as truth value: whether it is not zero."""
        return a if self.is_truth(a) else self.compare("une", a, self.const(0.0))

    def number(self, a: Reference) -> Reference:
        """A truth value as number, 0 or 1."""
        return self.row("number", a) if self.is_truth(a) else a

    def select(self, test: Reference, a: Reference, b: Reference) -> Reference:
        """a where the test holds, else b."""
        code = self.rows[test][0]
        if code in ("true", "false") or a == b:
            return a if code != "false" else b
        if self.is_truth(a) or self.is_truth(b):
            a, b = self.truth(a), self.truth(b)
            return self.logic("or", self.logic("and", test, a), self.logic("and", self.invert(test), b))
        if a < 0 and b < 0:
            return ~self.row("select", test, ~a, ~b)
        return self.row("select", test, self.materialise(a), self.materialise(b))

    def _fold(self, function: Callable[[float, float], float], row: Row) -> Reference:
        """Return a new operation, or a constant if both operands are."""
        numbers = self._numbers
        if row[1] in numbers and row[2] in numbers:
            return self.const(function(numbers[row[1]], numbers[row[2]]))
        return self._new(row)

    def _scale(self, row: Row) -> Reference:
        """constant * b, a new product: drop 1, fold constants, merge two constants if one is a power of 2."""
        _, a, b = row
        numbers = self._numbers
        factor = numbers[a]
        if factor == 1:
            return int(b)
        if b in numbers:
            return self.const(factor * numbers[b])
        inner = self.rows[b]
        if inner[0] == "mul" and (other := inner[1]) in numbers and (a in self._scales or other in self._scales):
            merged = factor * numbers[other]
            if in_range(merged):
                return self.mul(self.const(merged), inner[2])
        return self._new(row)


def in_range(constant: float) -> bool:
    """Whether a constant may be merged from others: it is far from overflow and underflow, also as float32.

    >>> in_range(-2.5), in_range(1e-40)
    (True, False)
    """
    return 1e-30 < abs(constant) < 1e30


def is_power_of_two(value: float) -> bool:
    """Whether multiplying by a positive value is exact (its reciprocal too).

    >>> is_power_of_two(0.25), is_power_of_two(3.0)
    (True, False)
    """
    return math.frexp(value)[0] == 0.5 and math.isfinite(value) and 2.0**-1000 < value < 2.0**1000
