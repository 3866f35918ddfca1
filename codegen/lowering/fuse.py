"""Fuse products of single use into multiply-adds, and fold signs into constants.

The choice is made here and not by the compiler, so that results are bitwise the same for every tier and chunk size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from codegen.ir.machine_rows import (
    LEAVES,
    MachineRows,
    Row,
    constant_of,
    in_range,
    is_power_of_two,
    operands_of,
    with_operands,
)
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered


def fuse(lowered: Lowered) -> Lowered:
    """Return the program with a*b + c, a*b - c, c - a*b and -a*b - c fused where the product has no other use.

    A fused operation rounds once instead of twice: results change in the last place, mostly for the better.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> dict(fuse(lower(program_from_sympy([x, y], [x * y + 1]))).count())
    {'fma': 1}
    """
    return _rewritten(lowered, {"add": _fuse_add, "sub": _fuse_sub})


def sink_signs(lowered: Lowered) -> Lowered:
    """Return the program with -(c*x*y) written as (-c)*x*y where no inner factor has another use: exact.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> dict(sink_signs(lower(program_from_sympy([x, y], [-3 * x * y]))).count())
    {'mul': 2}
    """
    return _rewritten(lowered, {"neg": _sink})


def merge_scales(lowered: Lowered) -> Lowered:
    """Return the program with (c*x) * (2**k * y) written as (c*2**k * x) * y where neither factor has another use.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> expression = sp.Mul(sp.Mul(3, x), sp.Mul(2, y), evaluate=False)
    >>> dict(merge_scales(lower(program_from_sympy([x, y], [expression]))).count())
    {'mul': 2}
    """
    rows = lowered.rows
    products = [index for index, row in enumerate(rows) if row[0] == "mul"]
    scaled = {index for index in products if rows[rows[index][1]][0] == "const"}
    places = [index for index in products if rows[index][1] in scaled and rows[index][2] in scaled]
    return _rewritten(lowered, {"mul": _merge}, places)


def _rewritten(
    lowered: Lowered, rules: Mapping[str, Callable[[list[Row], list[int], int], None]],
    places: Sequence[int] | None = None,
) -> Lowered:  # fmt: skip
    """Apply `rule(rows, uses, index)` of the code of each live row, or of those at `places`; rules change rows."""
    check("rewriting machine operations")
    if places is None:
        known = not lowered.codes.isdisjoint(rules)
        places = [index for index, row in enumerate(lowered.rows) if row[0] in rules] if known else ()
    if not places:
        return lowered
    rows, uses = list(lowered.rows), lowered.uses()
    for done, index in enumerate(places, 1):
        if not done % EVERY:
            check("rewriting machine operations")
        if uses[index]:
            rules[lowered.rows[index][0]](rows, uses, index)
    return lowered if rows == lowered.rows else replace(lowered, rows=rows)


def _scale_of(rows: list[Row], uses: list[int], part: int) -> float | None:
    """Return the constant factor of a product of single use, None for anything else."""
    row = rows[part]
    return constant_of(rows, row[1]) if row[0] == "mul" and uses[part] == 1 else None


def _merge(rows: list[Row], uses: list[int], index: int) -> None:
    _, first, second = rows[index]
    left = _scale_of(rows, uses, first)
    right = None if left is None else _scale_of(rows, uses, second)
    if left is None or right is None:
        return
    for power, kept, factor in ((1, 2, left), (2, 1, right)):
        if is_power_of_two(abs(factor)) and in_range(left * right):
            scaled, other = rows[index][kept], rows[index][power]
            rows.append(("const", struct.pack(">d", left * right)))
            rows[scaled] = ("mul", len(rows) - 1, rows[scaled][2])
            rows[index] = ("mul", scaled, rows[other][2])
            return


def _single_product(rows: list[Row], uses: list[int], index: int) -> bool:
    return rows[index][0] == "mul" and uses[index] == 1


def _fuse_add(rows: list[Row], uses: list[int], index: int) -> None:
    _, left, right = rows[index]
    for product, other in ((right, left), (left, right)):
        if _single_product(rows, uses, product):
            rows[index] = ("fma", rows[product][1], rows[product][2], other)
            return


def _fuse_sub(rows: list[Row], uses: list[int], index: int) -> None:
    _, left, right = rows[index]
    negated = rows[left][1] if rows[left][0] == "neg" and uses[left] == 1 else None
    if _single_product(rows, uses, right):
        code, other = ("fnma", left) if negated is None else ("fnms", negated)
        rows[index] = (code, rows[right][1], rows[right][2], other)
    elif _single_product(rows, uses, left):
        rows[index] = ("fms", rows[left][1], rows[left][2], right)
    elif negated is not None and _single_product(rows, uses, negated):
        rows[index] = ("fnms", rows[negated][1], rows[negated][2], right)


def _sink(rows: list[Row], uses: list[int], index: int) -> None:
    product = current = rows[index][1]
    while uses[current] == 1 and rows[current][0] in ("mul", "div"):
        for side in (1, 2):
            part = rows[current][side]
            if (value := constant_of(rows, part)) is not None:
                rows.append(("const", struct.pack(">d", -value)))
                changed = list(rows[current])
                changed[side] = len(rows) - 1
                rows[current] = tuple(changed)
                rows[index] = rows[product]
                return
        deeper = [part for part in rows[current][1:] if uses[part] == 1 and rows[part][0] in ("mul", "div")]
        if not deeper:
            return
        current = deeper[0]


PRODUCTS, SUMS = ("mul", "div"), ("add", "sub")


def place_signs(lowered: Lowered) -> Lowered:
    """Return the program with -(a - b) computed as b - a, and with signs of products where they cost least.

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
    """Counts the signs that readers want of each row; then rebuilds rows with signed references."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered, self.rows, self.uses = lowered, lowered.rows, lowered.uses()
        self.wants = self._votes()
        self.table = MachineRows()
        self.done: dict[int, tuple[int, int]] = {}  # row: new row and sign

    def _votes(self) -> list[int]:
        """Return the sign that most readers of each row want; 0 where they take any."""
        rows = self.rows
        positive, negative = [0] * len(rows), [0] * len(rows)
        for _, _, row in self.lowered.stores:
            positive[row] += 1
        wants = [0] * len(rows)
        for index in range(len(rows) - 1, -1, -1):
            if not self.uses[index]:
                continue
            wants[index] = want = -1 if negative[index] > positive[index] else int(positive[index] > 0)
            for part, sign in self._wanted_signs(index, want, positive, negative):
                (positive if sign > 0 else negative)[part] += 1
        return wants

    def _wanted_signs(self, index: int, want: int, positive: list[int], negative: list[int]) -> list[tuple[int, int]]:
        """Return the signs that a row, which is wanted with a sign, wants of its operands."""
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
        negated = max(parts, key=lambda part: (negative[part] - positive[part], self.uses[part] == 1, part))
        return [(part, -1 if part == negated else 1) for part in parts]

    def plain(self, index: int) -> int:
        new, sign = self.done[index]
        return new if sign > 0 else self.negative(new)

    def negative(self, new: int) -> int:
        value = constant_of(self.table.rows, new)
        return self.table.row("neg", new) if value is None else self.table.row("const", struct.pack(">d", -value))

    def finish(self) -> Lowered:
        """Rebuild all live rows; constants first, because some stand behind their readers."""
        for index, row in enumerate(self.rows):
            if self.uses[index] and row[0] in LEAVES:
                self.done[index] = self.table.row(*row), 1
        for index, row in enumerate(self.rows):
            if self.uses[index] and row[0] not in LEAVES:
                self.done[index] = self.built(index, row)
        stores = [(array, position, self.plain(row)) for array, position, row in self.lowered.stores]
        return replace(self.lowered, rows=self.table.rows, stores=stores)

    def built(self, index: int, row: Row) -> tuple[int, int]:
        """Build a row, with the wanted sign where that costs nothing."""
        if row[0] == "neg":
            new, sign = self.done[row[1]]
            return new, -sign
        if row[0] in SUMS:
            return self.sum(row, self.wants[index])
        if row[0] in PRODUCTS:
            return self.product(row, self.wants[index])
        return self.table.row(*with_operands(row, self.plain)), 1

    def product(self, row: Row, want: int) -> tuple[int, int]:
        parts = [self.done[part] for part in row[1:]]
        sign, news = parts[0][1] * parts[1][1], [new for new, _ in parts]
        for k, new in enumerate(news):
            if sign * want < 0 and constant_of(self.table.rows, new) is not None:
                news[k], sign = self.negative(new), want
        product = self.table.row(row[0], *news)
        return (product, sign) if want >= 0 or sign < 0 else (self.negative(product), -1)

    def sum(self, row: Row, want: int) -> tuple[int, int]:
        """+-a +- b, negated where that is wanted or saves a sign."""
        (left, first), (right, second) = self.done[row[1]], self.done[row[2]]
        second = second if row[0] == "add" else -second
        if first != second:
            sign = want or 1
            a, b = (left, right) if first == sign else (right, left)
            return self.table.row("sub", a, b), sign
        fusible = [part for part in row[1:] if _single_product(self.rows, self.uses, part)]
        if want == -first and fusible:  # the sign goes into a fused multiply-add
            new = self.done[fusible[0]][0]
            return self.table.row("sub", self.table.row("neg", new), right if new == left else left), want
        return self.table.row("add", *sorted((left, right))), first
