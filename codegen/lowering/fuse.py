"""Fusion on the table: products of single use go into fused multiply-adds, signs into constants.

The choice is made here and not by the compiler, so that results are bitwise the same for every tier and chunk size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace

from codegen.ir.machine_rows import Row, in_range, is_power_of_two
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
    return _rewritten(lowered, FUSIONS)


def sink_signs(lowered: Lowered) -> Lowered:
    """Return the program with -(c*x*y) written as (-c)*x*y where no factor on the way has another use: exact.

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
    return _rewritten(lowered, {"mul": _merge})


def _rewritten(lowered: Lowered, rules: Mapping[str, Callable[[list[Row], list[int], int], None]]) -> Lowered:
    """Apply the rule of each live row's code, `rule(rows, uses, index)`, in order; rules change the table in place."""
    rows = list(lowered.rows)
    uses = lowered.uses()
    for index, row in enumerate(lowered.rows):
        rule = rules.get(row[0])
        if rule is not None and uses[index]:
            rule(rows, uses, index)
    return replace(lowered, rows=rows)


def _scale_of(rows: list[Row], uses: list[int], part: int) -> float | None:
    """Constant factor of a product of single use, None for anything else."""
    row = rows[part]
    if row[0] != "mul" or uses[part] != 1 or rows[row[1]][0] != "const":
        return None
    value: float = struct.unpack(">d", rows[row[1]][1])[0]
    return value


def _merge(rows: list[Row], uses: list[int], index: int) -> None:
    left, right = (_scale_of(rows, uses, part) for part in rows[index][1:])
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


FUSIONS = {"add": _fuse_add, "sub": _fuse_sub}


def _sink(rows: list[Row], uses: list[int], index: int) -> None:
    product = current = rows[index][1]
    while uses[current] == 1 and rows[current][0] in ("mul", "div"):
        for side in (1, 2):
            part = rows[current][side]
            if rows[part][0] == "const":
                value = struct.unpack(">d", rows[part][1])[0]
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
