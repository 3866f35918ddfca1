"""Shared code of the algebraic passes: monomials of rows, and rebuilding a table row by row."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import TypeAlias

from codegen.ir.machine_rows import Machine, Reference, Row, constant_of, in_range, operands_of
from codegen.lowering.lower import Lowered, rebuilders

Factors: TypeAlias = tuple[tuple[int, int], ...]  # (row, exponent), ascending by row, no exponent zero
Monomial: TypeAlias = tuple[float, Factors]  # coefficient and factors


def inner_rows(lowered: Lowered, is_sum: Callable[[int], bool]) -> bytearray:
    """Return flags of the rows that are parts of one sum only; `is_sum` says which rows are sums."""
    uses, inner = lowered.uses(), bytearray(len(lowered.rows))
    for index, row in enumerate(lowered.rows):
        if uses[index] and is_sum(index):
            for part in operands_of(row):
                inner[part] = uses[part] == 1 and is_sum(part)
    return inner


def collected(rows: Sequence[Row], index: int) -> float | None:
    """Return the value of a constant that goes into coefficients, None for another row."""
    value = constant_of(rows, index)
    return value if value is not None and in_range(value) else None


def monomials(lowered: Lowered, *, apart: bool = False) -> list[Monomial]:
    """Return each row as coefficient times powers of rows, across products, quotients and signs.

    With `apart`, the constants in a coefficient are factors too; c and -c are one factor.

    >>> rows = [("input", 0), ("input", 1), ("mul", 0, 1), ("mul", 0, 2), ("div", 3, 1)]
    >>> monomials(Lowered(rows, [(0, 0, 4)], 5, 0, 0))[3:]
    [(1.0, ((0, 2), (1, 1))), (1.0, ((0, 2),))]
    """
    rows = lowered.rows
    monomial_of: list[Monomial] = [(1.0, ((index, 1),)) for index in range(len(rows))]
    first: dict[float, int] = {}
    for index in range(len(rows)):
        value = collected(rows, index)
        if value is not None:
            named = apart and abs(value) != 1
            monomial_of[index] = (value, ((first.setdefault(abs(value), index), 1),) if named else ())
    for index, row in enumerate(rows):
        if row[0] in ("mul", "div"):
            sign = 1 if row[0] == "mul" else -1
            left, right = monomial_of[row[1]], monomial_of[row[2]]
            if _grows(left[1], right[1], sign):  # quotients stay factors
                left, right = (
                    (1.0, ((part, 1),)) if any(exponent < 0 for _, exponent in known[1]) else known
                    for part, known in ((row[1], left), (row[2], right))
                )
            monomial_of[index] = _times(left, right, sign) or monomial_of[index]
        elif row[0] == "neg":
            coefficient, factors = monomial_of[row[1]]
            monomial_of[index] = (-coefficient, factors)
    return monomial_of


def _times(left: Monomial, right: Monomial, sign: int) -> Monomial | None:
    """Return left * right**sign; None where its coefficient is out of range, or it would take quadratic time."""
    coefficient = left[0] * right[0] if sign > 0 else left[0] / right[0]
    if not in_range(coefficient):
        return None
    if not right[1]:
        return coefficient, left[1]
    product = multiply(left[1], right[1], sign)
    is_long = len(product) > 12 or any(abs(exponent) > 64 for _, exponent in product)
    return None if is_long else (coefficient, product)


def _grows(left: Factors, right: Factors, sign: int) -> bool:
    """Whether x * (x/y) would become x**2/y, which overflows where the quotient was written to prevent it."""
    if all(exponent > 0 for _, exponent in left) and all(sign * exponent > 0 for _, exponent in right):
        return False
    above = {factor for factor, exponent in left if exponent > 0}
    return any(factor in above for factor, exponent in right if sign * exponent > 0)


def multiply(left: Factors, right: Factors, sign: int = 1) -> Factors:
    """Return the factors of a product, or of a quotient with sign -1.

    >>> multiply(((1, 1), (3, 2)), ((0, 1), (3, 2)), -1)
    ((0, -1), (1, 1))
    """
    exponents = dict(left)
    for factor, exponent in right:
        exponents[factor] = exponents.get(factor, 0) + sign * exponent
    return tuple(sorted([(factor, exponent) for factor, exponent in exponents.items() if exponent]))


class Rebuilder:
    """Copies the live rows of a table into a new one; passes override `make` to change some of them."""

    lowered: Lowered
    rows: list[Row]
    uses: list[int]
    machine: Machine

    def __init__(self, lowered: Lowered) -> None:
        self.lowered, self.rows, self.uses = lowered, lowered.rows, lowered.uses()
        self.machine = Machine()
        self.values: dict[int, Reference] = {}
        self.skipped: Container[int] = ()  # rows that are built only as operands
        self.by_code = rebuilders(self.machine, self.value)

    def value(self, index: int) -> Reference:
        """Return the new reference to an old row."""
        value = self.values.get(index)
        if value is None:
            value = self.values[index] = self.make(index)
        return value

    def make(self, index: int) -> Reference:
        """Build an old row in the new table; its operands have been built."""
        row = self.rows[index]
        value = constant_of(self.rows, index)
        if value is not None:
            return self.machine.const(value)
        build = self.by_code.get(row[0])
        return self.machine.row(*row) if build is None else build(row)

    def finish(self) -> Lowered:
        """Build all live rows, ascending, and return the new program."""
        for index, uses in enumerate(self.uses):
            if uses and index not in self.skipped:
                self.value(index)
        stores = [
            (array, place, self.machine.materialise(self.value(row))) for array, place, row in self.lowered.stores
        ]
        return replace(self.lowered, rows=self.machine.rows, stores=stores)

    def power(self, base: Reference, exponent: int) -> Reference:
        """Return base ** exponent for exponent >= 1, by squaring."""
        result: Reference | None = None
        while exponent:
            if exponent & 1:
                result = base if result is None else self.machine.mul(result, base)
            exponent >>= 1
            base = self.machine.mul(base, base) if exponent else base
        assert result is not None
        return result
