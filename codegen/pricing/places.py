"""Price memory accesses: contiguous, strided or scattered; loads, stores and adds.

See docs/design/price.md; `codegen.pricing.price` has the rest of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from math import ceil
from typing import TypeAlias

from codegen.ir.tables import Affine, Runs, Table, runs
from codegen.pricing.price_table import LANES_AT_ONCE

LINE = 8  # numbers that come from memory together: what is as near costs less than what is anywhere
WIDEST = 8  # the step of places that one loop fills

Use: TypeAlias = tuple[str, Table]  # "gather", "store", "add" or "last", and the places


def places_work(count: int, uses: Sequence[Use], packed: Container[int] = ()) -> Counter[str]:
    """What so many repetitions side by side have of reading numbers at places, and of storing or adding them there.

    Numbers of the `packed` uses are copied side by side, if they are near each other.

    >>> sorted(places_work(8, [("gather", Affine(0, 1, 8)), ("add", Affine(0, 3, 8))]).items())
    [('lanes load', 2), ('run', 2), ('stride add', 8)]
    """
    found = runs([table for _, table in uses], count)
    vectors, call = vectors_of(count, found), Counter[str]()
    for number, (kind, table) in enumerate(uses):
        step = found.steps[number] if found is not None else table.step if isinstance(table, Affine) else None
        near = step is not None and abs(step) <= LINE
        if step == 0:  # in a register
            call += Counter({"lanes operation": vectors * (kind == "add")})
        elif step == 1 or (near and number in packed):
            call += Counter({"lanes load": vectors * (kind != "store"), "lanes store": vectors * (kind != "gather")})
        else:
            call[("stride" if near else "table") + ("" if kind == "gather" else f" {kind}")] += count
    call["run"] += len(uses) * (1 if found is None else len(found))
    return call


def vectors_of(count: int, found: Runs | None) -> int:
    """Registers that so many repetitions fill, in stretches."""
    lengths = [count] if found is None else found.lengths.tolist()
    return sum(ceil(length / LANES_AT_ONCE) for length in lengths)


def without_gaps(count: int, uses: Sequence[Use], written: Sequence[int], *, alone: bool = True) -> list[int]:
    """Return those of the uses that write to one matrix in steps between which they leave out nothing.

    They are brought side by side in registers, and stored as whole vectors (`codegen.loops.emit`); not so sums, to
    which others are added elsewhere when this loop is not alone.

    >>> uses = [("store", Affine(1, 3, 9)), ("add", Affine(2, 3, 9)), ("add", Affine(3, 3, 9))]
    >>> without_gaps(9, uses, range(3)), without_gaps(9, uses, range(2)), without_gaps(9, uses, range(3), alone=False)
    ([0, 1, 2], [], [])
    """
    found = runs([each for _, each in uses], count)
    if found is None:
        return []
    families: dict[int, list[int]] = {}
    for number in written:
        if alone or uses[number][0] == "store":
            families.setdefault(found.steps[number], []).append(number)
    full = [
        family
        for step, family in families.items()
        if 1 < step <= WIDEST and len({int(found.starts[number][0]) % step for number in family}) == step
    ]
    return [number for family in full for number in family]
