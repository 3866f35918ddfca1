"""Signs: values are computed negated where that is how they are wanted."""

from __future__ import annotations

import struct
from dataclasses import replace

from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, Row, Rows, operands_of
from codegen.lowering.algebra_rows import constant_of
from codegen.lowering.lower import Lowered

PRODUCTS, SUMS = ("mul", "div"), ("add", "sub")


def place_signs(lowered: Lowered) -> Lowered:
    """Return the program with -(a - b) computed as b - a, and with signs of products moved to where they cost least.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z = sp.symbols("x y z")
    >>> program = lower(program_from_sympy([x, y, z], [-x * (y - z), -y * (y - z)]))
    >>> sorted(program.count().items()), sorted(place_signs(program).count().items())
    ([('mul', 2), ('neg', 2), ('sub', 1)], [('mul', 2), ('sub', 1)])
    """
    return _Signs(lowered).finish()


class _Signs:
    """First every row hears from its readers which sign they want; then rows are rebuilt with signed references."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered, self.rows, self.uses = lowered, lowered.rows, lowered.uses()
        self.wants = self._votes()
        self.made = Rows()
        self.done: dict[int, tuple[int, int]] = {}  # row: new row and sign

    def _votes(self) -> list[int]:
        """The sign that most readers of each row want; 0 where they take any."""
        rows = self.rows
        positive, negative = [0] * len(rows), [0] * len(rows)
        for _, _, row in self.lowered.stores:
            positive[row] += 1
        wants = [0] * len(rows)
        for index in range(len(rows) - 1, -1, -1):
            if not self.uses[index]:
                continue
            wants[index] = want = -1 if negative[index] > positive[index] else int(positive[index] > 0)
            for part, sign in self._asked(index, want, positive, negative):
                (positive if sign > 0 else negative)[part] += 1
        return wants

    def _asked(self, index: int, want: int, positive: list[int], negative: list[int]) -> list[tuple[int, int]]:
        """What a row that is wanted with a sign asks its operands for."""
        row = self.rows[index]
        code, parts = row[0], operands_of(row)
        if code in SUMS or code in LEAVES or not want:
            return [] if code in SUMS or code in PRODUCTS or code == "neg" else [(part, 1) for part in parts]
        if code == "neg":
            return [(parts[0], -want)]
        if code not in PRODUCTS or want > 0:
            return [(part, 1) for part in parts]
        if parts[0] == parts[1] or any(constant_of(self.rows, part) is not None for part in parts):
            return []
        asked = max(parts, key=lambda part: (negative[part] - positive[part], self.uses[part] == 1, part))
        return [(part, -1 if part == asked else 1) for part in parts]

    def plain(self, index: int) -> int:
        """An old row with its own sign."""
        new, sign = self.done[index]
        return new if sign > 0 else self.negative(new)

    def negative(self, new: int) -> int:
        """The negative of a new row."""
        value = constant_of(self.made.rows, new)
        return self.made.row("neg", new) if value is None else self.made.row("const", struct.pack(">d", -value))

    def finish(self) -> Lowered:
        """Rebuild all live rows; constants first, for some stand behind their readers."""
        for index, row in enumerate(self.rows):
            if self.uses[index] and row[0] in LEAVES:
                self.done[index] = self.made.row(*row), 1
        for index, row in enumerate(self.rows):
            if self.uses[index] and row[0] not in LEAVES:
                self.done[index] = self.built(index, row)
        stores = [(array, position, self.plain(row)) for array, position, row in self.lowered.stores]
        return replace(self.lowered, rows=self.made.rows, stores=stores)

    def built(self, index: int, row: Row) -> tuple[int, int]:
        """Build a row, with the sign that is wanted where that costs nothing."""
        if row[0] == "neg":
            new, sign = self.done[row[1]]
            return new, -sign
        if row[0] in SUMS:
            return self.sum(row, self.wants[index])
        if row[0] in PRODUCTS:
            return self.product(row, self.wants[index])
        first = FIRST_OPERAND.get(row[0], 1)
        return self.made.row(*row[:first], *[self.plain(part) for part in row[first:]]), 1

    def product(self, row: Row, want: int) -> tuple[int, int]:
        parts = [self.done[part] for part in row[1:]]
        sign, news = parts[0][1] * parts[1][1], [new for new, _ in parts]
        for k, new in enumerate(news):
            if sign * want < 0 and constant_of(self.made.rows, new) is not None:
                news[k], sign = self.negative(new), want
        product = self.made.row(row[0], *news)
        return (product, sign) if want >= 0 or sign < 0 else (self.negative(product), -1)

    def sum(self, row: Row, want: int) -> tuple[int, int]:
        """+-a +- b, negated where that is wanted or saves a sign."""
        (left, first), (right, second) = self.done[row[1]], self.done[row[2]]
        second = second if row[0] == "add" else -second
        if first != second:
            sign = want or 1
            a, b = (left, right) if first == sign else (right, left)
            return self.made.row("sub", a, b), sign
        if want == -first and (part := self._product_of_one_use(row)) is not None:
            new = self.done[part][0]
            return self.made.row("sub", self.made.row("neg", new), right if new == left else left), want
        return self.made.row("add", *sorted((left, right))), first

    def _product_of_one_use(self, row: Row) -> int | None:
        """An operand whose sign goes into a fused multiply-add."""
        return next((part for part in row[1:] if self.rows[part][0] == "mul" and self.uses[part] == 1), None)
